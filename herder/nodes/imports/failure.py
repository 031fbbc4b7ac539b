"""Why a volume could not be filled."""

from __future__ import annotations


class ImportFailed(Exception):
    """`reason` is one word of `herder.api.reasons`: whether it is tried again follows from it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

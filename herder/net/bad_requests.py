"""What aiohttp logs of requests that are no HTTP: anybody can send those, and each would be a traceback."""

from __future__ import annotations

import logging

import structlog
from aiohttp.http_exceptions import HttpProcessingError

from herder.net.occasional import Occasional


def server_log() -> logging.Logger:
    """For one server of aiohttp, as its `logger`. What is our own fault is logged as ever."""
    log = logging.Logger("herder.http")
    log.parent = logging.getLogger("aiohttp.server")
    log.addFilter(_Sparingly())
    return log


class _Sparingly(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._note = Occasional(structlog.get_logger(), "info")

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        self._note("somebody sent what is no request", why=type(error).__name__)
        return False

"""The shape of a limit."""

from __future__ import annotations

import msgspec

from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, CandidatePod, Migrating


class Wait(msgspec.Struct, frozen=True):
    """Why a job is held: one word, and a sentence that names the limit and who uses it up."""

    reason: str
    message: str


class Limit:
    """Made for one pass."""

    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        self.snapshot = snapshot
        self.config = snapshot.config

    def count(self, migrating: Migrating) -> None:
        """A job that runs, or was just admitted."""

    def holds(self, pod: CandidatePod) -> Wait | None:
        """None: as far as this limit goes it may begin."""
        return None

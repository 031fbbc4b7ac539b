"""What to do about a copy that does not come to its end."""

from __future__ import annotations

import msgspec

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Moved


class Go(msgspec.Struct, frozen=True):
    pass


class StartPostCopy(msgspec.Struct, frozen=True):
    message: str


class PauseGuest(msgspec.Struct, frozen=True):
    message: str


class Abort(msgspec.Struct, frozen=True):
    reason: str
    message: str


Verdict = Go | StartPostCopy | PauseGuest | Abort


class Judge:
    """Remembers what was seen of one copy."""

    def __init__(self, settings: PolicySettings) -> None:
        self._settings = settings

    def look(self, moved: Moved, memory: int, now: float) -> Verdict:
        return Go()

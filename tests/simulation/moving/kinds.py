"""The kinds of migrations that are played: how the guest behaves, and what its owner allows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from herder.api.kinds.migration_state import PolicySettings
from tests.simulation.moving.orders import Wanted
from tests.simulation.moving.scenario import Ended, Happening, play

FAST = {"boot": "0.1s", "dirty-rate": "200Mi"}
# Writes faster than it can be copied.
RESTLESS = {"boot": "0.1s", "dirty-rate": "4Gi"}


class Kind(msgspec.Struct, frozen=True):
    name: str
    # How many of them it has when nothing happens.
    steps: int
    settings: PolicySettings = PolicySettings()
    guest: dict[str, str] = msgspec.field(default_factory=lambda: dict(FAST))
    # Why guests cannot come to the target by post-copy.
    no_post_copy: str = ""
    # Where the guest ends up when nothing happens.
    ends_on: str = "node-2"

    def play(self, seed: int, happenings: Sequence[tuple[int, Happening]] = (), *, traced: bool = False) -> Ended:
        wanted = Wanted(settings=self.settings, no_post_copy=self.no_post_copy)
        return play(seed, *happenings, wanted=wanted, guest=self.guest, traced=traced)


PRE_COPY = Kind("pre-copy", 22)
POST_COPY = Kind("post-copy", 24, PolicySettings(completion_timeout_per_gib=2, allow_post_copy=True), RESTLESS)
PAUSED = Kind("paused", 26, PolicySettings(completion_timeout_per_gib=2, allow_workload_disruption=True), RESTLESS)
ABORTED = Kind("aborted", 14, PolicySettings(completion_timeout_per_gib=2), RESTLESS, ends_on="node-1")
# As paused, though the order says that it may go by post-copy.
NO_POST_COPY = Kind("no-post-copy", 26, POST_COPY.settings, RESTLESS, no_post_copy="no userfaultfd")
ALL = (PRE_COPY, POST_COPY, PAUSED, ABORTED, NO_POST_COPY)

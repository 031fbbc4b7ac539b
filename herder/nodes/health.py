"""What the probes of a pod have found so far."""

from __future__ import annotations

import msgspec


class Health(msgspec.Struct, frozen=True):
    """Without a probe it is ready as soon as it runs, and alive as long as it does."""

    ready: bool = True
    # None: there is a liveness probe, and it has not passed yet.
    alive: bool | None = True
    # The liveness probe has failed so often that the guest has to end.
    dead: str = ""
    not_ready_because: str = ""
    # Of several containers, those that are not ready, or not even started.
    unready: tuple[str, ...] = ()
    unstarted: tuple[str, ...] = ()
    # So many seconds from now it changes, if nothing else does.
    next_look: float | None = None


HEALTHY = Health()

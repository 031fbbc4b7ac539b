"""Which controllers run where."""

from __future__ import annotations

from herder.controllers import CONTROLLERS, EMBEDDED_ONLY
from herder.kube.kit import Start
from herder.scheduler import EMBEDDED_NAMES, NAMES, scheduler


def controllers_for(*, embedded: bool) -> tuple[Start, ...]:
    """A real cluster has its own scheduler and its own controllers of workloads: there only what is ours is run. The embedded
    engine has nobody else."""
    if embedded:
        return (*CONTROLLERS, *EMBEDDED_ONLY, scheduler(EMBEDDED_NAMES))
    return (*CONTROLLERS, scheduler(NAMES))

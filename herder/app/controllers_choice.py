"""Which controllers run where."""

from __future__ import annotations

import msgspec

from herder.controllers import CONTROLLERS, EMBEDDED_ONLY
from herder.controllers.node_lifecycle import node_lifecycle
from herder.kube.kit import Start
from herder.rules.node_lifecycle import Patience
from herder.rules.placement import Scoring
from herder.scheduler import EMBEDDED_NAMES, NAMES, scheduler


class Choices(msgspec.Struct, frozen=True):
    """What a person may choose about them."""

    patience: Patience = Patience()
    scoring: Scoring = "LeastAllocated"


def controllers_for(*, embedded: bool, choices: Choices | None = None) -> tuple[Start, ...]:
    """A real cluster has its own scheduler, and its own controllers for workloads and nodes: there only what is ours is run. The
    embedded engine has nobody else."""
    chosen = choices or Choices()
    if embedded:
        return (*CONTROLLERS, *EMBEDDED_ONLY, *node_lifecycle(chosen.patience), scheduler(EMBEDDED_NAMES, chosen.scoring))
    return (*CONTROLLERS, scheduler(NAMES, chosen.scoring))

"""The loop that places pods."""

from herder.api.defaults import SCHEDULER_NAME
from herder.kube.kit import Kit, Runs, Start
from herder.rules.placement import Scoring, rules_with
from herder.scheduler.scheduler import Scheduler

# Whose pods are ours: those that name us; where nobody else places pods, those that name nobody, too.
NAMES = (SCHEDULER_NAME,)
EMBEDDED_NAMES = (SCHEDULER_NAME, "default-scheduler")


def scheduler(names: tuple[str, ...], scoring: Scoring = "LeastAllocated") -> Start:
    rules = rules_with(scoring)

    def start(kit: Kit) -> Runs:
        return Scheduler(kit, names, rules)

    return start

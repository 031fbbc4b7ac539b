"""What is new about the phases of an instance: each phase counts once, the first time that it is reached."""

import datetime
from typing import Any

import pytest

from herder.rules.instances.transitions import Seen, Transition, seen_between
from tests.unit.rules.machines import Json, instance, instance_view, later


def at(phase: str, *times: tuple[str, float], uid: str = "one", deleted_at: float | None = None) -> Any:
    """An instance that was made now, and reached each phase so many seconds later."""
    listed: list[Json] = [{"phase": name, "phaseTransitionTimestamp": later(seconds)} for name, seconds in times]
    made = instance(phase, uid=uid, phaseTransitionTimestamps=listed)
    made["metadata"]["creationTimestamp"] = later(0)
    if deleted_at is not None:
        made["metadata"]["deletionTimestamp"] = later(deleted_at)
    return instance_view(made)


NEW = instance_view(instance(uid="one"))
SCHEDULED = at("Scheduled", ("Scheduled", 2))
RUNNING = at("Running", ("Scheduled", 2), ("Running", 5))
SILENT = at("Unknown", ("Scheduled", 2), ("Running", 5), ("Unknown", 60))
FAILED = at("Failed", ("Scheduled", 2), ("Running", 5), ("Failed", 8))
SHUT_DOWN = at("Succeeded", ("Scheduled", 2), ("Running", 5), ("Succeeded", 50), deleted_at=40)
LEAVING = at("Running", ("Scheduled", 2), ("Running", 5), deleted_at=40)
NOW = datetime.datetime.fromisoformat(later(60))
RAN = Transition("Running", 5, "Scheduled", 3)


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        (NEW, SCHEDULED, Seen((Transition("Scheduled", 2),))),
        (SCHEDULED, RUNNING, Seen((RAN,), started=True)),
        (RUNNING, RUNNING, Seen()),
        (SCHEDULED, FAILED, Seen((RAN, Transition("Failed", 8, "Running", 3)), started=True, stopped=True)),
        (RUNNING, SILENT, Seen((Transition("Unknown", 60, "Running", 55),))),
        # It answers again: it had run before, and its first time was counted then.
        (SILENT, at("Running", ("Scheduled", 2), ("Running", 5), ("Unknown", 60)), Seen()),
        (RUNNING, SHUT_DOWN, Seen((Transition("Succeeded", 50, "Running", 45, from_deletion=10),), stopped=True)),
        (RUNNING, None, Seen(stopped=True)),
        # Its pod was gone before anybody wrote how it ended.
        (LEAVING, None, Seen((Transition("Succeeded", 60, "Running", 55, from_deletion=20),), stopped=True)),
        (FAILED, None, Seen()),
        (SHUT_DOWN, None, Seen()),
        (RUNNING, at("Running", ("Running", 9), uid="two"), Seen(stopped=True)),
        (FAILED, at("Running", ("Running", 9), uid="two"), Seen()),
    ],
)
def test_each_phase_counts_once(before: Any, after: Any, seen: Seen) -> None:
    assert seen_between(before, after, NOW) == seen


def test_clocks_that_differ_give_no_negative_time() -> None:
    (seen,) = seen_between(SCHEDULED, at("Running", ("Scheduled", 2), ("Running", 1)), NOW).transitions
    assert (seen.from_last_phase, seen.from_creation) == (0, 1)

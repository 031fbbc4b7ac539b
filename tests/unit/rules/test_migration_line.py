"""What `herder migrate --wait` shows: where the migration is and why, and how far its memory has come. It never runs backwards."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.rules.migration.shown import furthest, line, size, waits_for
from tests.unit.rules.migrations import migration, view

MODES = ("PreCopy", "PostCopy", "Paused")
NUMBERS = re.compile(r": (\d+) %, (.*)$")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
BYTES = st.none() | st.integers(0, 1 << 45)


def reported(phase: str = "Running", progress: dict[str, Any] | None = None, **status: Any) -> VirtualMachineInstanceMigration:
    document = migration(phase)
    document["status"] |= {**status, **({"progress": progress} if progress is not None else {})}
    return view(document)


def shown(*reports: VirtualMachineInstanceMigration) -> list[str]:
    """The lines that a person sees, one for each report."""
    before: MigrationProgress | None = None
    lines: list[str] = []
    for one in reports:
        before = furthest(one, before)
        lines.append(line(one, before))
    return lines


def test_what_keeps_a_migration_from_going_on_is_in_the_line() -> None:
    fails = {"type": "Synchronized", "status": "False", "reason": "Forbidden", "message": "exceeded quota"}
    assert shown(reported("Scheduling", conditions=[fails])) == ["Scheduling: Forbidden exceeded quota"]


def test_why_a_migration_fails_is_not_said_before_it_has_failed() -> None:
    """It is said when it is over, and once is enough."""
    told = reported(targetNode="node-2", reason="TargetPodFailed", message="target pod x ended; the source is being told")
    assert shown(told) == ["Running to node-2: it is being called off"]


def test_all_that_is_known_of_a_copy_is_in_the_line() -> None:
    copied = {
        "percent": 50,
        "transferredBytes": 3 << 29,
        "remainingBytes": 512 << 20,
        "bytesPerSecond": 64 << 20,
        "mode": "PreCopy",
        "estimatedSecondsLeft": 8,
    }
    wanted = "Running to node-2: 50 %, 1.5 GiB sent, 512 MiB left, 64.0 MiB/s, PreCopy, about 8 s"
    assert shown(reported(progress=copied, targetNode="node-2")) == [wanted]


def test_what_nobody_has_said_is_not_shown_as_zero() -> None:
    assert shown(reported(progress={})) == ["Running: 0 %, 0 B sent"]
    assert shown(reported(progress={"remainingBytes": 0, "bytesPerSecond": 0}))[0].endswith("0 B sent, 0 B left, 0 B/s")


def test_there_are_no_numbers_before_the_copy_and_after_it() -> None:
    waits = reported("Pending", reason="TooManyMigrations", message="5 of 5 are under way")
    over = reported("Succeeded", {"percent": 100, "transferredBytes": 1 << 30}, targetNode="node-2")
    failed = reported("Failed", {"percent": 40}, reason="Timeout", message="its time was up")
    assert shown(view(migration()), waits, over) == [
        "Pending",
        "Pending: TooManyMigrations 5 of 5 are under way",
        "Succeeded to node-2",
    ]
    assert shown(failed) == ["Failed: Timeout its time was up"]


def test_a_report_without_numbers_does_not_take_them_away() -> None:
    seen, silent = shown(reported(progress={"percent": 30, "transferredBytes": 1 << 20}), reported())
    assert silent == seen


@pytest.mark.parametrize(
    ("migration", "said"),
    [
        (view({**migration(), "status": {}}), "no controller has answered to migration move yet; "),
        (reported("Pending", reason="WaitingForClusterLimit", message="5 are under way"), "Pending: WaitingForClusterLimit 5 are"),
        (reported("Pending"), "Pending: it waits for its turn"),
        (reported("Scheduling", reason="TargetUnschedulable", message="0/2 nodes"), "Scheduling: TargetUnschedulable 0/2 nodes"),
        (reported("PreparingTarget", targetNode="node-2"), "PreparingTarget to node-2: it waits for node-2 to prepare the target"),
        (reported("Running", {"percent": 7}), "Running: 7 %, 0 B sent"),
    ],
)
def test_who_sees_nothing_happen_is_told_what_is_waited_for(migration: VirtualMachineInstanceMigration, said: str) -> None:
    assert waits_for(migration, furthest(migration, None)).startswith(said)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (100 << 10, "100 KiB"),
        (1 << 20, "1.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 40, "5.0 TiB"),
        (4096 << 40, "4096 TiB"),
    ],
)
def test_sizes_are_for_people(count: int, words: str) -> None:
    assert size(count) == words


@given(st.integers(0, 1 << 60))
def test_a_size_is_as_large_as_it_says(count: int) -> None:
    number, unit = size(count).split()
    # One digit behind the point is what a person reads.
    assert abs(float(number) * 1024 ** UNITS.index(unit) - count) <= max(count / 19, 0.5)


REPORTS = st.builds(
    MigrationProgress,
    mode=st.none() | st.sampled_from(MODES),
    total_bytes=BYTES,
    transferred_bytes=BYTES,
    remaining_bytes=BYTES,
    bytes_per_second=BYTES,
    percent=st.none() | st.integers(0, 100),
    estimated_seconds_left=st.none() | st.integers(0, 1 << 31),
)


@given(st.lists(st.none() | REPORTS, max_size=12))
def test_nothing_runs_backwards_whatever_is_reported(reports: list[MigrationProgress | None]) -> None:
    documents = [reported(progress=None if one is None else msgspec.to_builtins(one)) for one in reports]
    percent, sent, post_copy = 0, 0.0, False
    begun = False
    for text in shown(*documents):
        found = NUMBERS.search(text)
        assert (found is not None) or not begun, "numbers that were there have gone"
        if found is None:
            continue
        begun = True
        assert int(found[1]) >= percent and _sent(found[2]) >= sent
        assert not post_copy or "PostCopy" in found[2], "a guest that has begun at the target does not go back"
        percent, sent, post_copy = int(found[1]), _sent(found[2]), "PostCopy" in found[2]


def _sent(numbers: str) -> float:
    number, unit = numbers.split(" sent")[0].split()
    return float(number) * 1024 ** UNITS.index(unit)

"""One machine of a pool, as far as the pool has to know it."""

from typing import Any

import pytest

from herder.api import labels
from herder.rules.pools.member import Member, ReadyPeriod, member_of
from tests.unit.rules.machines import instance, instance_view, later, machine, machine_view

from .things import NOW


def seen(document: dict[str, Any], instance_document: dict[str, Any] | None = None) -> Member:
    found = instance_view(instance_document) if instance_document is not None else None
    return member_of("web", machine_view(document), found)


READY = [{"type": "Ready", "status": "True", "lastTransitionTime": later(-60)}]


def test_a_machine_is_ready_by_its_instance_and_since_when_it_says() -> None:
    one = seen(machine(), instance("Running", conditions=READY, nodeName="node-1"))
    assert (one.ready, one.ready_since, one.running, one.node, one.off, one.in_flight) == (
        True,
        NOW - 60,
        True,
        "node-1",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("document", "alive"),
    [
        (machine(annotations={"herder.dev/restart-requested": "aaaaaaaa-0001"}), instance("Running", conditions=READY)),
        (machine(), instance("Running", conditions=READY, deleted=True)),
        (machine(runStrategy="Halted"), instance("Running", conditions=READY)),
        (machine(), instance("Running", conditions=READY, owner="somebody-else")),
        (machine(), instance("Failed", conditions=READY)),
        (machine(), None),
    ],
    ids=["restart asked for", "being deleted", "to be stopped", "not its own", "ended", "none"],
)
def test_a_machine_whose_instance_goes_or_is_not_there_is_not_ready(document: dict[str, Any], alive: Any) -> None:
    assert not seen(document, alive).ready


@pytest.mark.parametrize(
    ("document", "found", "off", "is_halted"),
    [
        (machine(runStrategy="Halted"), None, True, True),
        (machine(runStrategy="Halted"), instance("Running"), True, False),
        (machine(runStrategy="Manual"), None, True, True),
        (machine(runStrategy="Manual"), instance("Running"), False, False),
        (machine(runStrategy="Always"), None, False, False),
        (machine(runStrategy="Always"), instance("Failed"), False, False),
        (machine(runStrategy="Once", status={"lastInstanceUID": "aaaaaaaa-0001"}), instance("Succeeded"), True, True),
        (machine(running=False), None, True, True),
    ],
)
def test_a_machine_is_off_as_its_run_strategy_says_and_halted_once_nothing_runs(
    document: dict[str, Any], found: Any, off: bool, is_halted: bool
) -> None:
    one = seen(document, found)
    assert (one.off, one.halted) == (off, is_halted)


def test_what_was_asked_for_before_is_known() -> None:
    asked = {"herder.dev/restart-requested": "x", "herder.dev/reprovision": "disk-3,data-3,other-4"}
    document = machine(annotations=asked)
    document["metadata"]["name"] = "web-3"
    one = member_of("web", machine_view(document), None)
    assert (one.number, one.restart_request, one.reprovision) == (3, "x", ("disk", "data"))


@pytest.mark.parametrize("text", ["", "nonsense", "9999-99-99", "-1"])
def test_a_time_that_is_none_was_long_ago(text: str) -> None:
    assert seen(machine(annotations={"herder.dev/pool-updated-at": text})).updated == 0.0


def test_a_machine_that_waits_for_a_secret_is_not_failing() -> None:
    one = seen(machine(status={"printableStatus": "Starting"}), instance("Pending", reason="MissingSecret"))
    assert (one.is_failing, one.in_flight) == (False, True)


@pytest.mark.parametrize("alive", [True, False], ids=["its instance is Ready", "it is not"])
def test_when_it_was_ready_is_known_also_before_it_has_heard_itself_that_it_is_not(alive: bool) -> None:
    over = {"revision": "web-a", "since": later(-900), "until": later(-800)}
    found = instance("Running", conditions=READY if alive else [{**READY[0], "status": "False"}])
    found["metadata"]["labels"]["herder.dev/pool-revision"] = "web-b"
    known = {"conditions": READY, "lastReady": over}
    last = ReadyPeriod("web-a", NOW - 900, NOW - 800)
    assert seen(machine(known), found).last_ready == (last if alive else ReadyPeriod("web-b", NOW - 60))
    assert seen(machine({"lastReady": over}), found).last_ready == last


@pytest.mark.parametrize(
    ("failure", "crashed"),
    [
        (None, False),
        ({"consecutiveFailCount": 0, "consecutiveCrashCount": 0}, False),
        ({"consecutiveCrashCount": 1, "reason": "GuestCrashed"}, True),
        ({"consecutiveFailCount": 1, "reason": "GuestCrashed"}, True),
        ({"consecutiveCrashCount": 1, "reason": "GuestLost"}, False),
    ],
)
def test_a_machine_has_crashed_where_neither_its_node_nor_people_ended_it(failure: Any, crashed: bool) -> None:
    assert seen(machine({"startFailure": failure} if failure else {})).crashed == crashed


@pytest.mark.parametrize(("started", "expected"), [({}, True), ({"startStrategy": "Paused"}, False)])
def test_a_machine_that_its_template_starts_paused_is_not_paused_by_a_person(started: dict[str, Any], expected: bool) -> None:
    """A rollout leaves alone what a person has paused: another template must still reach the others."""
    paused = instance("Running", conditions=[{"type": "Paused", "status": "True"}])
    paused["spec"] |= started
    assert seen(machine(), paused).paused is expected


RESUMED_FROM = {labels.RESUME_FROM: "claim-1"}
RAN = {"lastInstanceUID": "aaaaaaaa-0001"}


@pytest.mark.parametrize(
    ("document", "alive", "memory", "resuming"),
    [
        (machine(RAN), None, "Saved", True),
        (machine(RAN), None, "Resuming", True),
        (machine(RAN), None, "Used", False),
        (machine(RAN), None, None, False),
        (machine(annotations=RESUMED_FROM), None, None, True),
        (machine(RAN, annotations=RESUMED_FROM), None, None, False),
        (machine(), instance("Scheduling", annotations=RESUMED_FROM), "Resuming", True),
        (machine(), instance("Running", annotations=RESUMED_FROM), "Resuming", False),
        (machine(RAN, suspended=True), None, "Saved", False),
    ],
)
def test_one_that_is_about_to_go_on_from_memory_is_known(document: Any, alive: Any, memory: Any, resuming: bool) -> None:
    found = instance_view(alive) if alive is not None else None
    assert member_of("web", machine_view(document), found, memory).resuming == resuming

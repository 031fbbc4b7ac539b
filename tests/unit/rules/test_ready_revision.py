"""On which revision of its pool's template a machine was Ready, and when a newer one counts."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from tests.unit.rules.machines import NOW, Json, data_volume, instance, instance_view, later, machine, machine_view

LONG_AGO = -301.0
JUST_NOW = -1.0


def ready_instance(revision: str, *, since: float = JUST_NOW, ready: bool = True, alive: bool | None = None) -> Json:
    """`alive`: it has a liveness probe, which has passed, or has not."""
    listed = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": later(since)}]
    if alive is not None:
        listed.append({"type": "Alive", "status": "True" if alive else "False"})
    spec: Json = {"domain": {}} if alive is None else {"domain": {}, "livenessProbe": {"guestAgentPing": {}}}
    made = instance("Running", ran=(since, 0), spec=spec, conditions=listed)
    made["metadata"]["labels"][labels.POOL_REVISION] = revision
    return made


def plan(known: str | None, child: Json | None, *, revision: str | None = "web-2", **spec: Any) -> MachinePlan:
    document = machine({"readyRevision": known} if known else None, **spec)
    document["metadata"]["labels"] = {labels.POOL_REVISION: revision} if revision else {}
    view = instance_view(child) if child else None
    return plan_machine(MachineSnapshot(machine_view(document), document, view, {}), NOW)


def shown(known: str | None, child: Json | None, **more: Any) -> str | None:
    return plan(known, child, **more).status.get("readyRevision")


def test_it_is_set_when_the_machine_is_ready_for_the_first_time() -> None:
    assert shown(None, None) is None
    assert shown(None, ready_instance("web-1", ready=False)) is None
    assert shown(None, ready_instance("web-1")) == "web-1"
    assert shown(None, ready_instance("web-1", alive=False)) == "web-1"


def test_it_is_the_revision_of_the_instance_and_not_the_one_that_the_machine_has_by_now() -> None:
    assert shown(None, ready_instance("web-1"), revision="web-2") == "web-1"


@pytest.mark.parametrize(
    ("child", "after"),
    [
        pytest.param(ready_instance("web-2", alive=False, since=LONG_AGO), "web-1", id="its liveness probe has not passed"),
        pytest.param(ready_instance("web-2", alive=True), "web-2", id="its liveness probe has passed"),
        pytest.param(ready_instance("web-2", alive=True, ready=False), "web-1", id="it lives and is not Ready"),
        pytest.param(ready_instance("web-2"), "web-1", id="without a probe, Ready just now"),
        pytest.param(ready_instance("web-2", since=LONG_AGO), "web-2", id="without a probe, Ready for long"),
        pytest.param(ready_instance("web-2", since=LONG_AGO, ready=False), "web-1", id="not Ready for long"),
        pytest.param(instance("Failed"), "web-1", id="it failed"),
        pytest.param(None, "web-1", id="there is no instance"),
    ],
)
def test_a_newer_revision_takes_its_place_only_once_it_has_proven_itself(child: Json | None, after: str) -> None:
    assert shown("web-1", child) == after


def test_when_and_on_what_it_was_ready_is_kept_once_it_is_not() -> None:
    was = {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": later(-90)}],
        "lastInstanceUID": "aaaaaaaa-0001",
    }
    known = {"revision": "web-1", "since": later(-900), "until": later(-800)}

    def last(status: Json, child: Json | None) -> Json | None:
        document = machine(status)
        view = instance_view(child) if child else None
        return plan_machine(MachineSnapshot(machine_view(document), document, view, {}), NOW).status.get("lastReady")

    period = {"since": later(-90), "until": later(0)}
    assert last(was, ready_instance("web-2", ready=False)) == {"revision": "web-2", **period}
    assert last({**was, "lastInstanceUID": "another"}, ready_instance("web-2", ready=False)) == period, (
        "of what it was is not known"
    )
    assert last({**was, "lastReady": known}, ready_instance("web-2")) == known
    assert last({"lastReady": known}, None) == known
    assert last({}, None) is None


def test_time_alone_proves_a_machine_without_a_liveness_probe_and_it_is_looked_at_then() -> None:
    assert plan("web-1", ready_instance("web-2", since=-100)).next_look == pytest.approx(200)
    for needless in (ready_instance("web-1"), ready_instance("web-2", alive=False), ready_instance("web-2", since=LONG_AGO)):
        assert plan("web-1", needless).next_look is None
    assert plan(None, ready_instance("web-2")).next_look is None


def test_a_machine_that_is_ready_outside_of_pools_keeps_that_when_a_pool_gives_it_a_revision() -> None:
    by_hand = ready_instance("web-1", since=LONG_AGO)
    del by_hand["metadata"]["labels"][labels.POOL_REVISION]
    assert shown(None, {**by_hand, "status": {"phase": "Scheduled"}}, revision=None) is None
    assert shown(None, by_hand, revision=None) == "none"
    assert plan("none", by_hand, revision=None).next_look is None
    # Attached, and restarted with the template.
    assert shown("none", instance("Failed")) == "none"
    assert shown("none", ready_instance("web-2")) == "none"
    assert shown("none", ready_instance("web-2", since=LONG_AGO)) == "web-2"


def test_a_machine_that_loses_its_revision_keeps_what_it_was_ready_on() -> None:
    assert shown("web-1", None, revision=None) == "web-1"


@pytest.mark.parametrize(("owner", "after"), [("machine-1", "web-1"), ("another", None)])
def test_a_machine_that_came_back_with_its_disks_was_ready_on_what_they_say(owner: str, after: str | None) -> None:
    document = machine(None)
    document["metadata"]["labels"] = {labels.POOL_REVISION: "web-2"}
    kept = data_volume("disk", owner=owner)
    annotations = {labels.READY_REVISION: "web-1"}
    kept = msgspec.structs.replace(kept, metadata=msgspec.structs.replace(kept.metadata, annotations=annotations))
    snapshot = MachineSnapshot(machine_view(document), document, instance_view(instance("Failed")), {"disk": kept})
    assert plan_machine(snapshot, NOW).status.get("readyRevision") == after

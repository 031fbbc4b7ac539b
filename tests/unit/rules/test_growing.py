"""Claims that ask for more: who grows the disk and where, what the claim says meanwhile, and how often it is tried."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import PersistentVolumeClaim, Pod
from herder.api.imports import ImportReport, import_of
from herder.api.kinds import DataVolume
from herder.rules.volumes import GrowthPlan, GrowthSnapshot, plan_growth
from herder.rules.volumes.growing import IN_PROGRESS, RESIZE_ERROR, RESIZING, SPACING
from tests.unit.rules.machines import NOW, Json, later
from tests.unit.rules.volumes import claim, data_volume, volume, volume_view

GI = 1024**3
FILLED = msgspec.convert(data_volume({"phase": "Succeeded"}), DataVolume)
REFERENCE = {"namespace": "shop", "name": "disk", "uid": "claim-disk"}
FULL = ImportReport(reason="InsufficientStorage", message="the node's storage has 1Gi left; 9Gi are needed")


def asking(size: str = "2Gi", has: str = "1Gi", **status: Any) -> PersistentVolumeClaim:
    made = msgspec.to_builtins(claim())
    made["spec"]["resources"] = {"requests": {"storage": size}}
    made["status"] = {"phase": "Bound", "capacity": {"storage": has}, **status}
    return msgspec.convert(made, PersistentVolumeClaim)


def snapshot(one: PersistentVolumeClaim | None = None, size: str = "1Gi", **more: Any) -> GrowthSnapshot:
    document = volume(size=size, claimRef=more.pop("claimRef", REFERENCE), **more.pop("volume", {}))
    given: Json = {"data_volume": FILLED, **more}
    return GrowthSnapshot(one or asking(), volume_view(document), document, **given)


def grower(phase: str, *, size: int = 2 * GI, attempt: int = 0, ended: float = 0.0, node: str = "n1", report: Any = None) -> Pod:
    """As the plan makes it, some time later."""
    made = plan_growth(snapshot(asking(str(size))), NOW).create_pod
    assert made is not None
    state = {"terminated": {"exitCode": 0, "finishedAt": later(ended)}} if phase in ("Succeeded", "Failed") else {}
    said = {"type": labels.IMPORT_CONDITION, "status": "False", "message": msgspec.json.encode(report).decode()} if report else {}
    metadata = {
        **made["metadata"],
        "name": f"grow-{attempt}",
        "uid": f"pod-{attempt}",
        "labels": {labels.IMPORT_ATTEMPT: str(attempt)},
    }
    status = {"phase": phase, "containerStatuses": [{"name": "importer", "state": state}], "conditions": [said] if said else []}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node}, "status": status}, Pod)


def conditions(plan: GrowthPlan) -> dict[str, str]:
    """Types and messages of those that it writes."""
    assert plan.status is not None
    return {one["type"]: one["message"] for one in plan.status["conditions"] if "$patch" not in one}


def taken_away(plan: GrowthPlan) -> list[str]:
    assert plan.status is not None
    return [one["type"] for one in plan.status["conditions"] if "$patch" in one]


def ordered(plan: GrowthPlan) -> tuple[int, str]:
    """How large it becomes, and on which node; empty for any."""
    assert plan.create_pod is not None
    definition = import_of(msgspec.convert(plan.create_pod, Pod))
    assert definition is not None and definition.action == "grow"
    return definition.capacity, plan.create_pod["spec"].get("nodeName", "")


def test_a_claim_that_asks_for_more_is_grown_where_its_disk_is() -> None:
    found = plan_growth(snapshot(), NOW)
    assert ordered(found) == (2 * GI, "")
    assert found.create_pod is not None and found.status is not None
    assert found.create_pod["spec"]["nodeSelector"] == {labels.SCHEDULABLE: "true", labels.STORAGE: "a"}
    assert found.create_pod["metadata"]["ownerReferences"][0]["uid"] == "volume-disk"
    assert (found.capacity, conditions(found)) == ("", {RESIZING: ""})
    assert found.status["allocatedResources"] == {"storage": "2Gi"}
    assert found.status["allocatedResourceStatuses"] == {"storage": IN_PROGRESS}


@pytest.mark.parametrize(
    "given",
    [
        {"one": asking("1Gi")},
        {"one": asking("1Gi", "2Gi")},
        {"one": claim("Pending")},
        {"one": claim()},  # nobody has told it yet what it has
        {"volume": {"ours": False}},
        {"claimRef": None},
        {"claimRef": {**REFERENCE, "uid": "claim-of-before"}},
        {"claimRef": {**REFERENCE, "namespace": "elsewhere"}},
    ],
)
def test_nothing_else_is_touched(given: Json) -> None:
    assert plan_growth(snapshot(**given), NOW) == GrowthPlan()


def test_nothing_grows_that_is_being_filled_or_copied() -> None:
    filling = plan_growth(snapshot(data_volume=msgspec.convert(data_volume({"phase": "ImportInProgress"}), DataVolume)), NOW)
    assert (filling.create_pod, conditions(filling)) == (None, {RESIZING: "waits for DataVolume disk to be filled"})
    copying = plan_growth(snapshot(copied_by="copy"), NOW)
    assert (copying.create_pod, conditions(copying)) == (None, {RESIZING: "waits until DataVolume copy has copied it"})
    # One of the same name that belongs to somebody else says nothing about it.
    other = msgspec.convert({**data_volume(), "metadata": {**data_volume()["metadata"], "uid": "x"}}, DataVolume)
    assert plan_growth(snapshot(data_volume=other), NOW).create_pod is not None


def test_guests_that_have_the_disk_are_told_in_turn_on_their_own_nodes() -> None:
    users = ("n1", "n2")
    assert ordered(plan_growth(snapshot(users=users), NOW)) == (2 * GI, "n1")
    first = grower("Succeeded", node="n1")
    assert ordered(plan_growth(snapshot(users=users, pods=(first,)), NOW)) == (2 * GI, "n2")
    # One that has grown elsewhere says nothing about this one's guest.
    assert ordered(plan_growth(snapshot(users=("n3",), pods=(first,)), NOW)) == (2 * GI, "n3")
    both = (first, grower("Succeeded", node="n2", attempt=1))
    assert plan_growth(snapshot(users=users, pods=both), NOW).capacity == "2Gi"
    assert plan_growth(snapshot(users=("n1", "gone"), lost=frozenset({"gone"}), pods=both), NOW).capacity == "2Gi"


def test_the_volume_says_it_first_and_the_claim_last() -> None:
    done = plan_growth(snapshot(pods=(grower("Succeeded"),)), NOW)
    assert done.status is not None
    assert (done.capacity, done.status["capacity"]) == ("2Gi", {"storage": "2Gi"})
    assert (taken_away(done), done.status["allocatedResourceStatuses"]) == ([RESIZING, RESIZE_ERROR], None)
    # Whoever ended in between left a volume that says so, and a claim that does not.
    again = plan_growth(snapshot(size="2Gi", pods=(grower("Succeeded"),)), NOW)
    assert again.status is not None
    assert (again.capacity, again.status["capacity"]) == ("", {"storage": "2Gi"})
    # What a volume says alone is not believed: its disk is looked at.
    assert ordered(plan_growth(snapshot(size="1Ti"), NOW)) == (2 * GI, "")


def test_a_pod_at_work_is_waited_for_and_what_it_waits_for_is_shown() -> None:
    waits = grower("Running", report=ImportReport(message="the guest is on its way"))
    found = plan_growth(snapshot(pods=(waits,)), NOW)
    assert (found.create_pod, conditions(found)) == (None, {RESIZING: "the guest is on its way"})
    shown = {"type": RESIZING, "status": "True", "reason": "", "message": "the guest is on its way", "lastTransitionTime": later(0)}
    said: Json = {
        "conditions": [shown],
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": IN_PROGRESS},
    }
    assert plan_growth(snapshot(asking(**said), pods=(waits,)), NOW) == GrowthPlan()


def test_whoever_asks_a_thousand_times_a_second_makes_no_pods_and_no_writes_by_it() -> None:
    shown = {"type": RESIZING, "status": "True", "reason": "", "message": "", "lastTransitionTime": later(0)}
    for size in ("3Gi", "4Gi", "7Ei"):
        said: Json = {
            "conditions": [shown],
            "allocatedResources": {"storage": "2Gi"},
            "allocatedResourceStatuses": {"storage": IN_PROGRESS},
        }
        assert plan_growth(snapshot(asking(size, **said), pods=(grower("Running"),)), NOW) == GrowthPlan()
        # What it had asked for is given, and the next comes after a while.
        assert plan_growth(snapshot(asking(size), pods=(grower("Succeeded"),)), NOW).capacity == "2Gi"
        soon = plan_growth(snapshot(asking(size, "2Gi"), size="2Gi", pods=(grower("Succeeded", ended=-1),)), NOW)
        assert soon == GrowthPlan(next_look=SPACING - 1)
    late = plan_growth(snapshot(asking("3Gi", "2Gi"), size="2Gi", pods=(grower("Succeeded", ended=-SPACING),)), NOW)
    assert (late.create_pod, [one.name for one in late.delete_pods]) == (None, ["grow-0"])


def test_a_failure_is_told_and_tried_again_ever_later() -> None:
    for attempt, wait in ((0, SPACING), (4, 16.0), (12, 300.0), (1000, 300.0)):
        failed = grower("Failed", attempt=attempt, report=FULL)
        waits = plan_growth(snapshot(pods=(failed,)), NOW)
        assert (waits.create_pod, waits.next_look) == (None, wait)
        assert conditions(waits) == {RESIZING: "", RESIZE_ERROR: FULL.message}
        assert [event.reason for event in waits.events] == ["VolumeResizeFailed"]
        again = plan_growth(snapshot(pods=(failed,)), NOW + wait)
        assert ordered(again) == (2 * GI, "")
        assert again.create_pod is not None
        assert again.create_pod["metadata"]["labels"][labels.IMPORT_ATTEMPT] == str(attempt + 1)


def test_who_then_asks_for_less_does_not_wait_that_long() -> None:
    failed = grower("Failed", size=9 * GI, attempt=20, report=FULL, ended=-SPACING)
    assert ordered(plan_growth(snapshot(asking("2Gi"), pods=(failed,)), NOW)) == (2 * GI, "")
    assert plan_growth(snapshot(asking("9Gi"), pods=(failed,)), NOW).create_pod is None
    # Nor where a guest has the disk by now, which can do what could not be done without it.
    assert ordered(plan_growth(snapshot(asking("9Gi"), users=("n2",), pods=(failed,)), NOW)) == (9 * GI, "n2")


def test_a_pod_of_a_node_that_is_gone_is_removed_at_once() -> None:
    found = plan_growth(snapshot(pods=(grower("Running"),), lost=frozenset({"n1"})), NOW)
    assert [(one.name, one.grace_period_seconds) for one in found.delete_pods] == [("grow-0", 0)]

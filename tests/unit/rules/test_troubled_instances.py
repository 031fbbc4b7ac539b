"""What a node meets when it starts, keeps or ends a guest is on the instance at once, and in an event once."""

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import GuestReport, GuestState
from herder.rules.instances import InstancePlan, InstanceSnapshot, plan_instance
from tests.unit.rules.machines import NOW, Json, instance, instance_view, node, pod

DISK = "OSError: No space left on device"


def plan(document: Json, *pods: Pod) -> InstancePlan:
    known = {"node-1": node()}
    return plan_instance(InstanceSnapshot(instance_view(document), msgspec.json.encode(document), pods, known), NOW)


def shown(plan: InstancePlan) -> tuple[str, str]:
    assert plan.status is not None
    return plan.status.get("reason", ""), plan.status.get("message", "")


@pytest.mark.parametrize(("state", "word"), [("Preparing", reasons.START_FAILED), ("Running", reasons.NODE_ERROR)])
def test_an_error_that_its_node_meets_is_shown_and_told_once(state: GuestState, word: str) -> None:
    phase = "Pending" if state == "Preparing" else "Running"
    troubled = pod(GuestReport(state=state, reason=word, message=DISK), phase=phase, node="node-1")
    first = plan(instance("Scheduled"), troubled)
    assert shown(first) == (word, DISK)
    assert [(one.type, one.reason, one.message) for one in first.events] == [("Warning", word, DISK)]
    assert first.status is not None
    assert not plan({**instance(), "status": first.status}, troubled).events
    well = pod(GuestReport(state=state), phase=phase, node="node-1")
    assert shown(plan({**instance(), "status": first.status}, well)) == ("", "")


@pytest.mark.parametrize("of_target", [False, True])
def test_an_instance_that_does_not_end_says_which_error_a_pod_of_it_meets(of_target: bool) -> None:
    fails = GuestReport(state="Incoming" if of_target else "Running", reason=reasons.ENDING_FAILED, message=DISK)
    launcher = pod(GuestReport(state="Running") if of_target else fails, phase="Running", node="node-1", deleted=True)
    target = pod(fails, node="node-1", name="target", deleted=True, labels={labels.MIGRATION_UID: "m"})
    made = plan(instance("Running", deleted=True), launcher, *((target,) if of_target else ()))
    assert shown(made) == (reasons.ENDING_FAILED, DISK)
    assert [one.reason for one in made.events] == [reasons.ENDING_FAILED]
    assert not made.remove_finalizer

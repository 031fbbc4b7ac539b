"""What `herder start|stop|restart|pause|unpause` write, and when what was asked counts as done."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.rules.machines import MachineSnapshot, plan_machine
from herder.rules.machines.waiting import Asked, reached, waits_for
from herder.rules.machines.wishes import Impossible, Verb, Wish, wish
from tests.unit.rules.machines import NOW, Json, instance, instance_view, later, machine, machine_view, pod

PAUSED = [{"type": "Paused", "status": "True", "reason": "GuestPaused", "lastTransitionTime": "2026-01-01T00:00:00Z"}]


def asked(verb: Verb, document: Json, child: Json | None = None) -> Wish:
    return wish(verb, machine_view(document), instance_view(child) if child else None, "fresh")


def annotated(name: str, value: str, uid: str = "machine-1") -> Json:
    return {"metadata": {"uid": uid, "annotations": {name: value}}}


@pytest.mark.parametrize(
    ("spec", "verb", "becomes"),
    [
        ({"runStrategy": "Halted"}, "start", {"runStrategy": "Always"}),
        ({"running": False}, "start", {"running": True}),
        ({"runStrategy": "Always"}, "stop", {"runStrategy": "Halted"}),
        ({"runStrategy": "RerunOnFailure"}, "stop", {"runStrategy": "Halted"}),
        ({"runStrategy": "Once"}, "stop", {"runStrategy": "Halted"}),
        ({"running": True}, "stop", {"running": False}),
    ],
)
def test_what_a_machine_keeps_to_is_changed_in_its_own_words(spec: Json, verb: Verb, becomes: Json) -> None:
    assert asked(verb, machine(**spec)).patch == {"metadata": {"uid": "machine-1"}, "spec": becomes}


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure", "Once"])
def test_a_machine_that_waits_to_be_told_is_told_with_a_new_request(strategy: str) -> None:
    assert asked("start", machine(runStrategy=strategy)).patch == annotated(labels.START_REQUEST, "fresh")
    assert asked("start", machine(runStrategy=strategy), instance("Failed")).patch == annotated(labels.START_REQUEST, "fresh")


def test_requests_name_the_instance_that_they_are_about() -> None:
    assert asked("stop", machine(runStrategy="Manual"), instance("Running")).patch == annotated(
        labels.STOP_REQUEST, "aaaaaaaa-0001"
    )
    assert asked("restart", machine(), instance("Running")).patch == annotated(labels.RESTART_REQUEST, "aaaaaaaa-0001")


@pytest.mark.parametrize(
    ("verb", "document", "child"),
    [
        ("start", machine(), None),
        ("start", machine(runStrategy="Manual"), instance("Running")),
        ("stop", machine(runStrategy="Halted"), None),
        ("stop", machine(runStrategy="Manual"), None),
        ("pause", machine(), instance("Running", annotations={labels.PAUSE: "true"}, conditions=PAUSED)),
        ("unpause", machine(), instance("Running")),
    ],
)
def test_what_is_so_already_is_left_alone(verb: Verb, document: Json, child: Json | None) -> None:
    assert asked(verb, document, child).patch is None


def test_pausing_is_asked_of_the_instance() -> None:
    wished = asked("pause", machine(), instance("Running"))
    assert wished == Wish(annotated(labels.PAUSE, "true", "aaaaaaaa-0001"), of_instance=True)
    wished = asked("unpause", machine(), instance("Running", annotations={labels.PAUSE: "true"}, conditions=PAUSED))
    assert wished == Wish(annotated(labels.PAUSE, "false", "aaaaaaaa-0001"), of_instance=True)


@pytest.mark.parametrize("verb", ["restart", "pause", "unpause"])
@pytest.mark.parametrize(
    "child", [None, instance("Succeeded"), instance("Running", deleted=True), instance("Running", owner="other")]
)
def test_what_does_not_run_cannot_be_paused_or_restarted(verb: Verb, child: Json | None) -> None:
    with pytest.raises(Impossible, match=f"VirtualMachine web is Stopped, so there is nothing to {verb}; `herder start web`"):
        asked(verb, machine(runStrategy="Manual"), child)


def test_nothing_is_asked_of_a_machine_that_is_being_deleted() -> None:
    with pytest.raises(Impossible, match="is being deleted"):
        asked("start", machine(deleted=True))


@pytest.mark.parametrize("strategy", ["Manual", "Once"])
def test_a_restarted_machine_starts_again_also_where_nothing_else_starts_it(strategy: str) -> None:
    def follows(status: Json, **more: str) -> bool:
        document = machine(status, runStrategy=strategy, annotations={labels.RESTART_REQUEST: "old", **more})
        return plan_machine(MachineSnapshot(machine_view(document), document, None, {}), NOW).create_instance is not None

    assert follows({"lastInstanceUID": "old"})
    assert not follows({"lastInstanceUID": "new"})
    assert not follows({"lastInstanceUID": "old"}, **{labels.STOP_REQUEST: "old"})


# Waiting.


def after(verb: Verb, child: Json | None = None, annotations: Json | None = None, **status: Any) -> bool:
    """Whether it is so, when the status says this."""
    then = Asked(verb, machine_view(machine(annotations=annotations)), instance_view(child) if child else None)
    now = {"observedGeneration": 3, **status}
    return reached(then, machine_view(machine(now, annotations=annotations)))


@pytest.mark.parametrize(
    ("verb", "word", "done"),
    [
        ("start", "Running", True),
        ("start", "Paused", True),
        ("start", "Starting", False),
        ("stop", "Stopped", True),
        ("stop", "Suspended", True),
        ("stop", "Stopping", False),
        ("stop", "ErrorUnschedulable", False),
        ("pause", "Paused", True),
        ("pause", "Running", False),
        ("unpause", "Running", True),
        ("unpause", "Paused", False),
    ],
)
def test_it_is_done_when_the_machine_shows_it(verb: Verb, word: str, done: bool) -> None:
    assert after(verb, printableStatus=word) is done


def test_a_status_from_before_the_request_says_nothing() -> None:
    assert not after("stop", printableStatus="Stopped", observedGeneration=2)
    assert not after("start", printableStatus="CrashLoopBackOff", observedGeneration=2)
    assert not after("start", annotations={labels.START_REQUEST: "new"}, printableStatus="Stopped", observedStartRequest="old")


def test_a_restart_is_done_when_another_instance_runs() -> None:
    assert not after("restart", instance("Running"), printableStatus="Running", lastInstanceUID="aaaaaaaa-0001")
    assert after("restart", instance("Running"), printableStatus="Running", lastInstanceUID="bbbbbbbb-0002")


@pytest.mark.parametrize("word", ["CrashLoopBackOff", "ErrorUnschedulable", "ErrorPvcNotFound", "DataVolumeError", "Stopped"])
def test_what_cannot_come_true_is_said_with_its_reason(word: str) -> None:
    with pytest.raises(Impossible, match=f"VirtualMachine web is {word}: no node has room"):
        after("start", printableStatus=word, message="no node has room")


def test_what_fails_again_and_again_is_not_waited_for() -> None:
    failure = {"type": "Failure", "status": "True", "reason": "Forbidden", "message": "exceeded quota"}
    with pytest.raises(Impossible, match="VirtualMachine web is Starting: exceeded quota"):
        after("start", printableStatus="Starting", message="exceeded quota", conditions=[failure])
    assert not after("stop", printableStatus="Starting", message="exceeded quota", conditions=[failure])


def test_a_machine_or_instance_that_is_gone_is_not_waited_for() -> None:
    then = Asked("stop", machine_view(machine()), None)
    with pytest.raises(Impossible, match="web was deleted"):
        reached(then, None)
    with pytest.raises(Impossible, match="the instance that was asked to pause is gone"):
        after("pause", instance("Running"), printableStatus="Running", lastInstanceUID="bbbbbbbb-0002")


UNPLACED = [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient cpu."}]


@pytest.mark.parametrize(
    ("status", "child", "launcher", "said"),
    [
        (None, None, None, "no controller has answered to VirtualMachine web yet"),
        ({"observedGeneration": 2}, None, None, "no controller has answered to VirtualMachine web yet"),
        (
            {"printableStatus": "Provisioning", "message": "waits for DataVolume root: ImportInProgress, 12%"},
            instance("Pending"),
            None,
            "VirtualMachine web is Provisioning: waits for DataVolume root: ImportInProgress, 12%",
        ),
        ({"printableStatus": "Starting"}, None, None, "VirtualMachine web is Starting: its instance is about to be made"),
        ({"printableStatus": "Starting"}, instance("Pending"), None, "VirtualMachine web is Starting: its pod is about to be made"),
        ({"printableStatus": "Starting"}, instance("Scheduling"), ("", [], False), "waits for the scheduler to find a node"),
        ({"printableStatus": "Starting"}, instance("Scheduling"), ("", UNPLACED, False), "2 Insufficient cpu."),
        ({"printableStatus": "Starting"}, instance("Scheduled"), ("node-1", [], False), "it waits for node-1 to start the guest"),
        ({"printableStatus": "Stopping"}, instance("Running"), ("node-1", [], True), "asked to shut down, and is switched off at"),
    ],
)
def test_who_sees_nothing_happen_is_told_what_is_waited_for(
    status: Json | None, child: Json | None, launcher: tuple[str, list[Json], bool] | None, said: str
) -> None:
    now = machine_view(machine({"observedGeneration": 3, **status} if status is not None else None))
    seen = None
    if launcher is not None:
        written = msgspec.to_builtins(pod(phase="Pending"))
        written["metadata"]["deletionTimestamp"] = later(30) if launcher[2] else None
        written["spec"]["nodeName"], written["status"]["conditions"] = launcher[0], launcher[1]
        seen = msgspec.convert(written, Pod)
    asked = Asked("start", machine_view(machine()), None)
    assert said in waits_for(asked, now, instance_view(child) if child else None, seen)


def test_a_machine_that_no_node_takes_comes_with_what_to_do() -> None:
    status = {"observedGeneration": 3, "printableStatus": "ErrorUnschedulable", "message": "0/2 nodes are available."}
    with pytest.raises(Impossible, match=r"0/2 nodes are available; `herder explain placement vm/web` shows each node"):
        reached(Asked("start", machine_view(machine()), None), machine_view(machine(status)))

"""When a machine is started, stopped, started again, and what it shows meanwhile."""

from typing import Any

import pytest

from herder.api import labels
from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from herder.rules.machines.failures import wait_after
from tests.unit.rules.machines import NOW, Json, data_volume, instance, instance_view, later, machine, machine_view

RAN_WELL_AND_CRASHED = (-3600.0, -1.0)
SHUT_DOWN_AT_ONCE = (-3.0, -1.0)


def plan(document: Json, child: Json | None = None, **volumes: Any) -> MachinePlan:
    view = instance_view(child) if child else None
    return plan_machine(MachineSnapshot(machine_view(document), document, view, volumes), NOW)


def condition(plan: MachinePlan, kind: str) -> Json:
    return next((one for one in plan.status["conditions"] if one["type"] == kind), {})


@pytest.mark.parametrize(
    "spec", [{"runStrategy": "Always"}, {"running": True}, {"runStrategy": "RerunOnFailure"}, {"runStrategy": "Once"}]
)
def test_a_machine_that_should_run_gets_an_instance(spec: Json) -> None:
    made = plan(machine(**spec))
    assert made.create_instance is not None
    assert made.create_instance["metadata"]["name"] == "web"
    assert made.create_instance["metadata"]["labels"] == {"app": "web", "kubevirt.io/vm": "web"}
    assert made.create_instance["metadata"]["finalizers"] == ["herder.dev/instance"]
    assert made.create_instance["metadata"]["ownerReferences"][0]["uid"] == "machine-1"
    assert made.status["printableStatus"] == "Starting"
    assert [event.reason for event in made.events] == ["SuccessfulCreate"]


@pytest.mark.parametrize("spec", [{"runStrategy": "Halted"}, {"running": False}, {"runStrategy": "Manual"}])
def test_a_machine_that_should_not_run_gets_none(spec: Json) -> None:
    made = plan(machine(**spec))
    assert made.create_instance is None
    assert made.status["printableStatus"] == "Stopped"
    assert made.status["ready"] is False


def test_a_manual_machine_starts_when_asked_and_only_once() -> None:
    asked = machine(runStrategy="Manual", annotations={labels.START_REQUEST: "monday"})
    assert plan(asked).create_instance is not None
    running = plan(asked, instance("Running"))
    assert running.status["observedStartRequest"] == "monday"
    handled = machine({"observedStartRequest": "monday"}, runStrategy="Manual", annotations={labels.START_REQUEST: "monday"})
    assert plan(handled).create_instance is None
    again = machine({"observedStartRequest": "monday"}, runStrategy="Manual", annotations={labels.START_REQUEST: "tuesday"})
    assert plan(again).create_instance is not None


def test_a_request_is_not_done_before_its_instance_is_there() -> None:
    asked = machine(runStrategy="Manual", annotations={labels.START_REQUEST: "monday"})
    assert "observedStartRequest" not in plan(asked).status
    assert "observedStartRequest" not in plan(asked, instance("Succeeded", uid="old")).status


def test_a_halted_machine_ignores_a_request_to_start() -> None:
    assert plan(machine(runStrategy="Halted", annotations={labels.START_REQUEST: "x"})).create_instance is None


def test_a_manual_machine_stops_the_instance_that_was_named_and_no_other() -> None:
    running = instance("Running", uid="this")
    assert plan(machine(runStrategy="Manual", annotations={labels.STOP_REQUEST: "this"}), running).delete_instance is not None
    assert plan(machine(runStrategy="Manual", annotations={labels.STOP_REQUEST: "that"}), running).delete_instance is None


def test_a_restart_ends_the_instance_that_was_named_and_the_next_one_is_not_made_to_wait() -> None:
    failing = {"startFailure": {"consecutiveFailCount": 3, "retryAfterTimestamp": later(100)}}
    asked = machine(failing, annotations={labels.RESTART_REQUEST: "this"})
    ending = plan(asked, instance("Running", uid="this"))
    assert ending.delete_instance is not None
    assert ending.delete_instance.uid == "this"
    assert plan(asked, instance("Running", uid="another")).delete_instance is None


def test_a_halted_machine_ends_its_instance() -> None:
    ending = plan(machine(runStrategy="Halted"), instance("Running"))
    assert ending.delete_instance is not None
    assert ending.delete_instance.uid == "aaaaaaaa-0001"
    assert plan(machine(runStrategy="Halted"), instance("Running", deleted=True)).delete_instance is None


@pytest.mark.parametrize(
    ("strategy", "phase", "follows"),
    [
        ("Always", "Succeeded", True),
        ("Always", "Failed", True),
        ("RerunOnFailure", "Succeeded", False),
        ("RerunOnFailure", "Failed", True),
        ("Manual", "Failed", False),
        ("Once", "Failed", False),
        ("Once", "Succeeded", False),
        ("Halted", "Succeeded", True),
    ],
)
def test_the_run_strategy_decides_what_follows_the_end(strategy: str, phase: str, follows: bool) -> None:
    after = plan(machine(runStrategy=strategy), instance(phase, ran=RAN_WELL_AND_CRASHED))
    assert (after.delete_instance is not None) is follows


def test_a_machine_of_once_is_not_started_a_second_time() -> None:
    assert plan(machine({"lastInstanceUID": "gone"}, runStrategy="Once")).create_instance is None


def test_failures_to_start_are_counted_once_each_and_made_to_wait_ever_longer() -> None:
    failed = plan(machine(), instance("Failed", uid="one", reason="Unsupported", message="no such machine type"))
    failure = failed.status["startFailure"]
    assert failure["consecutiveFailCount"] == 1
    assert failure["retryAfterTimestamp"] == later(10)
    assert failed.delete_instance is not None
    assert failed.status["printableStatus"] == "CrashLoopBackOff"
    assert "no such machine type" in failed.status["message"]
    assert condition(failed, "Failure")["status"] == "True"

    seen_again = plan(machine({"startFailure": failure}), instance("Failed", uid="one"))
    assert seen_again.status["startFailure"]["consecutiveFailCount"] == 1
    second = plan(machine({"startFailure": failure}), instance("Failed", uid="two"))
    assert second.status["startFailure"]["consecutiveFailCount"] == 2
    assert second.status["startFailure"]["retryAfterTimestamp"] == later(20)
    assert second.status["startFailure"]["firstFailureTimestamp"] == failure["firstFailureTimestamp"]


def test_while_it_waits_nothing_is_made_and_it_knows_when_to_look_again() -> None:
    waiting = machine({"startFailure": {"consecutiveFailCount": 1, "retryAfterTimestamp": later(7)}})
    made = plan(waiting)
    assert made.create_instance is None
    assert made.next_look == pytest.approx(7)
    over = machine({"startFailure": {"consecutiveFailCount": 1, "retryAfterTimestamp": later(-1)}})
    assert plan(over).create_instance is not None


def test_the_wait_doubles_up_to_five_minutes() -> None:
    assert [wait_after(times) for times in (0, 1, 2, 3, 6, 100)] == [0, 10, 20, 40, 300, 300]


def test_a_guest_that_shuts_itself_down_at_once_again_and_again_is_made_to_wait_from_the_second_time_on() -> None:
    first = plan(machine(), instance("Succeeded", uid="one", ran=SHUT_DOWN_AT_ONCE)).status["startFailure"]
    assert (first["consecutiveCrashCount"], first["consecutiveFailCount"]) == (1, 0)
    assert first["retryAfterTimestamp"] == later(0)
    assert plan(machine({"startFailure": first})).create_instance is not None
    second = plan(machine({"startFailure": first}), instance("Succeeded", uid="two", ran=SHUT_DOWN_AT_ONCE))
    assert second.status["startFailure"]["consecutiveCrashCount"] == 2
    assert second.status["startFailure"]["retryAfterTimestamp"] == later(10)
    assert second.status["printableStatus"] == "CrashLoopBackOff"
    seen_again = plan(machine({"startFailure": first}), instance("Succeeded", uid="one", ran=SHUT_DOWN_AT_ONCE))
    assert seen_again.status["startFailure"]["consecutiveCrashCount"] == 1


def test_one_that_nobody_saw_running_before_it_shut_itself_down_started_all_the_same() -> None:
    assert plan(machine(), instance("Succeeded")).status["startFailure"]["consecutiveFailCount"] == 0


def test_who_ran_for_a_while_or_was_asked_to_shut_down_or_need_not_run_again_has_not_failed() -> None:
    assert "startFailure" not in plan(machine(), instance("Succeeded", ran=(-12, -1))).status
    asked = instance("Succeeded", ran=SHUT_DOWN_AT_ONCE)
    asked["metadata"]["deletionTimestamp"] = later(0)
    assert "startFailure" not in plan(machine(), asked).status
    assert "startFailure" not in plan(machine(runStrategy="RerunOnFailure"), instance("Succeeded", ran=SHUT_DOWN_AT_ONCE)).status


def test_a_guest_that_ran_well_is_started_again_at_once() -> None:
    crashed = plan(machine({"startFailure": {"consecutiveFailCount": 2}}), instance("Failed", ran=RAN_WELL_AND_CRASHED))
    assert "startFailure" not in crashed.status
    assert crashed.delete_instance is not None
    assert crashed.next_look is None


def test_data_volumes_are_made_from_their_templates_and_belong_to_the_machine() -> None:
    template = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": {}}}
    made = plan(machine(dataVolumeTemplates=[template]))
    (volume,) = made.create_data_volumes
    assert volume["metadata"]["name"] == "disk"
    assert volume["metadata"]["ownerReferences"][0]["uid"] == "machine-1"
    assert volume["spec"] == template["spec"]
    assert not plan(machine(dataVolumeTemplates=[template]), disk=data_volume("disk")).create_data_volumes


def test_a_data_volume_of_someone_else_is_never_adopted() -> None:
    template = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": {}}}
    made = plan(machine(dataVolumeTemplates=[template]), disk=data_volume("disk", owner="somebody"))
    assert made.create_instance is None
    assert made.status["printableStatus"] == "DataVolumeError"
    assert made.status["reason"] == "VolumeNotOwned"
    assert "disk exists and belongs to someone else" in made.status["message"]


def test_an_instance_of_someone_else_is_left_alone_and_waited_for() -> None:
    made = plan(machine(runStrategy="Halted"), instance("Running", owner="another-machine"))
    assert made.delete_instance is None
    assert made.create_instance is None
    assert made.status["reason"] == "InstanceNotOwned"


FAILED_DISK = data_volume("disk", "Failed", message="404 from the server")
FAILED_FOR_GOOD = "DataVolume disk failed for good: 404 from the server"


@pytest.mark.parametrize(
    ("document", "child", "word"),
    [
        pytest.param(machine(), None, "DataVolumeError", id="before its instance is made"),
        pytest.param(
            machine(),
            instance("Pending", reason="DataVolumeFailed", message=FAILED_FOR_GOOD),
            "DataVolumeError",
            id="its instance waits",
        ),
        pytest.param(
            machine({"startFailure": {"consecutiveFailCount": 1, "retryAfterTimestamp": later(7)}}),
            None,
            "DataVolumeError",
            id="it would wait for its next start",
        ),
        pytest.param(machine(runStrategy="Halted"), None, "Stopped", id="it is kept off"),
    ],
)
def test_a_data_volume_that_failed_for_good_is_shown_and_named(document: Json, child: Json | None, word: str) -> None:
    shown = plan(document, child, disk=FAILED_DISK)
    assert (shown.status["printableStatus"], shown.status["reason"]) == (word, "DataVolumeFailed")
    assert shown.status["message"] == FAILED_FOR_GOOD
    assert condition(shown, "Failure")["reason"] == "DataVolumeFailed"


@pytest.mark.parametrize("phase", ["Pending", "ImportScheduled", "ImportInProgress"])
def test_a_data_volume_that_is_tried_again_has_not_failed_for_good(phase: str) -> None:
    retried = data_volume("disk", phase, message="503 from the server", restartCount=4)
    shown = plan(machine(), disk=retried)
    assert shown.status["printableStatus"] == "Starting"
    assert "reason" not in shown.status


@pytest.mark.parametrize(
    ("child", "word"),
    [
        (instance("Pending"), "Starting"),
        (instance("Pending", reason="WaitingForDataVolume"), "Provisioning"),
        (instance("Pending", reason="MissingClaim"), "ErrorPvcNotFound"),
        (instance("Pending", reason="MissingSecret"), "Starting"),
        (instance("Scheduling"), "Starting"),
        (instance("Scheduling", reason="Unschedulable"), "ErrorUnschedulable"),
        (instance("Running"), "Running"),
        (instance("Running", migrationState={"migrationName": "m"}), "Migrating"),
        (instance("Running", migrationState={"migrationName": "m", "completed": True}), "Running"),
        (instance("Running", conditions=[{"type": "Paused", "status": "True"}]), "Paused"),
        (instance("Running", deleted=True), "Stopping"),
        (instance("Unknown"), "Unknown"),
    ],
)
def test_the_state_in_one_word(child: Json, word: str) -> None:
    assert plan(machine(), child).status["printableStatus"] == word


def test_a_machine_that_is_deleted_makes_nothing_more() -> None:
    template = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": {}}}
    made = plan(machine(deleted=True, dataVolumeTemplates=[template]))
    assert made.create_instance is None
    assert not made.create_data_volumes
    assert made.status["printableStatus"] == "Terminating"


def test_a_changed_template_asks_for_a_restart_and_restarts_nothing() -> None:
    made = plan(machine())
    assert made.create_instance is not None
    before = made.create_instance["metadata"]["annotations"][labels.TEMPLATE_HASH]
    same = plan(machine(), instance("Running", annotations={labels.TEMPLATE_HASH: before}))
    assert not condition(same, "RestartRequired")
    changed = machine(template={"spec": {"domain": {"cpu": {"cores": 4}}}})
    after = plan(changed, instance("Running", annotations={labels.TEMPLATE_HASH: before}))
    assert condition(after, "RestartRequired")["status"] == "True"
    assert after.delete_instance is None


def test_ready_follows_the_instance_and_keeps_the_time_of_its_last_change() -> None:
    ready = [{"type": "Ready", "status": "True", "reason": "GuestRunning", "message": ""}]
    first = plan(machine(), instance("Running", conditions=ready))
    assert first.status["ready"] is True
    known = [{**condition(first, "Ready"), "lastTransitionTime": later(-500)}]
    second = plan(machine({"conditions": known}), instance("Running", conditions=ready))
    assert condition(second, "Ready")["lastTransitionTime"] == later(-500)
    lost = plan(machine({"conditions": known}), instance("Running"))
    assert condition(lost, "Ready")["status"] == "False"
    assert condition(lost, "Ready")["lastTransitionTime"] == later(0)


FAILS = {"type": "Synchronized", "status": "False", "reason": "Invalid", "message": "the pod is invalid"}


@pytest.mark.parametrize(
    ("document", "child"),
    [
        (machine({"conditions": [FAILS]}), None),
        (machine(), instance(None, conditions=[FAILS])),
        (machine(), instance("Scheduled", conditions=[FAILS])),
    ],
)
def test_a_machine_that_goes_no_further_says_what_fails(document: Json, child: Json | None) -> None:
    shown = plan(document, child).status
    assert (shown["printableStatus"], shown["reason"], shown["message"]) == ("Starting", "Invalid", "the pod is invalid")
    failure = next(one for one in shown["conditions"] if one["type"] == "Failure")
    assert (failure["status"], failure["reason"], failure["message"]) == ("True", "Invalid", "the pod is invalid")
    assert all(one["type"] != "Synchronized" for one in shown["conditions"]), "it is the kit's to say"


def test_what_a_machine_says_of_itself_stands_before_what_fails() -> None:
    shown = plan(machine({"conditions": [FAILS]}), instance("Pending", reason="MissingSecret", message="waits for Secret a")).status
    assert (shown["reason"], shown["message"]) == ("MissingSecret", "waits for Secret a")
    assert any(one["type"] == "Failure" and one["message"] == "the pod is invalid" for one in shown["conditions"])

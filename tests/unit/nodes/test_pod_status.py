"""A pod's status, as people and controllers read it."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import report_of
from herder.nodes.health import Health
from herder.nodes.pod_status import differs, patch_of, pod_status, waiting_status
from herder.nodes.runtimes.base import GuestStatus
from tests.unit.rules.machines import NOW, later

Json = dict[str, Any]


def launcher(status: Json | None = None) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "shop", "uid": "u", "annotations": {labels.GUEST: "{}"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "compute", "image": "herder.dev/guest"}]},
        "status": status or {},
    }
    return msgspec.convert(document, Pod)


def condition(status: Json, kind: str) -> Json:
    return next(one for one in status["conditions"] if one["type"] == kind)


@pytest.mark.parametrize(
    ("state", "phase", "container"),
    [
        ("Preparing", "Pending", "waiting"),
        ("Incoming", "Pending", "waiting"),
        ("Running", "Running", "running"),
        ("Paused", "Running", "running"),
        ("ShutDown", "Succeeded", "terminated"),
        ("HandedOver", "Succeeded", "terminated"),
        ("Crashed", "Failed", "terminated"),
        ("Failed", "Failed", "terminated"),
    ],
)
def test_the_phase_follows_the_guest(state: Any, phase: str, container: str) -> None:
    shown = pod_status(launcher(), GuestStatus(state), "10.0.0.1", NOW)
    assert shown["phase"] == phase
    assert list(shown["containerStatuses"][0]["state"]) == [container]
    assert shown["hostIP"] == "10.0.0.1"
    assert condition(shown, labels.GUEST_CONDITION)["reason"] == state


@pytest.mark.parametrize(("state", "alive"), [("Preparing", None), ("Incoming", None), ("Running", True), ("Crashed", True)])
def test_a_guest_that_does_not_run_yet_does_not_say_that_it_lives(state: Any, alive: bool | None) -> None:
    shown = pod_status(launcher(), GuestStatus(state), "", NOW)
    report = report_of(launcher({"conditions": shown["conditions"]}))
    assert report is not None
    assert report.alive is alive


def test_a_running_guest_is_ready_unless_its_probe_says_no() -> None:
    assert condition(pod_status(launcher(), GuestStatus("Running"), "", NOW), "Ready")["status"] == "True"
    waiting = pod_status(launcher(), GuestStatus("Running"), "", NOW, Health(ready=False, not_ready_because="port 80 is closed"))
    assert condition(waiting, "Ready")["status"] == "False"
    assert condition(waiting, "Ready")["message"] == "port 80 is closed"
    assert condition(pod_status(launcher(), GuestStatus("Paused"), "", NOW), "Ready")["status"] == "False"


def test_the_report_can_be_read_back() -> None:
    shown = pod_status(launcher(), GuestStatus("Running", started_at=NOW, not_migratable_because="too old"), "", NOW)
    report = report_of(launcher({"conditions": shown["conditions"]}))
    assert report is not None
    assert report.state == "Running"
    assert not report.migratable
    assert report.not_migratable_because == "too old"
    assert report.started_at is not None
    assert report.started_at.timestamp() == NOW


def test_a_failure_says_why() -> None:
    shown = pod_status(launcher(), GuestStatus("Failed", "Unsupported", "no such machine type"), "", NOW)
    assert (shown["reason"], shown["message"]) == ("Unsupported", "no such machine type")
    ended = shown["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 1
    assert ended["message"] == "no such machine type"


def test_what_is_waited_for_is_said() -> None:
    shown = waiting_status(launcher(), "MissingSecret", "waits for Secret keys", "", NOW)
    assert shown["phase"] == "Pending"
    assert shown["containerStatuses"][0]["state"]["waiting"] == {"reason": "MissingSecret", "message": "waits for Secret keys"}


def test_the_same_status_is_not_written_twice() -> None:
    first = pod_status(launcher(), GuestStatus("Running", started_at=NOW), "10.0.0.1", NOW)
    assert differs({}, first)
    # Another writer's condition beside ours, and what the server filled in.
    stored = {**first, "conditions": [*first["conditions"], {"type": "PodScheduled", "status": "True"}], "qosClass": "Burstable"}
    again = pod_status(launcher(stored), GuestStatus("Running", started_at=NOW), "10.0.0.1", NOW + 60)
    assert not differs(stored, again), "times of what did not change stay"
    assert differs(stored, pod_status(launcher(stored), GuestStatus("Paused", started_at=NOW), "10.0.0.1", NOW))


def test_why_it_was_not_ready_is_taken_away_when_it_is() -> None:
    waits = pod_status(launcher(), GuestStatus("Incoming"), "10.0.0.1", NOW)
    runs = pod_status(launcher(waits), GuestStatus("Running", started_at=NOW), "10.0.0.1", NOW)
    assert condition(waits, "Ready")["message"] == "the guest is Incoming"
    said = condition(patch_of(waits, runs), "Ready")
    assert (said["status"], said["reason"], said["message"]) == ("True", None, None)


def test_a_time_that_a_real_api_server_writes_as_null_is_no_difference() -> None:
    wanted = pod_status(launcher(), GuestStatus("Running", started_at=NOW), "10.0.0.1", NOW)
    known = {**wanted, "conditions": [{**one, "lastProbeTime": None} for one in wanted["conditions"]]}
    assert not differs(known, wanted)
    assert patch_of(known, wanted) == wanted


def test_an_end_keeps_its_time() -> None:
    first = pod_status(launcher(), GuestStatus("ShutDown", started_at=NOW - 5), "", NOW)
    again = pod_status(launcher(first), GuestStatus("ShutDown", started_at=NOW - 5), "", NOW + 60)
    assert again["containerStatuses"][0]["state"]["terminated"]["finishedAt"] == later(0)
    assert not differs(first, again)

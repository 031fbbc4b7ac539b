"""What the table says of pods in every state (each row was seen in a real kube-apiserver's table)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.server.tables.ages import seconds_of
from herder.server.tables.pods import PODS, decode_pod

NOW = seconds_of("2026-01-02T03:00:00Z")
RESTARTED = "2026-01-02T02:54:30Z"
RUNNING = {"running": {"startedAt": "2026-01-02T02:59:00Z"}}
INITS = [{"name": "first"}, {"name": "second"}]
SIDECAR = [{"name": "side", "restartPolicy": "Always"}, {"name": "second"}]


def ended(code: int = 0, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": RESTARTED, **more}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def state(
    name: str = "c", now: dict[str, Any] | None = None, ready: bool = False, restarts: int = 0, **more: Any
) -> dict[str, Any]:
    last = {"lastState": ended(1)} if restarts else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": now or {}, **last, **more}


def true(*types: str) -> list[dict[str, str]]:
    return [{"type": one, "status": "True"} for one in types]


def pod(status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-02T02:59:15Z", **metadata},
        "spec": {"containers": [{"name": "c"}], **(spec or {})},
        "status": status,
    }


TWO = {"containers": [{"name": "c"}, {"name": "d"}]}
COMPLETED = state(now=ended(0, reason="Completed"))
OTHER_RUNS = state("d", RUNNING, True)

STATES: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "pending": (pod({"phase": "Pending"}), ("0/1", "Pending", "0")),
    "running": (pod({"phase": "Running", "containerStatuses": [state(now=RUNNING, ready=True)]}), ("1/1", "Running", "0")),
    "crashing": (
        pod({"phase": "Running", "containerStatuses": [state(now=waiting("CrashLoopBackOff"), restarts=4)]}),
        ("0/1", "CrashLoopBackOff", "4 (5m30s ago)"),
    ),
    "evicted": (pod({"phase": "Failed", "reason": "Evicted"}), ("0/1", "Evicted", "0")),
    "succeeded": (pod({"phase": "Succeeded", "containerStatuses": [COMPLETED]}), ("0/1", "Completed", "0")),
    "failed": (pod({"phase": "Failed", "containerStatuses": [state(now=ended(2, reason="Error"))]}), ("0/1", "Error", "0")),
    "killed": (pod({"phase": "Failed", "containerStatuses": [state(now=ended(137, signal=9))]}), ("0/1", "Signal:9", "0")),
    "exited": (pod({"phase": "Failed", "containerStatuses": [state(now=ended(3))]}), ("0/1", "ExitCode:3", "0")),
    "one of two done, ready": (
        pod({"phase": "Running", "containerStatuses": [COMPLETED, OTHER_RUNS], "conditions": true("Ready")}, TWO),
        ("1/2", "Running", "0"),
    ),
    "one of two done, not ready": (
        pod({"phase": "Running", "containerStatuses": [COMPLETED, OTHER_RUNS]}, TWO),
        ("1/2", "NotReady", "0"),
    ),
    "one of two done, one failed": (
        pod({"phase": "Running", "containerStatuses": [COMPLETED, state("d", ended(1, reason="Error"))]}, TWO),
        ("0/2", "Error", "0"),
    ),
    "first init container runs": (
        pod({"phase": "Pending", "initContainerStatuses": [state("first", RUNNING)]}, {"initContainers": INITS}),
        ("0/1", "Init:0/2", "0"),
    ),
    "second init container cannot start": (
        pod(
            {
                "phase": "Pending",
                "initContainerStatuses": [state("first", ended()), state("second", waiting("ImagePullBackOff"), restarts=2)],
            },
            {"initContainers": INITS},
        ),
        ("0/1", "Init:ImagePullBackOff", "2 (5m30s ago)"),
    ),
    "second init container is waiting for its turn": (
        pod(
            {
                "phase": "Pending",
                "initContainerStatuses": [state("first", ended()), state("second", waiting("PodInitializing"))],
            },
            {"initContainers": INITS},
        ),
        ("0/1", "Init:1/2", "0"),
    ),
    "init container failed": (
        pod({"phase": "Pending", "initContainerStatuses": [state("first", ended(1))]}, {"initContainers": INITS}),
        ("0/1", "Init:ExitCode:1", "0"),
    ),
    "init container was killed": (
        pod({"phase": "Pending", "initContainerStatuses": [state("first", ended(1, signal=9))]}, {"initContainers": INITS}),
        ("0/1", "Init:Signal:9", "0"),
    ),
    "init container failed with a reason": (
        pod({"phase": "Pending", "initContainerStatuses": [state("first", ended(1, reason="Error"))]}, {"initContainers": INITS}),
        ("0/1", "Init:Error", "0"),
    ),
    "a sidecar counts as a container": (
        pod(
            {
                "phase": "Running",
                "initContainerStatuses": [
                    state("side", RUNNING, True, 3, started=True),
                    state("second", ended(), restarts=7),
                ],
                "containerStatuses": [state(now=RUNNING, ready=True, restarts=1)],
                "conditions": true("Initialized"),
            },
            {"initContainers": SIDECAR},
        ),
        ("2/2", "Running", "4 (5m30s ago)"),
    ),
    "a sidecar that has not started": (
        pod(
            {"phase": "Pending", "initContainerStatuses": [state("side", RUNNING, restarts=3, started=False)]},
            {"initContainers": SIDECAR},
        ),
        ("0/2", "Init:0/2", "3 (5m30s ago)"),
    ),
    "gated": (
        pod({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
        ("0/1", "SchedulingGated", "0"),
    ),
    "being deleted": (
        pod({"phase": "Running", "containerStatuses": [state(now=RUNNING, ready=True)]}, deletionTimestamp=RESTARTED),
        ("1/1", "Terminating", "0"),
    ),
    "deleted while its node is lost": (
        pod({"phase": "Running", "reason": "NodeLost"}, deletionTimestamp=RESTARTED),
        ("0/1", "Unknown", "0"),
    ),
    "deleted after it succeeded": (
        pod({"phase": "Succeeded", "containerStatuses": [COMPLETED]}, deletionTimestamp=RESTARTED),
        ("0/1", "Completed", "0"),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_ready_status_and_restarts_are_told_as_kubernetes_tells_them(name: str) -> None:
    shown, (ready, status, restarts) = STATES[name]
    assert PODS.cells(shown, NOW)[:5] == ["p", ready, status, restarts, "45s"]


@pytest.mark.parametrize("name", STATES)
def test_the_fields_that_are_decoded_are_all_that_the_row_needs(name: str) -> None:
    whole = STATES[name][0]
    assert PODS.cells(decode_pod(msgspec.json.encode(whole)), NOW) == PODS.cells(whole, NOW)


def test_a_pod_of_an_odd_shape_is_decoded_whole() -> None:
    odd = {"metadata": {"name": "p", "annotations": {"a": 1}}, "spec": {}}
    assert decode_pod(msgspec.json.encode(odd)) == odd


def test_wide_columns_say_where_the_pod_is() -> None:
    gates = [{"conditionType": "a/b"}, {"conditionType": "c/d"}]
    status = {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2", "conditions": true("a/b")}
    assert PODS.cells(pod(status, {"nodeName": "n1", "readinessGates": gates}), NOW)[5:] == ["10.0.0.1", "n1", "n2", "1/2"]
    assert PODS.cells(pod({}), NOW)[5:] == ["<none>"] * 4
    assert [column.name for column in PODS.columns if column.priority] == ["IP", "Node", "Nominated Node", "Readiness Gates"]


@pytest.mark.parametrize(("phase", "reasons"), [("Succeeded", ["Succeeded"]), ("Failed", ["Failed"]), ("Running", [])])
def test_a_pod_that_has_ended_is_marked_as_completed(phase: str, reasons: list[str]) -> None:
    assert PODS.conditions is not None
    assert [one["reason"] for one in PODS.conditions(pod({"phase": phase})) or []] == reasons


def test_a_bookmark_has_a_row_too() -> None:
    bookmark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "creationTimestamp": None}}
    assert PODS.cells(bookmark, NOW)[:5] == ["", "0/0", "", "0", "<unknown>"]

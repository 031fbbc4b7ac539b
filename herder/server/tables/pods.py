"""The table of pods. Lists of thousands are printed with it, so it looks at each field once."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from herder.api.ages import human_duration
from herder.server.tables.ages import age, seconds_of
from herder.server.tables.columns import AGE, NAME, Printer, text, wide

COLUMNS = (
    NAME,
    text("Ready", "Containers that are ready, of all."),
    text("Status", "What the pod and its containers are doing, in one word."),
    text("Restarts", "How often containers were restarted, and when last."),
    AGE,
    wide("IP", "First address of the pod."),
    wide("Node", "Node that the pod is bound to."),
    wide("Nominated Node", "Node where room is being made for the pod."),
    wide("Readiness Gates", "Extra readiness conditions that are true, of all."),
)

COMPLETED = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (("Succeeded", "All containers of the pod have succeeded."), ("Failed", "The pod has failed."))
}

Restarts = tuple[int, float]  # how many, and when the last was


class _Metadata(TypedDict, total=False):
    name: str
    creationTimestamp: str | None
    deletionTimestamp: str | None
    annotations: dict[str, str] | None


class _Container(TypedDict, total=False):
    name: str
    restartPolicy: str | None


class _Spec(TypedDict, total=False):
    nodeName: str | None
    containers: list[_Container] | None
    initContainers: list[_Container] | None
    readinessGates: list[dict[str, str]] | None


class _Pod(TypedDict, total=False):
    """The fields that the table shows: the others are most of a pod's bytes, and most of the time to decode it."""

    metadata: _Metadata
    spec: _Spec | None
    status: dict[str, Any] | None


_decoder = msgspec.json.Decoder(_Pod)


def decode_pod(raw: bytes) -> dict[str, Any]:
    try:
        found: Any = _decoder.decode(raw)
    except msgspec.ValidationError:
        # Oddly shaped, from before a schema was kept: a list must still be shown.
        return msgspec.json.decode(raw)
    return found


def print_pod(pod: dict[str, Any], now: float) -> list[Any]:
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    initializing, reason, ready, restarts, sidecars = _init_state(spec, status, _own_reason(status, conditions))
    if not initializing or _is_true(conditions, "Initialized"):
        reason, running, restarts = _container_state(status, conditions, reason, sidecars)
        ready += running
    if meta.get("deletionTimestamp"):
        reason = _deleted_reason(status, reason)
    return [
        meta.get("name", ""),
        f"{ready}/{_total(spec)}",
        reason,
        _restarts(restarts, now),
        age(meta.get("creationTimestamp"), now),
        _first_ip(status),
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, conditions),
    ]


def pod_conditions(pod: dict[str, Any]) -> list[dict[str, str]] | None:
    return COMPLETED.get((pod.get("status") or {}).get("phase") or "")


def _own_reason(status: dict[str, Any], conditions: list[dict[str, Any]]) -> str:
    for condition in conditions:
        if condition.get("reason") == "SchedulingGated" and condition.get("type") == "PodScheduled":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _sidecars(spec: dict[str, Any]) -> set[str]:
    return {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}


def _total(spec: dict[str, Any]) -> int:
    count = len(spec.get("containers") or ())
    return count + len(_sidecars(spec)) if spec.get("initContainers") else count


def _init_state(spec: dict[str, Any], status: dict[str, Any], reason: str) -> tuple[bool, str, int, Restarts, Restarts]:
    """Whether an init container still holds the pod up, what to say of it, ready sidecars, restarts of all and of sidecars."""
    ready, restarts, of_sidecars = 0, (0, 0.0), (0, 0.0)
    statuses = status.get("initContainerStatuses")
    if not statuses:
        return False, reason, ready, restarts, of_sidecars
    sidecars = _sidecars(spec)
    for position, container in enumerate(statuses):
        is_sidecar = container.get("name") in sidecars
        restarts = _with_restarts(restarts, container)
        if is_sidecar:
            of_sidecars = _with_restarts(of_sidecars, container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        progress = f"{position}/{len(spec.get('initContainers') or ())}"
        return True, f"Init:{_init_reason(state, progress)}", ready, restarts, of_sidecars
    return False, reason, ready, restarts, of_sidecars


def _init_reason(state: dict[str, Any], progress: str) -> str:
    if ended := state.get("terminated"):
        return _ended_reason(ended)
    waiting = (state.get("waiting") or {}).get("reason")
    return waiting if waiting and waiting != "PodInitializing" else progress


def _ended_reason(ended: dict[str, Any]) -> str:
    if reason := ended.get("reason"):
        return reason
    if signal := ended.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _container_state(
    status: dict[str, Any], conditions: list[dict[str, Any]], reason: str, restarts: Restarts
) -> tuple[str, int, Restarts]:
    """What the containers say together: the first one that has something to say wins, so they are read backwards."""
    running, error = 0, ""
    for container in reversed(status.get("containerStatuses") or ()):
        restarts = _with_restarts(restarts, container)
        state = container.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            reason = waiting
        elif (ended := state.get("terminated")) is not None:
            reason = _ended_reason(ended)
            error = reason if ended.get("exitCode") else error
        elif container.get("ready") and state.get("running") is not None:
            running += 1
    if reason == "Completed":
        reason = _partly_completed(conditions, running, error)
    return reason, running, restarts


def _partly_completed(conditions: list[dict[str, Any]], running: int, error: str) -> str:
    if running and _is_true(conditions, "Ready"):
        return "Running"
    return error or ("NotReady" if running else "Completed")


def _deleted_reason(status: dict[str, Any], reason: str) -> str:
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in COMPLETED else "Terminating"


def _with_restarts(restarts: Restarts, container: dict[str, Any]) -> Restarts:
    count = restarts[0] + (container.get("restartCount") or 0)
    finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
    return count, max(restarts[1], seconds_of(finished)) if finished else restarts[1]


def _restarts(restarts: Restarts, now: float) -> str:
    count, last = restarts
    return f"{count} ({human_duration(now - last)} ago)" if count and last else str(count)


def _is_true(conditions: list[dict[str, Any]], kind: str) -> bool:
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def _first_ip(status: dict[str, Any]) -> str:
    addresses = status.get("podIPs")
    return (addresses[0].get("ip") if addresses else status.get("podIP")) or "<none>"


def _gates(spec: dict[str, Any], conditions: list[dict[str, Any]]) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return "<none>"
    states = {one.get("type"): one.get("status") for one in reversed(conditions)}
    return f"{sum(states.get(gate.get('conditionType')) == 'True' for gate in gates)}/{len(gates)}"


PODS = Printer(COLUMNS, print_pod, pod_conditions, decode_pod)

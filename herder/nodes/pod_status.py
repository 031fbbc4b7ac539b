"""A pod's status as a kubelet would write it, with the guest's own report in a condition."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.core.containers import Container
from herder.api.guest import ENDED, NOT_YET, GuestReport, MigrationReport
from herder.api.imports import ImportReport
from herder.api.world import timestamp
from herder.nodes.health import HEALTHY, Health
from herder.nodes.runtimes.base import GuestStatus

Document = dict[str, Any]
_SUCCESS = ("ShutDown", "HandedOver", "Saved")


def phase_of(status: GuestStatus, migration: MigrationReport | None = None) -> str:
    if status.state == "HandedOver" and migration is not None and not migration.completed:
        # The target still needs something of it.
        return "Running"
    if status.state in ENDED:
        return "Succeeded" if status.state in _SUCCESS else "Failed"
    return "Pending" if status.state in NOT_YET else "Running"


def pod_status(
    pod: Pod,
    status: GuestStatus,
    address: str,
    now: float,
    health: Health = HEALTHY,
    migration: MigrationReport | None = None,
) -> Document:
    phase = phase_of(status, migration)
    running = phase == "Running"
    ready = running and status.state == "Running" and health.ready
    started = timestamp(status.started_at if status.started_at is not None else now)
    document: Document = {
        "phase": phase,
        "hostIP": address,
        "startTime": timestamp(pod.status.start_time.timestamp()) if pod.status.start_time else timestamp(now),
        "conditions": _conditions(pod, status, phase, ready, now, health, migration),
        "containerStatuses": [_container(one, status, phase, health, started, now, pod) for one in pod.spec.containers or ()],
    }
    if status.addresses:
        document["podIP"] = status.addresses[0]
        document["podIPs"] = [{"ip": one} for one in status.addresses]
    if phase == "Failed":
        document |= {"reason": status.reason or "Error", "message": status.message}
    return document


def waiting_status(pod: Pod, reason: str, message: str, address: str, now: float) -> Document:
    """Bound to this node and not yet started, because something is missing."""
    return pod_status(pod, GuestStatus("Preparing", reason, message), address, now)


def differs(status: Document, wanted: Document) -> bool:
    """Whether it has to be written. Conditions of other writers are not ours to compare."""
    known = _conditions_of(status)
    for name, value in wanted.items():
        if name == "conditions":
            if any(known.get(one["type"]) != one for one in value):
                return True
        elif name == "containerStatuses":
            if _states(status.get(name, ())) != _states(value):
                return True
        elif status.get(name) != value:
            return True
    return False


def patch_of(status: Document, wanted: Document) -> Document:
    """What a patch has to say. Conditions are merged one by one: a reason that is true no longer has to be taken away."""
    known = _conditions_of(status)
    conditions = [{**dict.fromkeys(known.get(one["type"], ())), **one} for one in wanted["conditions"]]
    return {**wanted, "conditions": conditions}


def _conditions_of(status: Document) -> dict[str, Document]:
    """By their type. A real API server writes out times that nobody set, as null."""
    listed = status.get("conditions", ())
    return {one["type"]: {name: value for name, value in one.items() if value is not None} for one in listed}


def _states(statuses: Any) -> list[Any]:
    """Of each container what can change. The server fills in what we leave out."""
    return [(one.get("name"), one.get("ready"), one.get("started"), one.get("state")) for one in statuses]


def _conditions(
    pod: Pod, status: GuestStatus, phase: str, ready: bool, now: float, health: Health, migration: MigrationReport | None
) -> list[Document]:
    over = phase in ("Succeeded", "Failed")
    why = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"} if over else _not_ready(status, ready, health)
    gates = _closed_gates(pod) if ready else why
    wanted: list[Document] = [
        {"type": "Initialized", "status": "True"},
        {"type": "ContainersReady", "status": "True" if ready else "False", **why},
        {"type": "Ready", "status": "False" if gates else "True", **gates},
    ]
    if labels.GUEST in pod.annotations:
        wanted.append(_guest(status, health, migration))
    if labels.IMPORT in pod.annotations:
        wanted.append(_import(status))
    return [_dated(one, pod, now) for one in wanted]


def _not_ready(status: GuestStatus, ready: bool, health: Health) -> Document:
    if ready:
        return {}
    if status.state != "Running":
        return {"reason": status.reason or "ContainersNotReady", "message": status.message or f"the guest is {status.state}"}
    return {"reason": "ContainersNotReady", "message": health.not_ready_because or "the readiness probe has not passed"}


def _closed_gates(pod: Pod) -> Document:
    """What others have to say first of a pod whose containers are ready; empty where they have."""
    known = {one.type: one.status for one in pod.status.conditions}
    closed = [one.condition_type for one in pod.spec.readiness_gates if known.get(one.condition_type) != "True"]
    if not closed:
        return {}
    told = [
        f'the status of pod readiness gate "{gate}" is not "True", but {known[gate]}'
        if gate in known
        else f'corresponding condition of pod readiness gate "{gate}" does not exist.'
        for gate in closed
    ]
    return {"reason": "ReadinessGatesNotReady", "message": ", ".join(told)}


def _guest(status: GuestStatus, health: Health, migration: MigrationReport | None) -> Document:
    report = GuestReport(
        state=status.state,
        reason=status.reason,
        message=status.message,
        started=status.started,
        started_at=_moment(status.started_at),
        alive=None if status.state in NOT_YET else health.alive,
        addresses=status.addresses,
        migratable=not status.not_migratable_because,
        not_migratable_because=status.not_migratable_because,
        migration=migration,
        resumed=status.resumed,
        not_resumed_because=status.not_resumed_because,
    )
    alive = "True" if status.state in ("Running", "Paused") else "False"
    return {
        "type": labels.GUEST_CONDITION,
        "status": alive,
        "reason": status.state,
        "message": msgspec.json.encode(report).decode(),
    }


def _import(status: GuestStatus) -> Document:
    report = status.imported or ImportReport(reason=status.reason, message=status.message)
    done = "True" if status.state == "ShutDown" else "False"
    text = msgspec.json.encode(report).decode()
    return {"type": labels.IMPORT_CONDITION, "status": done, "reason": status.state, "message": text}


def _moment(seconds: float | None) -> datetime.datetime | None:
    return None if seconds is None else datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def _dated(wanted: Document, pod: Pod, now: float) -> Document:
    old = next((one for one in pod.status.conditions if one.type == wanted["type"]), None)
    kept = old.last_transition_time if old is not None and old.status == wanted["status"] else None
    return {**wanted, "lastTransitionTime": timestamp(kept.timestamp() if kept else now)}


def _container(
    container: Container, status: GuestStatus, phase: str, health: Health, started: str, now: float, pod: Pod
) -> Document:
    runs = phase == "Running"
    # Of a machine all are ready, or none.
    ready = container.name not in health.unready if health.unready else health.ready
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": runs and status.state == "Running" and ready,
        "started": runs and container.name not in health.unstarted,
        "restartCount": 0,
        "state": _state(status, phase, started, _finished_at(pod, container.name) or timestamp(now)),
    }


def _state(status: GuestStatus, phase: str, started: str, finished: str) -> Document:
    if phase == "Pending":
        word = status.reason or "ContainerCreating"
        return {"waiting": {"reason": word, **({"message": status.message} if status.message else {})}}
    if phase == "Running":
        return {"running": {"startedAt": started}}
    good = phase == "Succeeded"
    ended: Document = {"exitCode": 0 if good else 1, "reason": "Completed" if good else "Error"}
    if status.message:
        ended["message"] = status.message
    return {"terminated": {**ended, "startedAt": started, "finishedAt": finished}}


def _finished_at(pod: Pod, name: str) -> str | None:
    """As it was said first."""
    for one in pod.status.container_statuses:
        if one.name == name and one.state.terminated is not None and one.state.terminated.finished_at is not None:
            return timestamp(one.state.terminated.finished_at.timestamp())
    return None

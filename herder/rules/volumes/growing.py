"""The plan for one claim that asks for more than it has: its disk grows where it is, then the volume and the claim say so.

A pod on a node that has the disk does it, one at a time: where guests have it open, on each of their nodes in turn, so that they
see it. The claim's capacity is written last, and until then all of it is done again, whoever ends meanwhile. What is known of the
pods that were (which try, how large, when it ended) is known from the pods themselves: they stay until the next may be made.
"""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.core.storage import ClaimCondition
from herder.api.imports import ImportDefinition, import_of, import_report_of
from herder.api.kinds import DataVolume
from herder.api.quantity import canonical, parse_quantity
from herder.rules.plans import Delete, Document, Event, moment, text_of
from herder.rules.volumes.failures import wait_after
from herder.rules.volumes.importer import attempt_of, ended_at, growing_pod, requested
from herder.rules.volumes.provision import is_ours, storage_of
from herder.rules.volumes.verification import is_bound

# As Kubernetes' own resizers call them.
RESIZING, RESIZE_ERROR = "Resizing", "ControllerResizeError"
IN_PROGRESS = "ControllerResizeInProgress"
FINISHED = ("Succeeded", "Failed")
# Seconds between two pods for the same volume: whoever asks for more a thousand times a second gets it in steps.
SPACING = 5.0


class GrowthSnapshot(msgspec.Struct, frozen=True):
    claim: PersistentVolumeClaim
    # The one that the claim names.
    volume: PersistentVolume | None = None
    volume_document: Document = {}
    # Of the claim's name, whoever it is of.
    data_volume: DataVolume | None = None
    # Those that grow the volume.
    pods: tuple[Pod, ...] = ()
    # Nodes with guests that have the disk, or are about to.
    users: tuple[str, ...] = ()
    # Nodes that are gone for good.
    lost: frozenset[str] = frozenset()
    # A DataVolume whose pod copies the claim.
    copied_by: str = ""


class GrowthPlan(msgspec.Struct, frozen=True):
    # In this order. Capacity of the volume: the disk is so large by now.
    capacity: str = ""
    # A strategic patch of the claim's status.
    status: Document | None = None
    create_pod: Document | None = None
    delete_pods: tuple[Delete, ...] = ()
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def wants_more(claim: PersistentVolumeClaim) -> bool:
    """Than it has. One that nobody has told yet what it has waits for that."""
    given = claim.status.capacity.get("storage")
    return given is not None and requested(claim) > parse_quantity(given).value()


def plan_growth(snapshot: GrowthSnapshot, now: float) -> GrowthPlan:
    claim, volume = snapshot.claim, snapshot.volume
    if volume is None or claim.being_deleted or not is_ours(volume) or not is_bound(claim, volume):
        return GrowthPlan(delete_pods=_ends(snapshot, snapshot.pods))
    latest = max(snapshot.pods, key=attempt_of, default=None)
    if latest is not None and (not wants_more(claim) or _is_of_before(latest, claim)):
        return _cleared(snapshot, latest, now)
    if not wants_more(claim):
        return GrowthPlan()
    if latest is None:
        return _first(snapshot, volume, now)
    if latest.status.phase not in FINISHED:
        return _under_way(snapshot, latest, now)
    if latest.status.phase == "Failed":
        return _failed(snapshot, volume, latest, now)
    return _grown(snapshot, volume, latest, now)


def _first(snapshot: GrowthSnapshot, volume: PersistentVolume, now: float) -> GrowthPlan:
    claim, filled_by = snapshot.claim, snapshot.data_volume
    if filled_by is not None and filled_by.uid == claim.controller_uid:
        phase = filled_by.status.phase if filled_by.status else None
        if phase != "Succeeded":
            return GrowthPlan(status=_shown(claim, now, f"waits for DataVolume {filled_by.name} to be filled"))
    if snapshot.copied_by:
        return GrowthPlan(status=_shown(claim, now, f"waits until DataVolume {snapshot.copied_by} has copied it"))
    size = requested(claim)
    began = Event("Normal", RESIZING, f"growing volume {volume.name} to {_quantity(claim, size)}")
    return msgspec.structs.replace(_next(snapshot, volume, size, 0, now), events=(began,))


def _next(snapshot: GrowthSnapshot, volume: PersistentVolume, size: int, attempt: int, now: float) -> GrowthPlan:
    """On a node whose guest has not heard of it; where no guest has the disk, on any that sees it."""
    missing = _missing(snapshot, size)
    unfilled = not snapshot.claim.controller_uid
    definition = ImportDefinition(action="grow", volume=volume.name, capacity=size, unfilled=unfilled)
    pod = growing_pod(snapshot.volume_document, definition, storage_of(volume), attempt, missing[0] if missing else "")
    return GrowthPlan(status=_shown(snapshot.claim, now, size=size), create_pod=pod)


def _missing(snapshot: GrowthSnapshot, size: int) -> list[str]:
    told = {pod.spec.node_name for pod in snapshot.pods if pod.status.phase == "Succeeded" and _size(pod) >= size}
    return [node for node in snapshot.users if node not in told and node not in snapshot.lost]


def _under_way(snapshot: GrowthSnapshot, pod: Pod, now: float) -> GrowthPlan:
    ends = _ends(snapshot, tuple(one for one in snapshot.pods if one.status.phase == "Failed"))
    if pod.spec.node_name in snapshot.lost:
        return GrowthPlan(delete_pods=(*ends, Delete(pod.name, pod.uid, grace_period_seconds=0)))
    report = import_report_of(pod)
    waits = next((one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
    why = f"pod {pod.name} waits for a node: {waits.message}" if waits is not None else report.message if report else ""
    return GrowthPlan(status=_shown(snapshot.claim, now, why, size=_size(pod)), delete_pods=ends)


def _failed(snapshot: GrowthSnapshot, volume: PersistentVolume, pod: Pod, now: float) -> GrowthPlan:
    claim, attempt = snapshot.claim, attempt_of(pod) + 1
    report = import_report_of(pod)
    reason = (report.reason if report else "") or pod.status.reason or reasons.IMPORT_FAILED
    message = (report.message if report else "") or pod.status.message or f"pod {pod.name} failed"
    size = requested(claim)
    # With less to do, or another to do it, it may well succeed.
    another = size < _size(pod) or (bool(_missing(snapshot, size)) and pod.spec.node_name not in snapshot.users)
    left = ended_at(pod) + (SPACING if another else max(SPACING, wait_after(attempt))) - now
    if left <= 0 and not snapshot.copied_by:
        return _next(snapshot, volume, size, attempt, now)
    status = _shown(claim, now, size=_size(pod), error=(reason, message))
    told = Event("Warning", reasons.VOLUME_RESIZE_FAILED, f"volume {volume.name} does not grow: {message}")
    return GrowthPlan(status=status, events=(told,) if status is not None else (), next_look=max(left, 1.0))


def _grown(snapshot: GrowthSnapshot, volume: PersistentVolume, pod: Pod, now: float) -> GrowthPlan:
    claim, size = snapshot.claim, _size(pod)
    if _missing(snapshot, size):
        return _next(snapshot, volume, size, attempt_of(pod) + 1, now)
    quantity = _quantity(claim, size)
    smaller = parse_quantity(volume.spec.capacity.get("storage", 0)).value() < size
    status: Document = {
        "capacity": {"storage": quantity},
        "allocatedResources": {"storage": quantity},
        "allocatedResourceStatuses": None,
        "conditions": [{"$patch": "delete", "type": kind} for kind in (RESIZING, RESIZE_ERROR)],
    }
    done = Event("Normal", reasons.VOLUME_RESIZE_SUCCEEDED, f"volume {volume.name} has {quantity}")
    return GrowthPlan(capacity=quantity if smaller else "", status=status, events=(done,))


def _cleared(snapshot: GrowthSnapshot, latest: Pod, now: float) -> GrowthPlan:
    """What is left of a growth that is over, once the next one may begin."""
    if latest.status.phase in FINISHED and (left := ended_at(latest) + SPACING - now) > 0:
        return GrowthPlan(next_look=left)
    return GrowthPlan(delete_pods=_ends(snapshot, snapshot.pods))


def _ends(snapshot: GrowthSnapshot, pods: tuple[Pod, ...]) -> tuple[Delete, ...]:
    """At once where the node is gone: nobody else would confirm it."""
    ends: list[Delete] = []
    for pod in pods:
        lost = pod.spec.node_name in snapshot.lost
        if lost or not pod.being_deleted:
            ends.append(Delete(pod.name, pod.uid, grace_period_seconds=0 if lost else None))
    return tuple(ends)


def _is_of_before(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """It did its part of what the claim has by now."""
    given = parse_quantity(claim.status.capacity.get("storage", 0)).value()
    return pod.status.phase == "Succeeded" and _size(pod) <= given


def _size(pod: Pod) -> int:
    """What the pod grows its volume to: nobody but our controllers may write that."""
    try:
        definition = import_of(pod)
    except msgspec.MsgspecError:
        return 0
    return definition.capacity if definition is not None else 0


def _quantity(claim: PersistentVolumeClaim, size: int) -> str:
    """As it was asked for, where that is still what is asked for."""
    asked = claim.spec.resources.requests.get("storage", 0)
    return str(asked) if requested(claim) == size else canonical(size * 10**9, "BinarySI")


def _shown(
    claim: PersistentVolumeClaim, now: float, waits: str = "", *, size: int = 0, error: tuple[str, str] | None = None
) -> Document | None:
    """What the claim is to say while it grows; None where it says so already."""
    quantity = _quantity(claim, size) if size else ""
    known = {one.type: one for one in claim.status.conditions}
    conditions = [_condition(RESIZING, known, now, message=waits)]
    conditions += [_condition(RESIZE_ERROR, known, now, *error)] if error is not None else []
    said = all(_says(known.get(one["type"]), one) for one in conditions) and (error is not None or RESIZE_ERROR not in known)
    allocated = parse_quantity(claim.status.allocated_resources.get("storage", 0)).value()
    marked = claim.status.allocated_resource_statuses.get("storage") == IN_PROGRESS
    if said and (not size or (allocated == size and marked)):
        return None
    if error is None and RESIZE_ERROR in known:
        conditions.append({"$patch": "delete", "type": RESIZE_ERROR})
    at_work: Document = {"allocatedResources": {"storage": quantity}, "allocatedResourceStatuses": {"storage": IN_PROGRESS}}
    return {"conditions": conditions, **(at_work if size else {})}


def _condition(kind: str, known: dict[str, ClaimCondition], now: float, reason: str = "", message: str = "") -> Document:
    old = known.get(kind)
    since = old.last_transition_time if old is not None and old.status == "True" else None
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": text_of(since or moment(now)),
    }


def _says(known: ClaimCondition | None, wanted: Document) -> bool:
    return known is not None and (known.status, known.reason, known.message) == ("True", wanted["reason"], wanted["message"])

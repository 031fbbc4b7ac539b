"""The plan for one DataVolume: its claim first, then, once that is bound, the pod that fills it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import reasons
from herder.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.api.imports import import_report_of
from herder.api.kinds import DataVolume
from herder.api.kinds.data_volume import DataVolumePhase
from herder.rules.instances.observed import fenced
from herder.rules.plans import Delete, Document, Event
from herder.rules.volumes.claims import Problem, chosen_class, claim_of
from herder.rules.volumes.failures import is_final, wait_after
from herder.rules.volumes.importer import attempt_of, importer_pod
from herder.rules.volumes.provision import is_ours, storage_of
from herder.rules.volumes.source import Source, source_problem
from herder.rules.volumes.status import Shown, failed_at, restarts, status_of

FINISHED = ("Succeeded", "Failed")


class DataVolumeSnapshot(msgspec.Struct, frozen=True):
    data_volume: DataVolume
    document: Document
    classes: tuple[StorageClass, ...] = ()
    # Of its name, whoever owns it.
    claim: PersistentVolumeClaim | None = None
    # The one that the claim is bound to.
    volume: PersistentVolume | None = None
    # All that it owns.
    pods: tuple[Pod, ...] = ()
    nodes: Mapping[str, Node] = {}
    # What is copied; None where nothing is.
    source: Source | None = None


class DataVolumePlan(msgspec.Struct, frozen=True):
    create_claim: Document | None = None
    create_pod: Document | None = None
    delete_pods: tuple[Delete, ...] = ()
    # Written before anything is deleted: what is known of a failure must not be lost with its pod.
    status: Document | None = None
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def plan_data_volume(snapshot: DataVolumeSnapshot, now: float) -> DataVolumePlan:
    volume = snapshot.data_volume
    if volume.being_deleted:
        # What it owns goes with it.
        return DataVolumePlan()
    if phase_of(volume) in FINISHED:
        return DataVolumePlan(delete_pods=_ends(snapshot, snapshot.pods))
    problem = _claim_problem(snapshot)
    if problem is not None:
        return _plan(snapshot, problem, now)
    if snapshot.claim is None:
        return _without_claim(snapshot, now)
    if snapshot.claim.status.phase != "Bound" or snapshot.volume is None:
        return _plan(snapshot, _unbound(volume), now)
    return _with_claim(snapshot, snapshot.volume, now)


def phase_of(volume: DataVolume) -> DataVolumePhase:
    return (volume.status.phase if volume.status else None) or "Pending"


def _claim_problem(snapshot: DataVolumeSnapshot) -> Shown | None:
    volume, claim = snapshot.data_volume, snapshot.claim
    if claim is None:
        return None
    if claim.controller_uid != volume.uid:
        why = f"PersistentVolumeClaim {claim.name} exists and belongs to someone else"
        return Shown("Pending", reasons.CLAIM_NOT_OWNED, f"{why}; rename the DataVolume, or remove that claim")
    if claim.being_deleted:
        return Shown("Pending", reasons.CLAIM_PENDING, f"PersistentVolumeClaim {claim.name} is being deleted")
    if claim.status.phase == "Lost":
        why = f"the volume of PersistentVolumeClaim {claim.name} is gone, and its content with it"
        return Shown("Failed", reasons.CLAIM_LOST, why)
    if snapshot.volume is not None and not is_ours(snapshot.volume):
        why = f"PersistentVolume {snapshot.volume.name} was not made by our provisioner, and cannot be filled"
        return Shown("Failed", reasons.CLASS_NOT_SUPPORTED, why)
    return None


def _without_claim(snapshot: DataVolumeSnapshot, now: float) -> DataVolumePlan:
    volume, source = snapshot.data_volume, snapshot.source
    if volume.spec.content_type == "archive":
        why = "spec.contentType archive is not supported: leave it out, and give a disk image"
        return _plan(snapshot, Shown("Failed", reasons.UNSUPPORTED, why), now)
    chosen = chosen_class(volume, snapshot.classes)
    if isinstance(chosen, Problem):
        phase: DataVolumePhase = "Failed" if chosen.reason == reasons.CLASS_NOT_SUPPORTED else "Pending"
        return _plan(snapshot, Shown(phase, chosen.reason, chosen.message), now)
    if source is not None and (problem := source_problem(volume, source, None)):
        return _plan(snapshot, problem, now)
    size, storage = ("", "")
    if source is not None and source.volume is not None:
        size, storage = str(source.volume.spec.capacity.get("storage", "")), storage_of(source.volume)
    claim = claim_of(snapshot.document, volume, chosen, size, storage)
    plan = _plan(snapshot, _unbound(volume), now)
    made = Event("Normal", reasons.SUCCESSFUL_CREATE, f"made PersistentVolumeClaim {volume.name}")
    return msgspec.structs.replace(plan, create_claim=claim, events=(made,))


def _unbound(volume: DataVolume) -> Shown:
    return Shown("Pending", reasons.CLAIM_PENDING, f"waits for PersistentVolumeClaim {volume.name} to be bound")


def _with_claim(snapshot: DataVolumeSnapshot, target: PersistentVolume, now: float) -> DataVolumePlan:
    volume = snapshot.data_volume
    attempt = restarts(volume)
    pod = next((one for one in snapshot.pods if attempt_of(one) == attempt), None)
    if pod is not None:
        return _with_pod(snapshot, pod, now)
    source = snapshot.source
    if source is not None and (problem := source_problem(volume, source, target)):
        return _plan(snapshot, problem, now)
    since = failed_at(volume)
    left = since + wait_after(attempt) - now if since is not None and attempt else 0.0
    if left > 0:
        why = ((volume.status.reason, volume.status.message) if volume.status else None) or ("", "")
        shown = Shown(_named(volume, "Scheduled"), why[0] or "", why[1] or "", bound=True)
        return msgspec.structs.replace(_plan(snapshot, shown, now), next_look=left)
    made = importer_pod(snapshot.document, volume, target, source.volume if source else None, attempt)
    shown = Shown(_named(volume, "Scheduled"), reasons.IMPORT_SCHEDULED, f"made pod {made['metadata']['name']}", bound=True)
    return msgspec.structs.replace(_plan(snapshot, shown, now), create_pod=made)


def _with_pod(snapshot: DataVolumeSnapshot, pod: Pod, now: float) -> DataVolumePlan:
    volume = snapshot.data_volume
    if pod.status.phase == "Succeeded":
        shown = Shown("Succeeded", reasons.IMPORT_SUCCEEDED, "the volume has its content", bound=True, progress="100.0%")
        return _plan(snapshot, shown, now, ends=snapshot.pods)
    report = import_report_of(pod)
    if pod.status.phase == "Failed":
        reason = (report.reason if report else "") or pod.status.reason or reasons.IMPORT_FAILED
        message = (report.message if report else "") or pod.status.message or f"pod {pod.name} failed"
        return _failure(snapshot, reason, message, now)
    if pod.spec.node_name and fenced(snapshot.nodes.get(pod.spec.node_name)):
        why = f"node {pod.spec.node_name} is gone, and the work of pod {pod.name} with it"
        return _failure(snapshot, reasons.NODE_LOST, why, now)
    if report is not None and pod.status.phase == "Running":
        at_work = f"pod {pod.name} is at work"
        shown = Shown(_named(volume, "InProgress"), reasons.IMPORT_RUNNING, at_work, True, report.percent, running=True)
        return _plan(snapshot, shown, now)
    return _plan(snapshot, _waiting(volume, pod), now)


def _waiting(volume: DataVolume, pod: Pod) -> Shown:
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
    why = f"pod {pod.name} waits for a node: {scheduled.message}" if scheduled else f"pod {pod.name} is being started"
    return Shown(_named(volume, "Scheduled"), reasons.UNSCHEDULABLE if scheduled else reasons.IMPORT_SCHEDULED, why, bound=True)


def _failure(snapshot: DataVolumeSnapshot, reason: str, message: str, now: float) -> DataVolumePlan:
    """Counted in the status first: a pod of an attempt that is counted is only cleared away."""
    volume = snapshot.data_volume
    attempts = restarts(volume) + 1
    final = is_final(reason, attempts)
    phase: DataVolumePhase = "Failed" if final else _named(volume, "Scheduled")
    counted = attempts - 1 if final else attempts
    plan = _plan(snapshot, Shown(phase, reason, message, bound=True, restarts=counted, failed=True), now, ends=snapshot.pods)
    return plan if final else msgspec.structs.replace(plan, next_look=wait_after(attempts))


def _named(volume: DataVolume, step: str) -> DataVolumePhase:
    return msgspec.convert(("Clone" if volume.spec.source.pvc else "Import") + step, DataVolumePhase)


def _plan(snapshot: DataVolumeSnapshot, shown: Shown, now: float, ends: tuple[Pod, ...] | None = None) -> DataVolumePlan:
    volume = snapshot.data_volume
    old = tuple(pod for pod in snapshot.pods if attempt_of(pod) != restarts(volume)) if ends is None else ends
    return DataVolumePlan(delete_pods=_ends(snapshot, old), status=status_of(volume, shown, now), events=_events(volume, shown))


def _ends(snapshot: DataVolumeSnapshot, pods: tuple[Pod, ...]) -> tuple[Delete, ...]:
    """At once where the node is gone: nobody else would confirm it."""
    ends: list[Delete] = []
    for pod in pods:
        lost = bool(pod.spec.node_name) and fenced(snapshot.nodes.get(pod.spec.node_name))
        if lost or not pod.being_deleted:
            ends.append(Delete(pod.name, pod.uid, grace_period_seconds=0 if lost else None))
    return tuple(ends)


def _events(volume: DataVolume, shown: Shown) -> tuple[Event, ...]:
    old = volume.status
    if old is not None and (old.phase, old.reason, old.message) == (shown.phase, shown.reason, shown.message) and not shown.failed:
        return ()
    if shown.phase == "Succeeded":
        return (Event("Normal", shown.reason, shown.message),)
    waits = shown.reason in (reasons.CLAIM_NOT_OWNED, reasons.CLASS_NOT_FOUND, reasons.SOURCE_IN_USE, reasons.SOURCE_NOT_FOUND)
    return (Event("Warning", shown.reason, shown.message),) if shown.failed or waits or shown.phase == "Failed" else ()

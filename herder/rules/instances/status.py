"""What an instance shows: phase, why, conditions, and what its guest was started as."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolumeClaim, Pod
from herder.api.guest import GuestReport, Started
from herder.api.kinds import VirtualMachineInstance
from herder.api.meta import Condition
from herder.rules.instances.migratable import not_migratable
from herder.rules.instances.observed import Observed
from herder.rules.plans import Document, condition, find, moment, plain, since, text_of, without_nothing


def status_of(
    instance: VirtualMachineInstance,
    observed: Observed,
    pod: Pod | None,
    claims: Mapping[str, PersistentVolumeClaim],
    now: float,
) -> Document:
    old = instance.status
    observed = _as_it_lived(instance, observed)
    report = observed.report
    node = (pod.spec.node_name if pod else None) or (old.node_name if old else None)
    return without_nothing(
        {
            "observedGeneration": instance.metadata.generation,
            "phase": observed.phase,
            "reason": observed.reason or None,
            "message": observed.message or None,
            "conditions": since(_conditions(instance, observed, pod, claims), old.conditions if old else None, now),
            "phaseTransitionTimestamps": _transitions(instance, observed, now),
            "nodeName": node or None,
            "launcherPodName": pod.name if pod else (old.launcher_pod_name if old else None),
            "activePods": {pod.uid: pod.spec.node_name} if pod and pod.spec.node_name else None,
            # Moved, it is still the guest that was started once.
            "startTime": _kept_start(instance) or (text_of(report.started_at) if report and report.started_at else None),
            "interfaces": _interfaces(instance, report),
            "volumeStatus": _volumes(instance, claims),
            # A guest that is still being prepared was not started as anything yet.
            **_as_started(report.started if report and observed.phase != "Scheduled" else None, instance),
        }
    )


def _as_it_lived(instance: VirtualMachineInstance, observed: Observed) -> Observed:
    """Of a guest that was moved, the agent that ends it has seen no probe pass; another one had."""
    if observed.reason != reasons.LIVENESS_PROBE_NEVER_PASSED or not has_lived(instance):
        return observed
    return msgspec.structs.replace(observed, reason=reasons.LIVENESS_PROBE_FAILED)


def _conditions(
    instance: VirtualMachineInstance, observed: Observed, pod: Pod | None, claims: Mapping[str, PersistentVolumeClaim]
) -> list[Document]:
    why = not_migratable(instance.spec, claims, observed.report)
    migratable = (
        condition(reasons.LIVE_MIGRATABLE, True, reasons.MIGRATABLE)
        if why is None
        else condition(reasons.LIVE_MIGRATABLE, False, why.reason, why.message)
    )
    found = [_ready(observed, pod), migratable]
    if observed.report is not None and observed.report.state == "Paused" and observed.phase == "Running":
        word, why = observed.report.reason or reasons.GUEST_PAUSED, observed.report.message
        found.append(condition(reasons.PAUSED, True, word, why or "the guest stands still until it is unpaused"))
    if alive := _alive(instance, observed):
        found.append(alive)
    return found


def has_lived(instance: VirtualMachineInstance) -> bool:
    """Whether its first liveness probe has passed, as far as was seen before. True for good: a guest that was moved is asked by
    another agent, which knows nothing of it."""
    known = _known_alive(instance)
    return known is not None and known.status == "True"


def _known_alive(instance: VirtualMachineInstance) -> Condition | None:
    return find(instance.status.conditions if instance.status else None, reasons.ALIVE)


def _alive(instance: VirtualMachineInstance, observed: Observed) -> Document | None:
    """Of a guest with a liveness probe, from when it runs; kept when it has ended, to tell whether it had started."""
    if instance.spec.liveness_probe is None:
        return None
    report = observed.report
    over = observed.phase in ("Succeeded", "Failed")
    ran = observed.phase == "Running" or (over and report is not None and report.started_at is not None)
    if has_lived(instance) or (ran and report is not None and report.alive):
        return condition(reasons.ALIVE, True, reasons.LIVENESS_PROBE_PASSED, "the liveness probe has passed")
    if not ran and _known_alive(instance) is None:
        return None
    if over:
        return condition(reasons.ALIVE, False, reasons.LIVENESS_PROBE_NEVER_PASSED, "it ended before its liveness probe had passed")
    return condition(reasons.ALIVE, False, reasons.LIVENESS_PROBE_PENDING, "the liveness probe has not passed yet")


def _ready(observed: Observed, pod: Pod | None) -> Document:
    if observed.phase != "Running":
        word = reasons.GUEST_STARTING if observed.phase in ("Scheduling", "Scheduled") else reasons.GUEST_NOT_RUNNING
        return condition(reasons.READY, False, observed.reason or word, observed.message)
    if observed.report is not None and observed.report.state == "Paused":
        word, why = observed.report.reason or reasons.GUEST_PAUSED, observed.report.message
        return condition(reasons.READY, False, word, why or "the guest is paused")
    if observed.report is None or observed.report.state != "Running":
        # Whatever else the pod says: who has no guest that runs is not ready.
        return condition(reasons.READY, False, observed.reason or reasons.GUEST_NOT_RUNNING, observed.message)
    ready = next((one for one in pod.status.conditions if one.type == "Ready"), None) if pod else None
    if ready is not None and ready.status == "True":
        return condition(reasons.READY, True, reasons.GUEST_RUNNING)
    message = (ready.message if ready else "") or "the guest has not yet passed its readiness probe"
    return condition(reasons.READY, False, (ready.reason if ready else "") or reasons.NOT_READY, message)


def _transitions(instance: VirtualMachineInstance, observed: Observed, now: float) -> list[Document]:
    known = (instance.status.phase_transition_timestamps if instance.status else None) or ()
    listed = [
        {"phase": one.phase, "phaseTransitionTimestamp": text_of(one.phase_transition_timestamp)}
        for one in known
        # A node may go and come back many times: of each phase the first time counts.
    ]
    reached = [(observed.phase, moment(now))]
    if observed.phase in ("Succeeded", "Failed") and observed.report is not None and observed.report.started_at is not None:
        # It ran, and had ended again before we looked.
        reached.insert(0, ("Running", observed.report.started_at))
    for phase, at in reached:
        if all(one["phase"] != phase for one in listed):
            listed.append({"phase": phase, "phaseTransitionTimestamp": text_of(at)})
    return listed


def _kept_start(instance: VirtualMachineInstance) -> str | None:
    start = instance.status.start_time if instance.status else None
    return text_of(start) if start else None


def _as_started(started: Started | None, instance: VirtualMachineInstance) -> Document:
    """Recorded once it is known, and kept: every later migration requires it."""
    old = instance.status
    if started is None:
        if old is None or old.runtime is None:
            return {}
        return {
            "runtime": old.runtime,
            "accelerator": old.accelerator,
            "machineType": old.machine_type,
            "cpu": plain(old.cpu),
            "memory": plain(old.memory),
        }
    size = str(started.memory_bytes)
    return {
        "runtime": started.runtime or None,
        "accelerator": started.accelerator or None,
        "machineType": started.machine_type or None,
        "cpu": plain(started.cpu),
        "memory": {"guestAtBoot": size, "guestCurrent": size} if started.memory_bytes else None,
    }


def _interfaces(instance: VirtualMachineInstance, report: GuestReport | None) -> list[Document] | None:
    devices = instance.spec.domain.devices
    cards = (devices.interfaces if devices else None) or ()
    if report is None or not report.addresses or not cards:
        return None
    addresses = list(report.addresses)
    return [{"name": cards[0].name, "ipAddress": addresses[0], "ipAddresses": addresses}]


def _volumes(instance: VirtualMachineInstance, claims: Mapping[str, PersistentVolumeClaim]) -> list[Document] | None:
    listed: list[Document] = []
    for volume in instance.spec.volumes or ():
        name = volume.data_volume.name if volume.data_volume else None
        name = name or (volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else None)
        claim = claims.get(name) if name else None
        if claim is None:
            continue
        about: Document = {"claimName": claim.name, "accessModes": list(claim.spec.access_modes)}
        if claim.status.capacity:
            about["capacity"] = {key: str(value) for key, value in claim.status.capacity.items()}
        phase = "Bound" if claim.status.phase == "Bound" else "Pending"
        listed.append({"name": volume.name, "phase": phase, "persistentVolumeClaimInfo": about})
    return listed or None

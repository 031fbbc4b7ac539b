"""The plan for one VirtualMachineInstance, from its pods, their node and what it mounts."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node, Pod
from herder.api.guest import report_of
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.kubevirt import MigrationConfiguration
from herder.api.kinds.migration_state import MigrationState
from herder.api.memory import SavedMemory
from herder.rules.instances.launcher import launcher_pod, pod_name
from herder.rules.instances.needs import Found, missing, needs_of
from herder.rules.instances.observed import Observed, answers, fenced, observe
from herder.rules.instances.pod_metadata import PodPatch, pod_patches
from herder.rules.instances.pods import active_pod, gave_away, has_ended, heir, took_over
from herder.rules.instances.status import status_of
from herder.rules.migratability.starting import is_host_model, required_level
from herder.rules.migratability.waiting import demanded_level, not_reached
from herder.rules.plans import Delete, Document, Event, find, plain, without_nothing
from herder.rules.suspension.memory import Memory, resumed_by, why_unfit
from herder.rules.suspension.resuming import booting_pod, resuming_pod

FINISHED = ("Succeeded", "Failed")
# A pod that is younger is about to get a node, or to be told why not: that it has none yet is not worth a write. Ages are of whole
# seconds, so this is half a second at least.
ABOUT_TO_BE_PLACED = 1.5
# A guest that was handed over runs again within this, unless something went wrong: that it stands is not worth a write before.
SOON_RESUMED = 3.0


class InstanceSnapshot(msgspec.Struct, frozen=True):
    instance: VirtualMachineInstance
    # The whole of it, of which only a new pod needs more than the view.
    raw: bytes
    # All that the instance owns, oldest first.
    pods: tuple[Pod, ...]
    # Those that its pods are bound to, as far as they exist.
    nodes: dict[str, Node]
    found: Found = Found()
    # The migration that goes on, or the last one, as it stands.
    migration: MigrationState | None = None
    settings: MigrationConfiguration | None = None
    # Uids of the instance's migrations that are not finished.
    migrations: frozenset[str] = frozenset()
    # Of the cluster, where a pod waits for one with a level; nobody else asks.
    all_nodes: tuple[Node, ...] = ()
    # What the claim holds that it was made to go on from.
    memory: Memory | None = None
    # The pool that manages its machine; empty where none does, None where the machine is not known.
    pool: str | None = ""


class InstancePlan(msgspec.Struct, frozen=True):
    add_finalizer: bool = False
    remove_finalizer: bool = False
    # Whose memory it is from now on, and only over what was seen: before there is a pod that uses it.
    take_memory: SavedMemory | None = None
    # Gone before there is a pod that uses the disks without it.
    drop_memory: Delete | None = None
    create_pod: Document | None = None
    delete_pods: tuple[Delete, ...] = ()
    # (pod, value): what the pod's annotation should say.
    pause: tuple[str, str] | None = None
    # Of labels and annotations, in this order.
    patch_pods: tuple[PodPatch, ...] = ()
    # (pod, version): made by settings that are others now, and still without a node. One that is bound meanwhile stays.
    replace_pod: tuple[Delete, str] | None = None
    node_label: str | None = None
    # That this pod is gone decides, or that this migration (its uid) is gone or over: to be asked of the API server itself first.
    gone: str | None = None
    migration_gone: str | None = None
    # The target that such a migration has left behind, as it still looked: it may run meanwhile.
    forsaken: Pod | None = None
    status: Document | None = None
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def plan_instance(snapshot: InstanceSnapshot, now: float) -> InstancePlan:
    if snapshot.instance.being_deleted:
        return _ending(snapshot, now)
    if phase_of(snapshot.instance) in FINISHED:
        return _finished(snapshot)
    pod = active_pod(snapshot.pods, launcher_of(snapshot.instance))
    target = heir(snapshot.pods) if pod is None or _is_past(pod, snapshot) else None
    if target is not None and target.labels[labels.MIGRATION_UID] in snapshot.migrations:
        return _awaiting(snapshot, pod, target, now)
    plan = _with_pod(snapshot, pod, now) if pod is not None else _without_pod(snapshot, now)
    # A target that nobody will ever send a guest to, or tell to go on, is no reason to wait.
    forsaken = target or (pod if pod is not None and _is_forsaken(pod, snapshot) else None)
    if forsaken is None:
        return plan
    return msgspec.structs.replace(plan, migration_gone=forsaken.labels[labels.MIGRATION_UID], forsaken=forsaken)


def _awaiting(snapshot: InstanceSnapshot, pod: Pod | None, target: Pod, now: float) -> InstancePlan:
    """The migration decides: the target has the guest, and is told to go on. That is shown where it takes more than a moment."""
    left = _handed_over_at(pod) + SOON_RESUMED - now if pod is not None else 0.0
    if left > 0:
        return InstancePlan(next_look=left)
    message = f"the guest waits on node {target.spec.node_name} to be told that it may go on"
    observed = Observed("Running", reasons.GUEST_HANDED_OVER, message, report_of(pod) if pod is not None else None)
    return InstancePlan(status=status_of(snapshot.instance, observed, pod, snapshot.found.claims, now) | _moving(snapshot))


def _handed_over_at(pod: Pod) -> float:
    """When its node said so; long ago where nobody did."""
    said = next((one for one in pod.status.conditions if one.type == labels.GUEST_CONDITION), None)
    at = said.last_transition_time if said is not None and gave_away(pod) else None
    return at.timestamp() if at is not None else 0.0


def _is_past(pod: Pod, snapshot: InstanceSnapshot) -> bool:
    """It gave the guest away, or nothing of it can run any more."""
    return gave_away(pod) or (bool(pod.spec.node_name) and fenced(snapshot.nodes.get(pod.spec.node_name)))


def _is_forsaken(pod: Pod, snapshot: InstanceSnapshot) -> bool:
    """It waits for a guest to come in, says its node, and the migration is over."""
    migration = pod.labels.get(labels.MIGRATION_UID)
    waits = migration is not None and migration not in snapshot.migrations and not took_over(pod) and not has_ended(pod)
    return waits and answers(snapshot.nodes.get(pod.spec.node_name))


def phase_of(instance: VirtualMachineInstance) -> str:
    return (instance.status.phase if instance.status else None) or "Pending"


def _ending(snapshot: InstanceSnapshot, now: float) -> InstancePlan:
    """Pods first, then the finalizer: while one of them may run, the instance is there to say so."""
    ends = tuple(end for pod in snapshot.pods if (end := _end(pod, snapshot.nodes)) is not None)
    ours = labels.INSTANCE_FINALIZER in snapshot.instance.finalizers
    pod = active_pod(snapshot.pods, launcher_of(snapshot.instance))
    status, events = None, ()
    if pod is not None:
        observed = _hindered(snapshot.pods, observe(pod, snapshot.nodes.get(pod.spec.node_name)))
        status = status_of(snapshot.instance, observed, pod, snapshot.found.claims, now)
        events = _trouble(snapshot.instance, observed)
    return InstancePlan(
        delete_pods=ends,
        events=events,
        remove_finalizer=ours and not snapshot.pods,
        gone=_last_pod(snapshot.instance) if ours and not snapshot.pods else None,
        status=status,
    )


def _hindered(pods: tuple[Pod, ...], observed: Observed) -> Observed:
    """With why one of them does not end, be it only the target of a migration."""
    reports = (report_of(pod) for pod in pods)
    found = next((report for report in reports if report is not None and report.reason == reasons.ENDING_FAILED), None)
    if found is None or observed.reason:
        return observed
    return msgspec.structs.replace(observed, reason=found.reason, message=found.message)


def _last_pod(instance: VirtualMachineInstance) -> str:
    return launcher_of(instance) or pod_name(instance.name, instance.uid)


def launcher_of(instance: VirtualMachineInstance) -> str | None:
    """The pod that had the guest when the instance was last looked at."""
    return instance.status.launcher_pod_name if instance.status else None


def _end(pod: Pod, nodes: dict[str, Node]) -> Delete | None:
    if not pod.being_deleted:
        return Delete(pod.name, pod.uid)
    if pod.spec.node_name and fenced(nodes.get(pod.spec.node_name)):
        return Delete(pod.name, pod.uid, grace_period_seconds=0)
    return None


def _finished(snapshot: InstanceSnapshot) -> InstancePlan:
    """Its pod stays for its log, until the instance goes."""
    pod = active_pod(snapshot.pods, launcher_of(snapshot.instance))
    return InstancePlan(patch_pods=pod_patches(snapshot.instance, snapshot.pods, pod, snapshot.pool))


def _without_pod(snapshot: InstanceSnapshot, now: float) -> InstancePlan:
    instance = snapshot.instance
    if known := launcher_of(instance):
        observed = pod_gone(known)
        event = Event("Warning", reasons.POD_GONE, observed.message)
        status = status_of(instance, observed, None, snapshot.found.claims, now)
        return InstancePlan(gone=known, status=status, events=(event,))
    finalizer = labels.INSTANCE_FINALIZER not in instance.finalizers
    lack = missing(needs_of(instance.spec), snapshot.found)
    if lack is not None:
        observed = Observed("Pending", lack.reason, lack.message)
        status = status_of(instance, observed, None, snapshot.found.claims, now)
        old = instance.status
        # Progress is for the status: one event for each thing that is waited for.
        told = old is not None and old.reason == lack.reason
        kind = "Normal" if lack.reason == reasons.WAITING_FOR_DATA_VOLUME else "Warning"
        events = () if told else (Event(kind, lack.reason, lack.message),)
        return InstancePlan(add_finalizer=finalizer, status=status, events=events)
    pod = launcher_pod(msgspec.json.decode(snapshot.raw), instance.spec, settings=snapshot.settings, pool=snapshot.pool or "")
    name = pod["metadata"]["name"]
    made = InstancePlan(
        add_finalizer=finalizer,
        create_pod=pod,
        events=(Event("Normal", reasons.SUCCESSFUL_CREATE, f"made pod {name}"),),
    )
    return made if labels.RESUME_FROM not in instance.annotations else _resuming(snapshot, made)


def _resuming(snapshot: InstanceSnapshot, made: InstancePlan) -> InstancePlan:
    """With the memory that its guest goes on from; or without, where that does not fit."""
    instance, memory = snapshot.instance, snapshot.memory
    assert made.create_pod is not None, "asked only where there is one"
    disks = {name: claim.uid for name, claim in snapshot.found.claims.items()}
    why = why_unfit(instance, memory, disks, snapshot.all_nodes)
    if why or memory is None:
        gone = Delete(memory.claim.name, memory.claim.uid) if memory is not None else None
        event = Event("Warning", reasons.NOT_RESUMED, f"it boots from its disks: {why}")
        return msgspec.structs.replace(
            made, create_pod=booting_pod(made.create_pod, why), drop_memory=gone, events=(*made.events, event)
        )
    # Levels are for guests that begin: this one is what it was.
    pod = launcher_pod(msgspec.json.decode(snapshot.raw), instance.spec, pool=snapshot.pool or "")
    return msgspec.structs.replace(made, take_memory=resumed_by(memory, instance), create_pod=resuming_pod(pod, memory))


def pod_gone(name: str) -> Observed:
    return Observed("Failed", reasons.POD_GONE, f"pod {name} was deleted, and the guest with it")


def _with_pod(snapshot: InstanceSnapshot, pod: Pod, now: float) -> InstancePlan:
    instance = snapshot.instance
    node = snapshot.nodes.get(pod.spec.node_name)
    observed = observe(pod, node)
    if gave_away(pod):
        observed = Observed(
            "Failed", reasons.GUEST_LOST, "it was handed over to another node, and never ran there", observed.report
        )
    elif _is_forsaken(pod, snapshot):
        observed = Observed("Failed", reasons.GUEST_LOST, "its node waits for it to come in, and nobody sends it any more")
    elif pod.being_deleted and observed.phase in FINISHED:
        # It was told to end, by someone who is not its machine. Whether its last word is seen or not, that is what happened.
        observed = msgspec.structs.replace(pod_gone(pod.name), report=observed.report)
    if sentence := not_reached(pod, snapshot.all_nodes):
        observed = Observed("Scheduling", reasons.MIGRATABILITY_LEVEL_NOT_REACHED, sentence)
        if _level_now(snapshot) != demanded_level(pod):
            return _made_anew(snapshot, pod, now)
    lost = bool(pod.spec.node_name) and fenced(node) and observed.phase not in FINISHED
    soon = _soon_placed(instance, observed, pod, now)
    status = None
    if soon is None:
        status = status_of(instance, observed, pod, snapshot.found.claims, now) | _moving(snapshot)
    return InstancePlan(
        # Somebody who replaced the whole object may have taken it away.
        add_finalizer=labels.INSTANCE_FINALIZER not in instance.finalizers,
        delete_pods=(Delete(pod.name, pod.uid, grace_period_seconds=0),) if lost else (),
        pause=_pause(instance, pod),
        patch_pods=pod_patches(instance, snapshot.pods, pod, snapshot.pool),
        node_label=_node_label(instance, pod, observed),
        status=status,
        events=_events(instance, observed, pod),
        next_look=soon,
    )


def _soon_placed(instance: VirtualMachineInstance, observed: Observed, pod: Pod, now: float) -> float | None:
    """When to look again at what was only just made; None where there is something to show."""
    made = pod.metadata.creation_timestamp
    if observed != Observed("Scheduling") or instance.status is not None or made is None:
        return None
    age = now - made.timestamp()
    return ABOUT_TO_BE_PLACED - age if 0 <= age < ABOUT_TO_BE_PLACED else None


def _moving(snapshot: InstanceSnapshot) -> Document:
    """Where it goes or has gone. How far it is stands in the migration itself: once is often enough."""
    old = snapshot.instance.status
    state = snapshot.migration or (old.migration_state if old is not None else None)
    wish = snapshot.instance.annotations.get(labels.EVACUATE)
    active = {pod.uid: pod.spec.node_name for pod in snapshot.pods if pod.spec.node_name}
    return without_nothing(
        {
            "migrationState": plain(msgspec.structs.replace(state, progress=None)) if state is not None else None,
            "activePods": active or None,
            "evacuationNodeName": wish if wish and old is not None and old.node_name == wish else None,
        }
    )


def _level_now(snapshot: InstanceSnapshot) -> int:
    return required_level(snapshot.settings) if is_host_model(snapshot.instance.spec.domain.cpu) else 0


def _made_anew(snapshot: InstanceSnapshot, pod: Pod, now: float) -> InstancePlan:
    """First the instance forgets the pod, then the pod goes: else it would look as if somebody had taken it away."""
    why = "the level that the cluster requires has changed: the pod, which had no node, is made anew"
    status = status_of(snapshot.instance, Observed("Pending", reasons.MIGRATABILITY_LEVEL_CHANGED, why), None, {}, now)
    status.pop("launcherPodName", None)
    return InstancePlan(
        replace_pod=(Delete(pod.name, pod.uid), pod.metadata.resource_version or ""),
        status=status,
        events=(Event("Normal", reasons.MIGRATABILITY_LEVEL_CHANGED, why),),
    )


def _pause(instance: VirtualMachineInstance, pod: Pod) -> tuple[str, str] | None:
    wish = instance.annotations.get(labels.PAUSE)
    return (pod.name, wish) if wish is not None and pod.annotations.get(labels.PAUSE) != wish else None


def _trouble(instance: VirtualMachineInstance, observed: Observed) -> tuple[Event, ...]:
    """An error that its node has met, and goes on trying: told once."""
    told = instance.status is not None and instance.status.reason == observed.reason
    return () if told or observed.reason not in reasons.NODE_ERRORS else (Event("Warning", observed.reason, observed.message),)


def _node_label(instance: VirtualMachineInstance, pod: Pod, observed: Observed) -> str | None:
    name = pod.spec.node_name
    if observed.phase != "Running" or not name or instance.labels.get(labels.NODE_NAME) == name:
        return None
    return name


def _stands_still(instance: VirtualMachineInstance, observed: Observed) -> tuple[Event, ...]:
    """Told once, where it is nobody's wish."""
    report = observed.report
    if observed.phase != "Running" or report is None or report.state != "Paused" or not report.reason:
        return ()
    known = find(instance.status.conditions if instance.status else None, reasons.PAUSED)
    told = known is not None and known.status == "True" and known.reason == report.reason
    kind = "Normal" if report.reason == reasons.SAVING_MEMORY else "Warning"
    return () if told else (Event(kind, report.reason, report.message),)


def _events(instance: VirtualMachineInstance, observed: Observed, pod: Pod) -> tuple[Event, ...]:
    before = phase_of(instance)
    waits_for_level = observed.reason == reasons.MIGRATABILITY_LEVEL_NOT_REACHED
    if waits_for_level and (instance.status is None or instance.status.reason != observed.reason):
        return (Event("Warning", observed.reason, observed.message),)
    if trouble := _trouble(instance, observed):
        return trouble
    if observed.phase == before:
        return _stands_still(instance, observed)
    if observed.phase == "Running" and before != "Unknown":
        return (Event("Normal", reasons.STARTED, f"the guest runs on node {pod.spec.node_name}"),)
    if observed.phase == "Succeeded":
        return (Event("Normal", observed.reason, observed.message or "the guest has shut down"),)
    if observed.phase in ("Failed", "Unknown"):
        return (Event("Warning", observed.reason, observed.message or "the guest has ended without shutting down"),)
    return ()

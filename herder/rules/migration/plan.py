"""The plan for one migration."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import MigrationOrder, order_of, report_of
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.migration import MigrationPhase
from herder.rules.instances.observed import fenced
from herder.rules.instances.plan import launcher_of
from herder.rules.instances.plan import phase_of as instance_phase
from herder.rules.instances.pods import active_pod
from herder.rules.migration import status as shown
from herder.rules.migration.handover import GRANT_AFTER, Failed, GoesOn, Moved, Sides, sides_of, standing
from herder.rules.migration.phases import FINISHED, further, phase_of, reached
from herder.rules.migration.snapshot import MigrationSnapshot
from herder.rules.migration.target_pod import target_pod
from herder.rules.plans import Delete, Document, Event, find


class MigrationPlan(msgspec.Struct, frozen=True):
    add_finalizer: bool = False
    remove_finalizer: bool = False
    # It may begin, or come in, when it is its turn: then this is its status, else `status`.
    begins: Document | None = None
    comes_in: Document | None = None
    status: Document | None = None
    create_pod: Document | None = None
    # (pod, order): what the source pod's annotation should say; None takes it away.
    order: tuple[str, MigrationOrder | None] | None = None
    # The target pod that shall be told to go on.
    grant: str = ""
    delete_pods: tuple[Delete, ...] = ()
    # That this pod is gone decides: ask the API server itself before it is believed.
    gone: str | None = None
    events: tuple[Event, ...] = ()
    next_look: float | None = None
    # It was over before: what is left is removed.
    finished: bool = False


def plan_migration(snapshot: MigrationSnapshot, now: float) -> MigrationPlan:
    migration = snapshot.migration
    phase = phase_of(migration)
    if phase in FINISHED:
        return _tidy(snapshot)
    if phase == "Pending":
        # Nothing is made for one that waits: deleted, it may go at once, and a thousand of them cost a thousand writes less.
        return _pending(snapshot, now)
    plan = _under_way(snapshot, phase, now)
    ours = labels.MIGRATION_FINALIZER in migration.finalizers
    return msgspec.structs.replace(plan, add_finalizer=not ours and not migration.being_deleted)


def _pending(snapshot: MigrationSnapshot, now: float) -> MigrationPlan:
    failure = _cannot(snapshot)
    if failure is not None:
        return _over(snapshot, failure, now)
    instance = snapshot.instance
    assert instance is not None, "without one it has failed"
    waits = _not_yet(instance)
    if waits[0]:
        return MigrationPlan(status=shown.waiting(snapshot.migration, *waits, now))
    assert snapshot.prepared is not None
    source = active_pod(snapshot.pods, launcher_of(instance))
    if source is None or not source.spec.node_name:
        return MigrationPlan(status=shown.waiting(snapshot.migration, reasons.GUEST_NOT_RUNNING, "the guest has no pod", now))
    if snapshot.prepared.impossible[0]:
        return _over(snapshot, Failed(*snapshot.prepared.impossible), now)
    return MigrationPlan(begins=shown.begun(snapshot.migration, instance, source, snapshot.prepared, now))


def _cannot(snapshot: MigrationSnapshot) -> Failed | None:
    """What will not change by waiting."""
    migration, instance = snapshot.migration, snapshot.instance
    if migration.being_deleted:
        return Failed(reasons.CANCELLED, "it was deleted before it began")
    name = migration.spec.vmi_name
    if instance is None:
        return Failed(reasons.VMI_NOT_FOUND, f"there is no VirtualMachineInstance {name}")
    if instance_phase(instance) in ("Succeeded", "Failed") or instance.being_deleted:
        return Failed(reasons.SOURCE_STOPPED, f"VirtualMachineInstance {name} has ended")
    if snapshot.rival:
        return Failed(reasons.ANOTHER_MIGRATION, f"migration {snapshot.rival} of {name} is not finished")
    movable = find(instance.status.conditions if instance.status else None, reasons.LIVE_MIGRATABLE)
    if movable is not None and movable.status == "False" and instance_phase(instance) == "Running":
        return Failed(reasons.NOT_LIVE_MIGRATABLE, f"{movable.reason}: {movable.message}")
    return None


def _not_yet(instance: VirtualMachineInstance) -> tuple[str, str]:
    phase = instance_phase(instance)
    if phase == "Unknown":
        return reasons.NODE_NOT_FENCED, (instance.status.message if instance.status else None) or "its node does not answer"
    if phase != "Running":
        return reasons.GUEST_NOT_RUNNING, f"the guest is {phase}; it is moved once it runs"
    return "", ""


def _under_way(snapshot: MigrationSnapshot, phase: MigrationPhase, now: float) -> MigrationPlan:
    sides = sides_of(snapshot, now)
    unwanted = _unwanted(snapshot, sides, phase, now)
    if phase == "Scheduling" and sides.target is None and not sides.source_ended and not unwanted[0]:
        return MigrationPlan(create_pod=target_pod(snapshot), next_look=snapshot.timeouts.unschedulable)
    stands = standing(sides, unwanted)
    if isinstance(stands, Failed):
        return _over(snapshot, stands, now, gone=_missing(snapshot, sides))
    if isinstance(stands, Moved):
        return _over(snapshot, stands, now)
    return _goes_on(snapshot, sides, stands, phase, now)


def _missing(snapshot: MigrationSnapshot, sides: Sides) -> str | None:
    """The pod whose absence made it fail, if that is what did."""
    status = snapshot.migration.status
    if sides.target is None and status is not None:
        return status.target_pod
    state = status.migration_state if status is not None else None
    return state.source_pod if sides.source is None and state is not None else None


def _unwanted(snapshot: MigrationSnapshot, sides: Sides, phase: MigrationPhase, now: float) -> tuple[str, str]:
    if snapshot.migration.being_deleted:
        return reasons.CANCELLED, "it was deleted, which cancels it"
    if snapshot.instance is None or snapshot.instance.being_deleted:
        return reasons.SOURCE_STOPPED, f"VirtualMachineInstance {snapshot.migration.spec.vmi_name} is being deleted"
    if phase == "Running" or sides.source_said is not None:
        # The source's agent keeps the time from here on.
        return "", ""
    limit = _time_for_target(snapshot, sides)
    if limit and _seconds_since(snapshot, "Scheduling", now) >= limit:
        why = snapshot.no_place or _said_by_target(sides) or "its target did not get ready"
        return reasons.PENDING_TIMEOUT, f"no target was ready within {limit:g} s: {why}"
    return "", ""


def _said_by_target(sides: Sides) -> str:
    report = report_of(sides.target) if sides.target is not None else None
    return (report.message if report is not None else "") or (sides.target.status.message if sides.target is not None else "")


def _time_for_target(snapshot: MigrationSnapshot, sides: Sides) -> float:
    unbound = sides.target is None or not sides.target.spec.node_name
    return snapshot.timeouts.unschedulable if unbound else snapshot.timeouts.pending


def _seconds_since(snapshot: MigrationSnapshot, phase: MigrationPhase, now: float) -> float:
    at = reached(snapshot.migration, phase)
    return now - at.timestamp() if at is not None else 0.0


def _goes_on(snapshot: MigrationSnapshot, sides: Sides, stands: GoesOn, phase: MigrationPhase, now: float) -> MigrationPlan:
    target = sides.target
    bound = target is not None and bool(target.spec.node_name)
    if phase in ("Scheduling", "Scheduled") and bound and stands.phase != "Running":
        coming = msgspec.structs.replace(stands, phase="PreparingTarget", give_order=False)
        return MigrationPlan(
            comes_in=shown.under_way(snapshot, sides, coming, now),
            events=_events(snapshot, sides, coming),
            next_look=_look(snapshot, sides, now),
        )
    stands = msgspec.structs.replace(stands, phase=further(phase, stands.phase))
    if stands.phase == "Scheduling" and snapshot.no_place:
        stands = msgspec.structs.replace(stands, message=snapshot.no_place)
    grant, look = _grant(snapshot, sides, stands, now)
    return MigrationPlan(
        status=shown.under_way(snapshot, sides, stands, now),
        order=_order(snapshot, sides, stands),
        grant=grant,
        events=_events(snapshot, sides, stands),
        # A source that only seems to be gone may still run.
        gone=_missing(snapshot, sides) if grant and sides.source is None else None,
        next_look=look or stands.look_in or (_look(snapshot, sides, now) if stands.phase != "Running" else None),
    )


def _events(snapshot: MigrationSnapshot, sides: Sides, stands: GoesOn) -> tuple[Event, ...]:
    """Each thing once: the status remembers what was told."""
    status = snapshot.migration.status
    state = status.migration_state if status is not None else None
    found: list[Event] = []
    why = sides.target_said.no_post_copy if sides.target_said is not None else ""
    if why and (state is None or not state.post_copy_unavailable):
        found.append(Event("Warning", reasons.POST_COPY_NOT_AVAILABLE, f"{why}; it goes on without post-copy"))
    if stands.troubled and (status is None or status.reason != stands.reason):
        found.append(Event("Warning", stands.reason, stands.message))
    return tuple(found)


def _look(snapshot: MigrationSnapshot, sides: Sides, now: float) -> float | None:
    limit = _time_for_target(snapshot, sides)
    return max(0.1, limit - _seconds_since(snapshot, "Scheduling", now)) if limit else None


def _grant(snapshot: MigrationSnapshot, sides: Sides, stands: GoesOn, now: float) -> tuple[str, float | None]:
    target = sides.target
    if not stands.grant or target is None or target.annotations.get(labels.RESUME) == sides.uid:
        return "", None
    if stands.next_look is None:
        return target.name, None
    status = snapshot.migration.status
    state = status.migration_state if status is not None else None
    at = state.handed_over_timestamp if state is not None else None
    late = at is not None and now - at.timestamp() >= GRANT_AFTER
    return (target.name, None) if late else ("", GRANT_AFTER)


def _order(snapshot: MigrationSnapshot, sides: Sides, stands: GoesOn) -> tuple[str, MigrationOrder | None] | None:
    source, target = sides.source, sides.target
    if source is None:
        return None
    if stands.cancel and (known := order_of(source)) is not None:
        return source.name, msgspec.structs.replace(known, cancelled=True)
    if not stands.give_order or target is None or sides.target_said is None:
        return None
    status = snapshot.migration.status
    assert status is not None and status.effective_settings is not None, "written when it began"
    order = MigrationOrder(
        migration=sides.uid,
        settings=status.effective_settings,
        target_pod=target.uid,
        target_node=target.spec.node_name,
        address=sides.target_said.address,
    )
    return source.name, order


def _over(snapshot: MigrationSnapshot, stands: Failed | Moved, now: float, gone: str | None = None) -> MigrationPlan:
    """Said first; what is left is removed once it is known to be over."""
    status = shown.over(snapshot, stands, now)
    if isinstance(stands, Moved):
        node = snapshot.target.spec.node_name if snapshot.target else ""
        event = Event("Normal", "Succeeded", f"the guest runs on node {node}")
    else:
        event = Event("Warning", stands.reason, stands.message)
    return MigrationPlan(status=status, gone=gone, events=(event,))


def _tidy(snapshot: MigrationSnapshot) -> MigrationPlan:
    """After a success the source goes, after a failure the target. Then nobody needs this migration any more."""
    source, target = snapshot.source, snapshot.target
    moved = phase_of(snapshot.migration) == "Succeeded"
    left = source if moved else target
    uid = snapshot.migration.uid
    order = None
    if not moved and source is not None and (known := order_of(source)) is not None and known.migration == uid:
        order = (source.name, None)
    ours = labels.MIGRATION_FINALIZER in snapshot.migration.finalizers
    return MigrationPlan(
        finished=True,
        delete_pods=_delete(left, snapshot) if left is not None else (),
        order=order,
        remove_finalizer=ours and left is None and order is None,
    )


def _delete(pod: Pod, snapshot: MigrationSnapshot) -> tuple[Delete, ...]:
    if not pod.being_deleted:
        return (Delete(pod.name, pod.uid),)
    if pod.spec.node_name and fenced(snapshot.nodes.get(pod.spec.node_name)):
        return (Delete(pod.name, pod.uid, grace_period_seconds=0),)
    return ()

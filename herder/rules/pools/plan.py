"""The plan for one VirtualMachinePool: adopt, scale, preserve, roll out and heal, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from herder.api import labels
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import Delete, Document, Event, moment, text_of
from herder.rules.pools import availability, healing, preservation, revisions, rollout, scale, standby
from herder.rules.pools.actions import Adopt, Create, Remove, Resume, Suspend, Update
from herder.rules.pools.events import events_of
from herder.rules.pools.member import Member, RunField
from herder.rules.pools.naming import machine_name
from herder.rules.pools.preservation import Release
from herder.rules.pools.revisions import Revision
from herder.rules.pools.save_failure import one_more
from herder.rules.pools.selection import Inputs
from herder.rules.pools.snapshot import Attachable, OwnedVolume, PoolSnapshot, Refusal
from herder.rules.pools.status import Standing, status_of
from herder.rules.pools.template import is_off, machine_document, owner_reference, run_field


class PoolPlan(msgspec.Struct, frozen=True, kw_only=True):
    # The revision of the template as it is: to be made, or to be the newest again (with its number).
    create_revision: Document | None = None
    renumber: tuple[Revision, int] | None = None
    forget: tuple[Delete, ...] = ()
    adopt: tuple[Adopt, ...] = ()
    release: tuple[Release, ...] = ()
    heal: tuple[Remove, ...] = ()
    remove: tuple[Remove, ...] = ()
    # Memory is saved before they go; or they stay after all.
    suspend: tuple[Suspend, ...] = ()
    resume: tuple[Resume, ...] = ()
    update: tuple[Update, ...] = ()
    # Standbys that become replicas, and what is written to the others.
    activate: tuple[Update, ...] = ()
    standby: tuple[Update, ...] = ()
    create: tuple[Create, ...] = ()
    status: Document = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()
    # Names about which a refusal still matters: what nobody wants any more is forgotten.
    refused: frozenset[str] = frozenset()
    next_look: float | None = None

    @property
    def destroys(self) -> bool:
        """Whether something is deleted or wiped, or chosen to be: then machines are listed live first."""
        updates = (*self.update, *self.activate, *self.standby)
        return bool(
            self.heal or self.remove or self.suspend or any(one.wipes for one in updates) or any(one.wiped for one in self.create)
        )


def plan_pool(snapshot: PoolSnapshot, now: float) -> PoolPlan:
    pool = snapshot.pool
    if pool.being_deleted:
        # The garbage collector takes its machines and volumes, or leaves them, as it was asked.
        return PoolPlan()
    wanted, known, stored = _revisions(snapshot)
    ours = tuple(member for member in snapshot.members if member.number is not None)
    staying = tuple(member for member in ours if not member.deleting and not member.standby)
    course = rollout.course(pool, wanted, known, staying, now)
    inputs = Inputs(snapshot.nodes, course.target.name)
    if pool.spec.paused:
        return _paused(snapshot, wanted, course, staying, now)
    burst = max(0, snapshot.burst - sum(member.in_flight for member in ours))
    # Who scales in sees that machine go that was chosen, even while others are healed.
    out = max(0, snapshot.burst - sum(member.deleting for member in ours))
    taken = scale.scale_in(pool, staying, inputs, out, now, online=preservation.keeps_memory(pool))
    gone = taken.leaving
    burst = max(0, burst - sum(not member.in_flight for member in (*taken.taken, *taken.save)))
    sleeping = [member for member in ours if member.standby and not member.deleting]
    yields = standby.yields_to(staying, now) if standby.wanted_count(pool) else 0.0
    standbys = standby.shared_out(pool, sleeping, scale.needed(snapshot), burst, refill=yields <= 0)
    burst = max(0, burst - sum(not member.in_flight for member in (*standbys.activate, *standbys.surplus)))
    surplus = {member.uid for member in (*standbys.surplus, *standbys.activate)}
    ready_before = preservation.was_ready_on(snapshot)
    outlived = preservation.outlived(snapshot)
    resumed = _resumptions(staying, taken, now)
    # Each has one part in a plan: what else is to be done to it comes after that.
    going_on = {one.uid for one in resumed}
    left_alone = gone | outlived | surplus | going_on
    treated = healing.heal(pool, ours, ready_before, snapshot.nodes, now, burst, left_alone)
    healed = {member.uid for member in treated.healed}
    burst = max(0, burst - sum(not member.in_flight for member in treated.healed))
    kept = tuple(member for member in staying if member.uid not in gone and member.uid not in healed)
    counts = availability.count(kept, pool.spec.replicas, availability.min_ready_seconds(pool), now)
    limits = rollout.Limits(counts, inputs, burst, now)
    rolled = [member for member in _not_refused(snapshot, kept, now) if member.uid not in going_on]
    steps = rollout.steps(pool, course, known, rolled, limits)
    unsettled = rollout.unsettled(snapshot.template_since, now)
    if unsettled > 0:
        steps = tuple(step for step in steps if step.effect == "InPlace")
    burst = max(0, burst - sum(not step.member.in_flight for step in steps))
    numbers = scale.scale_out(snapshot, now, burst, standbys)
    burst = max(0, burst - len(numbers.numbers) - len(numbers.standby))
    asleep = [member for member in _not_refused(snapshot, standbys.staying, now) if member.uid not in healed]
    writes = standby.steps(pool, asleep, course.last_good, known, burst, now) if unsettled <= 0 else ()
    fresh = sum(step.is_fresh for step in steps)
    activated = tuple(
        standby.activated(pool, member, course, known, fresh + nth, now) for nth, member in enumerate(standbys.activate)
    )
    preserving = gone | {member.uid for member in standbys.surplus} if preservation.keeps_volumes(pool) else frozenset[str]()
    releases = preservation.releases(snapshot, preserving)
    others = (one.name for one in (*releases, *snapshot.attachable, *taken.taken, *sleeping))
    refused = _refused(snapshot, kept, (*numbers.refused, *others))
    standing = Standing(staying, wanted, course, counts, treated, taken.left, refused, taken.unsaved, standbys)
    return PoolPlan(
        create_revision=None if stored else revisions.revision_document(pool, wanted, revisions.next_number(snapshot.revisions)),
        renumber=_renumbered(snapshot, wanted, known) if stored else None,
        forget=revisions.to_forget(pool, snapshot.revisions, _in_use(snapshot, wanted, course)),
        adopt=tuple(_adoption(one, snapshot) for one in snapshot.attachable),
        release=releases,
        heal=tuple(_removal(member) for member in treated.healed),
        remove=tuple(_scaled_in(pool, member) for member in (*taken.taken, *standbys.surplus)),
        suspend=tuple(_suspension(snapshot, member, known, now) for member in taken.save),
        resume=resumed,
        update=tuple(_update(snapshot, step, now) for step in steps),
        activate=tuple(_applied(write) for write in activated),
        standby=tuple(_applied(write) for write in writes),
        create=_creations(snapshot, course, known, numbers, fresh + _given(activated, course), now),
        status=status_of(snapshot, standing, now),
        events=events_of(pool, standing, now),
        refused=frozenset(refused),
        next_look=_soonest(
            course.next_look,
            unsettled if unsettled > 0 else None,
            treated.next_look,
            counts.next_look,
            numbers.next_look,
            taken.next_look,
            standby.next_look(standbys.staying, now),
            yields if yields > 0 and len(standbys.staying) < standby.wanted_count(pool) else None,
            *(refusal.retry - now for refusal in refused.values() if refusal.retry > now),
        ),
    )


def _paused(snapshot: PoolSnapshot, wanted: Revision, course: rollout.Course, staying: tuple[Member, ...], now: float) -> PoolPlan:
    """Nothing is done to machines; what there is is shown. What one has taken back is its own all the same: deleted by hand, it
    would leave a volume behind that the one after it gets."""
    pool = snapshot.pool
    counts = availability.count(staying, pool.spec.replicas, availability.min_ready_seconds(pool), now)
    treated = healing.heal(pool, staying, {}, {}, now)
    surplus = max(0, len(staying) - pool.spec.replicas)
    sleeping = tuple(member for member in snapshot.members if member.standby and not member.deleting)
    standbys = standby.Standbys(staying=sleeping)
    standing = Standing(staying, wanted, course, counts, treated, surplus, snapshot.refusals, (), standbys)
    return PoolPlan(
        release=preservation.releases(snapshot, preserving=()),
        status=status_of(snapshot, standing, now),
        events=events_of(pool, standing, now),
        refused=frozenset(snapshot.refusals),
        next_look=counts.next_look,
    )


def _revisions(snapshot: PoolSnapshot) -> tuple[Revision, dict[str, Revision], bool]:
    """That of the template, all by name, and whether that of the template is stored."""
    wanted = revisions.wanted_revision(snapshot.pool, snapshot.template, snapshot.name_generation)
    known = {one.name: one for one in snapshot.revisions}
    found = revisions.known_as(snapshot.pool, wanted, known)
    if found is not None:
        return found, known, True
    return wanted, {**known, wanted.name: wanted}, False


def _renumbered(snapshot: PoolSnapshot, wanted: Revision, known: dict[str, Revision]) -> tuple[Revision, int] | None:
    """A template that people went back to is the newest again."""
    newest = max((one.number for one in snapshot.revisions), default=0)
    return (known[wanted.name], newest + 1) if wanted.number < newest else None


def _in_use(snapshot: PoolSnapshot, wanted: Revision, course: rollout.Course) -> frozenset[str]:
    status = snapshot.pool.status
    used = {wanted.name, course.target.name, course.last_good.name, (status.current_revision if status else None) or ""}
    for member in snapshot.members:
        used.update((member.revision, member.instance_revision, member.ready_revision))
    for volume in snapshot.volumes:
        used.update((volume.ready_revision, volume.revision))
    return frozenset(used)


def _not_refused(snapshot: PoolSnapshot, members: Sequence[Member], now: float) -> list[Member]:
    later = {name for name, refusal in snapshot.refusals.items() if refusal.retry > now}
    return [member for member in members if member.name not in later]


def _refused(snapshot: PoolSnapshot, members: Sequence[Member], wanted: Sequence[str]) -> dict[str, Refusal]:
    """What was refused to machines that there are, or should be: that of others matters to nobody any more."""
    names = {member.name for member in members}.union(wanted)
    return {name: refusal for name, refusal in snapshot.refusals.items() if name in names}


def _adoption(one: Attachable, snapshot: PoolSnapshot) -> Adopt:
    """The reference that a person wrote is completed, the others stay."""
    whole = owner_reference(snapshot.pool)
    references = tuple(whole if reference.get("uid") == snapshot.pool.uid else reference for reference in one.references)
    return Adopt(one.name, one.uid, one.resource_version, references)


def _removal(member: Member, *, preserve: bool = False, memory: bool = False) -> Remove:
    return Remove(
        name=member.name,
        uid=member.uid,
        resource_version=member.resource_version,
        preserve=preserve,
        memory=memory,
        ready_revision=member.ready_revision,
        revision=member.revision,
    )


def _scaled_in(pool: VirtualMachinePool, member: Member) -> Remove:
    keeps = preservation.keeps_volumes(pool)
    return _removal(member, preserve=keeps, memory=preservation.keeps_memory(pool) and member.has_memory)


def _suspension(snapshot: PoolSnapshot, member: Member, known: Mapping[str, Revision], now: float) -> Suspend:
    """An opportunistic update has given another spec to a machine whose guest still runs the old one: only as that it goes on."""
    runs, has = known.get(member.instance_revision), known.get(member.revision)
    document: Document | None = None
    if runs is not None and has is not None and runs.instance_key != has.instance_key:
        annotations: Document = {labels.POOL_UPDATED: text_of(moment(now)), labels.SUSPENDED_BY: snapshot.pool.uid}
        document = machine_document(
            snapshot.pool, runs, member.number or 0, run=member.run, annotations=annotations, suspended=True
        )
    return Suspend(member.name, member.uid, member.resource_version, document)


def _resumptions(staying: Sequence[Member], taken: scale.ScaleIn, now: float) -> tuple[Resume, ...]:
    """Whom we have suspended to take them, and who stay: because somebody changed their mind, or because it failed."""
    failures = {member.uid: one_more(member.save_failure, why, now) for member, why in taken.failed}
    ours = [member for member in staying if member.suspension is not None and member.suspension.by_pool]
    return tuple(
        Resume(member.name, member.uid, member.resource_version, failures.get(member.uid, ""))
        for member in ours
        if member.uid not in taken.leaving
    )


def _applied(write: standby.Write) -> Update:
    return Update(
        name=write.member.name,
        uid=write.member.uid,
        resource_version=write.member.resource_version,
        revision=write.revision.name,
        document=write.document,
        effect="InPlace",
        reword=_reworded(write.member.run, write.run),
        wipes=write.wipes,
    )


def _given(activated: Sequence[standby.Write], course: rollout.Course) -> int:
    """How many of them have the revision that is rolled out."""
    return sum(write.revision.name == course.target.name for write in activated)


def _update(snapshot: PoolSnapshot, step: rollout.Step, now: float) -> Update:
    member = step.member
    annotations: Document = {labels.POOL_UPDATED: text_of(moment(now))}
    if step.restart:
        annotations[labels.RESTART_REQUEST] = step.restart
    if step.holds_for:
        annotations[labels.UPDATED_IN_PLACE] = step.holds_for
    if member.waits_to_retry:
        # How often it failed with another template says nothing about this one: it is tried at once.
        annotations[labels.START_REQUEST] = f"{step.revision.name} {annotations[labels.POOL_UPDATED]}"
    if step.reprovision:
        annotations[labels.REPROVISION] = ",".join(f"{name}-{member.number}" for name in step.reprovision)
    document = machine_document(snapshot.pool, step.revision, member.number or 0, run=step.run, annotations=annotations)
    return Update(
        name=member.name,
        uid=member.uid,
        resource_version=member.resource_version,
        revision=step.revision.name,
        document=document,
        effect=step.effect,
        reword=_reworded(member.run, step.run),
        wipes=bool(step.reprovision),
    )


def _reworded(own: RunField | None, wanted: RunField | None) -> Document | None:
    """Server-side apply takes nothing away that somebody else has said: of the two fields the machine would then have both."""
    if own is None or wanted is None or own.name == wanted.name:
        return None
    return {"spec": {own.name: None, wanted.name: "Always" if own.value else "Halted"}}


def _creations(
    snapshot: PoolSnapshot,
    course: rollout.Course,
    known: Mapping[str, Revision],
    numbers: scale.ScaleOut,
    updated: int,
    now: float,
) -> tuple[Create, ...]:
    """`updated`: how many get the revision in this plan before them. Whose memory was kept comes back with the revision that it
    had, else it could not go on, and is rolled afterwards."""
    kept = preservation.preserved_states(snapshot)
    made: list[Create] = []
    for number in (*numbers.numbers, *numbers.standby):
        sleeps = number in numbers.standby
        volumes = kept.get(machine_name(snapshot.pool.name, number), ())
        memory = preservation.kept_memory(volumes)
        own = known.get(memory.revision) if memory is not None else None
        revision = own or (course.last_good if sleeps else course.for_new(updated))
        updated += not sleeps and revision.name == course.target.name
        made.append(_creation(snapshot, number, revision, volumes, known, now, resumes=own is not None, sleeps=sleeps))
    return tuple(made)


def _creation(
    snapshot: PoolSnapshot,
    number: int,
    revision: Revision,
    kept: Sequence[OwnedVolume],
    known: Mapping[str, Revision],
    now: float,
    *,
    resumes: bool,
    sleeps: bool,
) -> Create:
    pool = snapshot.pool
    wiped = () if resumes else preservation.changed_meanwhile(pool, kept, revision, known, number)
    memory = preservation.kept_memory(kept)
    annotations: Document = {labels.POOL_UPDATED: text_of(moment(now))}
    if wiped:
        annotations[labels.REPROVISION] = ",".join(wiped)
    if memory is not None:
        # So that its controller looks for it before the first start, and finds out why if it is not there.
        annotations[labels.RESUME_FROM] = memory.uid
    if sleeps:
        document = standby.created(pool, revision, number, annotations, has_memory=resumes)
    else:
        document = machine_document(pool, revision, number, run=_runs_on(revision) if resumes else None, annotations=annotations)
    name = machine_name(pool.name, number)
    return Create(name, revision.name, document, bool(kept), resumes, wiped, sleeps)


def _runs_on(revision: Revision) -> RunField | None:
    """It ran when it was taken, even where its template keeps machines off: a person had started it."""
    said = run_field(revision.template)
    if not is_off(said):
        return None
    return RunField("running", True) if said is not None and said.name == "running" else RunField("runStrategy", "Always")


def _soonest(*times: float | None) -> float | None:
    return min((max(0.0, time) for time in times if time is not None), default=None)

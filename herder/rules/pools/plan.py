"""The plan for one VirtualMachinePool: adopt, scale, preserve, roll out and heal, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from herder.api import labels
from herder.rules.plans import Delete, Document, Event, moment, text_of
from herder.rules.pools import availability, healing, preservation, revisions, rollout, scale
from herder.rules.pools.events import events_of
from herder.rules.pools.member import Member, RunField
from herder.rules.pools.naming import machine_name
from herder.rules.pools.preservation import Release
from herder.rules.pools.revisions import Revision
from herder.rules.pools.rollout import Effect
from herder.rules.pools.selection import Inputs
from herder.rules.pools.snapshot import Attachable, PoolSnapshot, Refusal
from herder.rules.pools.status import Standing, status_of
from herder.rules.pools.template import machine_document, owner_reference


class Create(msgspec.Struct, frozen=True):
    name: str
    revision: str
    document: Document
    # Volumes that were kept from a machine of this name; and those of them that are made again, because their template changed.
    returning: bool = False
    wiped: tuple[str, ...] = ()


class Update(msgspec.Struct, frozen=True):
    """Of that very machine, in that very state: what somebody did meanwhile is looked at first."""

    name: str
    uid: str
    resource_version: str
    revision: str
    document: Document
    effect: Effect
    # Before it can be applied: `running` said as `runStrategy`, which changes nothing but the word.
    reword: Document | None = None
    # Volumes are wiped and made again.
    wipes: bool = False


class Remove(msgspec.Struct, frozen=True):
    """By foreground deletion, so that the name stays held until nothing of it runs."""

    name: str
    uid: str
    resource_version: str
    # Whether its volumes stay, and what they are to say: what its machine was ready on, and which revision it had.
    preserve: bool = False
    ready_revision: str = ""
    revision: str = ""


class Adopt(msgspec.Struct, frozen=True):
    name: str
    uid: str
    resource_version: str
    references: tuple[Document, ...]


class PoolPlan(msgspec.Struct, frozen=True, kw_only=True):
    # The revision of the template as it is: to be made, or to be the newest again (with its number).
    create_revision: Document | None = None
    renumber: tuple[Revision, int] | None = None
    forget: tuple[Delete, ...] = ()
    adopt: tuple[Adopt, ...] = ()
    release: tuple[Release, ...] = ()
    heal: tuple[Remove, ...] = ()
    remove: tuple[Remove, ...] = ()
    update: tuple[Update, ...] = ()
    create: tuple[Create, ...] = ()
    status: Document = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()
    # Names about which a refusal still matters: what nobody wants any more is forgotten.
    refused: frozenset[str] = frozenset()
    next_look: float | None = None

    @property
    def destroys(self) -> bool:
        """Whether something is deleted or wiped: then machines are listed live first."""
        return bool(self.heal or self.remove or any(one.wipes for one in self.update) or any(one.wiped for one in self.create))


def plan_pool(snapshot: PoolSnapshot, now: float) -> PoolPlan:
    pool = snapshot.pool
    if pool.being_deleted:
        # The garbage collector takes its machines and volumes, or leaves them, as it was asked.
        return PoolPlan()
    wanted, known, stored = _revisions(snapshot)
    ours = tuple(member for member in snapshot.members if member.number is not None)
    staying = tuple(member for member in ours if not member.deleting)
    course = rollout.course(pool, wanted, known, staying, now)
    inputs = Inputs(snapshot.nodes, course.target.name)
    if pool.spec.paused:
        return _paused(snapshot, wanted, course, staying, now)
    burst = max(0, snapshot.burst - sum(member.in_flight for member in ours))
    # Who scales in sees that machine go that was chosen, even while others are healed.
    taken = scale.scale_in(pool, staying, inputs, max(0, snapshot.burst - sum(member.deleting for member in ours)))
    gone = {member.uid for member in taken.taken}
    burst = max(0, burst - sum(not member.in_flight for member in taken.taken))
    ready_before = preservation.was_ready_on(snapshot)
    outlived = preservation.outlived(snapshot)
    treated = healing.heal(pool, ours, ready_before, snapshot.nodes, now, burst, left_alone=gone | outlived)
    healed = {member.uid for member in treated.healed}
    burst = max(0, burst - sum(not member.in_flight for member in treated.healed))
    kept = tuple(member for member in staying if member.uid not in gone and member.uid not in healed)
    counts = availability.count(kept, pool.spec.replicas, availability.min_ready_seconds(pool), now)
    limits = rollout.Limits(counts, inputs, burst, now)
    steps = rollout.steps(pool, course, known, _not_refused(snapshot, kept, now), limits)
    unsettled = rollout.unsettled(snapshot.template_since, now)
    if unsettled > 0:
        steps = tuple(step for step in steps if step.effect == "InPlace")
    burst = max(0, burst - sum(not step.member.in_flight for step in steps))
    numbers = scale.scale_out(snapshot, now, burst)
    preserving = gone if preservation.keeps_volumes(pool) else set[str]()
    releases = preservation.releases(snapshot, preserving)
    others = (one.name for one in (*releases, *snapshot.attachable, *taken.taken))
    refused = _refused(snapshot, kept, (*numbers.refused, *others))
    standing = Standing(staying, wanted, course, counts, treated, taken.left, refused)
    return PoolPlan(
        create_revision=None if stored else revisions.revision_document(pool, wanted, revisions.next_number(snapshot.revisions)),
        renumber=_renumbered(snapshot, wanted, known) if stored else None,
        forget=revisions.to_forget(pool, snapshot.revisions, _in_use(snapshot, wanted, course)),
        adopt=tuple(_adoption(one, snapshot) for one in snapshot.attachable),
        release=releases,
        heal=tuple(_removal(member, False) for member in treated.healed),
        remove=tuple(_removal(member, bool(preserving)) for member in taken.taken),
        update=tuple(_update(snapshot, step, now) for step in steps),
        create=_creations(snapshot, course, known, numbers.numbers, sum(step.is_fresh for step in steps), now),
        status=status_of(snapshot, standing, now),
        events=events_of(pool, standing, now),
        refused=frozenset(refused),
        next_look=_soonest(
            course.next_look,
            unsettled if unsettled > 0 else None,
            treated.next_look,
            counts.next_look,
            numbers.next_look,
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
    standing = Standing(staying, wanted, course, counts, treated, surplus, snapshot.refusals)
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


def _removal(member: Member, preserve: bool) -> Remove:
    return Remove(member.name, member.uid, member.resource_version, preserve, member.ready_revision, member.revision)


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
    numbers: Sequence[int],
    updated: int,
    now: float,
) -> tuple[Create, ...]:
    """`updated`: how many get the revision in this plan before them."""
    pool = snapshot.pool
    kept = preservation.preserved_states(snapshot)
    since = {labels.POOL_UPDATED: text_of(moment(now))}
    made: list[Create] = []
    for place, number in enumerate(numbers):
        revision, name = course.for_new(updated + place), machine_name(pool.name, number)
        wiped = preservation.changed_meanwhile(pool, kept.get(name, ()), revision, known, number)
        annotations = {**since, labels.REPROVISION: ",".join(wiped)} if wiped else since
        document = machine_document(pool, revision, number, annotations=annotations)
        made.append(Create(name, revision.name, document, name in kept, wiped))
    return tuple(made)


def _soonest(*times: float | None) -> float | None:
    return min((max(0.0, time) for time in times if time is not None), default=None)

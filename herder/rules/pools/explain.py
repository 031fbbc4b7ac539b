"""What `herder pool status` and `herder pool plan` say: how each machine is, and what would be done before it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from herder.api import labels, reasons
from herder.api.core import HorizontalPodAutoscaler
from herder.api.kinds import VirtualMachine, VirtualMachinePool
from herder.rules.machines.waiting import shown_word
from herder.rules.plans import Document, moment, text_of
from herder.rules.pools.actions import Create, Remove, Update
from herder.rules.pools.autoscaler import last_words
from herder.rules.pools.availability import max_unavailable
from herder.rules.pools.member import FIRST, NEVER, Member
from herder.rules.pools.plan import PoolPlan, plan_pool
from herder.rules.pools.rollout import is_updated
from herder.rules.pools.snapshot import PoolSnapshot
from herder.rules.pools.standby import is_ready
from herder.rules.pools.status import counted, named
from herder.rules.pools.waiting import rollout_standing

# What a step does. Update: nothing that a guest notices. Release: of a volume, which its machine then has to itself again.
Action = Literal["Attach", "Release", "Heal", "Delete", "Resume", "Suspend", "Activate", "Update", "Restart", "Stop", "Create"]
# Nobody is held back.
_UNBOUNDED = 2**31 - 1
# Whoever asks for more machines than anybody has is told the first so many.
MOST_LATER = 10_000
_VERBS: dict[Action, str] = {
    "Attach": "attached",
    "Release": "released",
    "Heal": "deleted with all volumes and made again",
    "Delete": "deleted",
    "Resume": "resumed",
    "Suspend": "suspended, to be deleted",
    "Activate": "put to work",
    "Update": "updated without a restart",
    "Restart": "restarted",
    "Stop": "stopped",
    "Create": "created",
}
# Of conditions: all that keeps a pool from what is wanted.
_HOLDING = (
    reasons.PROGRESS_DEADLINE_EXCEEDED,
    reasons.ROLLED_BACK,
    reasons.ROLLOUT_PAUSED,
    reasons.ROLLOUT_LIMITED,
    reasons.WAITING_FOR_RESTARTS,
    reasons.PAUSED,
    reasons.FAILED_CREATE,
    reasons.FAILED_UPDATE,
    reasons.VOLUME_NOT_OWNED,
    reasons.UNEXPECTED_NAMES,
    reasons.READY_ON_EARLIER_REVISION,
    reasons.CANNOT_SAVE_MEMORY,
)


# The pool as it is.


class MachineRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    # Of its instance where there is one.
    revision: str
    updated: bool
    ready: bool
    node: str
    created: str
    why: str


class PoolReport(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    desired: int
    current: int
    ready: int
    updated: int
    unavailable: int
    surplus: int
    # Kept beside the replicas, and how many of them can be taken at once; replicas that somebody has suspended.
    standby: int
    ready_standby: int
    suspended: int
    preserved: int
    detached: tuple[str, ...]
    current_revision: str
    update_revision: str
    # Where its rollout stands: done, going or held, how far in percent, and a sentence.
    rollout: str
    percent: int
    message: str
    # What else its conditions complain about, and what autoscalers last said of it.
    problems: tuple[str, ...]
    autoscalers: tuple[str, ...]
    machines: tuple[MachineRow, ...]


def pool_report(
    pool: VirtualMachinePool,
    machines: Mapping[str, VirtualMachine],
    members: Iterable[Member],
    autoscalers: Iterable[HorizontalPodAutoscaler] = (),
) -> PoolReport:
    """Counts are those that the pool shows."""
    status, standing, members = pool.status, rollout_standing(pool), list(members)
    wanted = (status.update_revision if status else None) or ""
    problems = _held_back((one.reason or "", one.message or "") for one in (status.conditions if status else None) or ())
    return PoolReport(
        namespace=pool.namespace,
        name=pool.name,
        desired=pool.spec.replicas,
        current=(status.replicas if status else None) or 0,
        ready=(status.ready_replicas if status else None) or 0,
        updated=(status.updated_replicas if status else None) or 0,
        unavailable=(status.unavailable_replicas if status else None) or 0,
        surplus=(status.surplus_replicas if status else None) or 0,
        standby=(status.standby_replicas if status else None) or 0,
        ready_standby=(status.ready_standby_replicas if status else None) or 0,
        suspended=sum(member.is_asleep and not member.standby for member in members),
        preserved=(status.preserved_states if status else None) or 0,
        detached=(status.detached if status else None) or (),
        current_revision=(status.current_revision if status else None) or "",
        update_revision=wanted,
        rollout=standing.state,
        percent=standing.percent,
        message=standing.text,
        problems=tuple(one for one in problems if one not in standing.text),
        autoscalers=last_words(pool, autoscalers),
        machines=tuple(_machine_row(member, machines.get(member.name), wanted) for member in members),
    )


def _machine_row(member: Member, machine: VirtualMachine | None, wanted: str) -> MachineRow:
    return MachineRow(
        name=member.name,
        revision=member.instance_revision or member.revision,
        updated=is_updated(member, wanted),
        ready=member.ready,
        node=member.node,
        created=text_of(moment(member.created)) if member.created else "",
        why="; ".join(part for part in (_why_not(member, machine), _outdated(member, wanted), _marks(member)) if part),
    )


def _why_not(member: Member, machine: VirtualMachine | None) -> str:
    """Why it is not ready; empty where it is."""
    if member.deleting:
        return "it is being deleted"
    if member.standby:
        return _sleeps(member, machine)
    if member.ready:
        return ""
    if member.is_asleep:
        return "it is suspended"
    if member.off:
        return "its run strategy keeps it off" if member.halted else "it is being stopped"
    if member.restarting:
        return "it is being restarted"
    status = machine.status if machine is not None else None
    said = (status.message if status is not None else None) or ""
    word = shown_word(machine) if machine is not None else ""
    times = f"failed to start {member.failures} times in a row" if member.failures > 1 else ""
    return ": ".join(part for part in (word, times, said) if part) or "it has not begun yet"


def _sleeps(member: Member, machine: VirtualMachine | None) -> str:
    """Of one that is kept beside the replicas."""
    if is_ready(member):
        return "on standby, suspended" if member.has_memory else "on standby, stopped"
    doing = "its memory is saved" if member.being_saved else "it is booted, to be saved" if member.standby == "Online" else ""
    word = shown_word(machine) if machine is not None else ""
    return f"on standby, not yet: {doing or word or 'it has not begun yet'}"


def _outdated(member: Member, wanted: str) -> str:
    if member.deleting or not wanted or is_updated(member, wanted) or (member.standby and member.revision == wanted):
        return ""
    if member.number is None:
        return "not named as its pool names machines, so it is never touched"
    if member.paused:
        return "paused, so it is not updated"
    if member.standby:
        return "to be updated while it sleeps"
    if member.has_memory or member.being_saved:
        return "suspended, so it is not updated"
    if member.migrating:
        return "updated once its migration is over"
    if member.revision == wanted:
        return "updated at its next start"
    return "to be updated next, as asked" if member.update_requested == wanted else "to be updated"


def _marks(member: Member) -> str:
    if member.remove_requested:
        return "to be removed"
    return {FIRST: "taken first by a scale-in", NEVER: "never taken by a scale-in"}.get(member.scale_in, "")


# What would be done.


class PlanStep(msgspec.Struct, frozen=True, rename="camel"):
    action: Action
    name: str
    # That it gets; empty where it gets none.
    revision: str = ""
    why: str = ""


class PoolPlanExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    replicas: int
    # Of the template, and whether it is a new one.
    revision: str
    new_revision: bool
    # The plan: what would be done at once, in this order.
    steps: tuple[PlanStep, ...]
    # What would follow as things are now, in this order, and how many at a time.
    later: tuple[PlanStep, ...]
    then: tuple[str, ...]
    # What keeps the pool from what is wanted, and what could not be looked at.
    held_back: tuple[str, ...]
    unknown: tuple[str, ...]


def explain_plan(snapshot: PoolSnapshot, now: float, unknown: Sequence[str] = ()) -> PoolPlanExplanation:
    pool, plan = snapshot.pool, plan_pool(snapshot, now)
    steps = _steps(snapshot, plan)
    # The same plan with nobody held back: what it has beyond the first one comes later.
    free = msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, max_unavailable=_UNBOUNDED))
    whole = _steps(snapshot, plan_pool(msgspec.structs.replace(snapshot, pool=free, burst=MOST_LATER), now))
    first = {(step.action, step.name) for step in steps}
    later = tuple(step for step in whole if (step.action, step.name) not in first)
    conditions: list[Document] = plan.status.get("conditions", [])
    return PoolPlanExplanation(
        namespace=pool.namespace,
        name=pool.name,
        replicas=pool.spec.replicas,
        revision=plan.status.get("updateRevision", ""),
        new_revision=plan.create_revision is not None,
        steps=steps,
        later=later,
        then=tuple(_followed(snapshot, later)),
        held_back=(*_surplus(snapshot, plan), *_held_back((one["reason"], one["message"]) for one in conditions)),
        unknown=tuple(unknown),
    )


def _steps(snapshot: PoolSnapshot, plan: PoolPlan) -> tuple[PlanStep, ...]:
    """In the order in which they are carried out."""
    members = {member.name: member for member in snapshot.members}
    return (
        *(PlanStep("Attach", one.name, why="it has a reference to the pool again") for one in plan.adopt),
        *(PlanStep("Release", one.name, why="of a machine that stays after all") for one in plan.release),
        *(PlanStep("Heal", one.name, why=_sick(members[one.name])) for one in plan.heal),
        *(PlanStep("Delete", one.name, why=_taken(snapshot, one, members[one.name])) for one in plan.remove),
        *(PlanStep("Resume", one.name, why="not taken after all") for one in plan.resume),
        *(PlanStep("Suspend", one.name, why=_saved_first(snapshot)) for one in plan.suspend),
        *(PlanStep("Activate", one.name, one.revision, "a standby, for a scale-out") for one in plan.activate),
        *(_updated(one, members[one.name]) for one in plan.update),
        *(PlanStep("Create", one.name, one.revision, _made(one)) for one in plan.create),
        *(_of_standby(one, members[one.name]) for one in plan.standby),
    )


def _saved_first(snapshot: PoolSnapshot) -> str:
    return f"beyond {counted(snapshot.pool.spec.replicas, 'replica')}; its memory is saved, then it is deleted"


def _of_standby(update: Update, member: Member) -> PlanStep:
    if update.document["spec"].get("suspended") and member.suspension is None:
        return PlanStep("Suspend", update.name, update.revision, "a standby that is to sleep")
    return PlanStep("Update", update.name, update.revision, "a standby")


def _sick(member: Member) -> str:
    failed = "a volume of it failed for good" if member.volume_failed else f"it failed to start {member.failures} times in a row"
    return f"{failed}: deleted with its volumes, then made again"


def _taken(snapshot: PoolSnapshot, removal: Remove, member: Member) -> str:
    chosen = "asked for by name" if member.remove_requested else "marked to go first" if member.scale_in == FIRST else ""
    why = f"beyond {counted(snapshot.pool.spec.replicas, 'replica')}" + (f", {chosen}" if chosen else "")
    why = "a standby too many" if member.standby else why
    kept = "its volumes and its memory are kept" if removal.memory else "its volumes are kept"
    return f"{why}; {kept}" if removal.preserve else f"{why}; its volumes go with it"


def _updated(update: Update, member: Member) -> PlanStep:
    action: Action = "Update" if update.effect == "InPlace" else update.effect
    wiped = update.document["metadata"]["annotations"].get(labels.REPROVISION, "")
    why = ["asked for by name"] if member.update_requested == update.revision else []
    why += [f"from {member.revision}"] if member.revision != update.revision else ["its instance has another revision"]
    why += [f"wipes {wiped.replace(',', ', ')}"] if wiped else []
    return PlanStep(action, update.name, update.revision, "; ".join(why))


def _made(create: Create) -> str:
    wiped = f"; wipes {', '.join(create.wiped)}" if create.wiped else ""
    what = "goes on from the memory that was kept of it" if create.resumes else "takes back the volumes that were kept of it"
    said = [*(["a standby"] if create.standby else []), *([f"{what}{wiped}"] if create.returning else [])]
    return "; ".join(said)


def _followed(snapshot: PoolSnapshot, later: Sequence[PlanStep]) -> Iterable[str]:
    """How many more of each kind, and how many at a time."""
    pool = snapshot.pool
    at_once = max_unavailable(pool)
    for action, verb in _VERBS.items():
        names = [step.name for step in later if step.action == action]
        if not names:
            continue
        many = f"{len(names)} more are" if len(names) > 1 else "1 more is"
        many = f"at least {many}" if len(later) + snapshot.burst >= MOST_LATER else many
        bounded = action in ("Restart", "Stop", "Heal")
        pace = f"at most {at_once} unavailable at a time" if bounded else f"at most {snapshot.burst} on the way at a time"
        yield f"then {many} {verb}, {pace}: {named(names)}"


def _surplus(snapshot: PoolSnapshot, plan: PoolPlan) -> Iterable[str]:
    surplus = plan.status.get("surplusReplicas", 0)
    if not surplus or snapshot.pool.spec.paused:
        return
    kept = [member.name for member in snapshot.members if member.scale_in == NEVER and not member.deleting]
    strategy = snapshot.pool.spec.scale_in_strategy
    stays, off = ("stays", "it is off") if surplus == 1 else ("stay", "they are off")
    if strategy is not None and strategy.unmanaged is not None:
        yield f"{surplus} beyond replicas {stays}: scaleInStrategy is unmanaged"
    elif strategy is not None and strategy.opportunistic is not None:
        yield f"{surplus} beyond replicas {stays} until {off}: scaleInStrategy is opportunistic"
    elif kept:
        yield f"{surplus} beyond replicas {stays}: {named(kept)} may not be taken ({labels.SCALE_IN}: {NEVER})"


def _held_back(conditions: Iterable[tuple[str, str]]) -> Iterable[str]:
    return [message for reason, message in conditions if reason in _HOLDING and message]

"""How many machines are made, and which are taken (seed 003: scale-out fills gaps first, scale-in goes by the strategy)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from herder.api.kinds import VirtualMachinePool
from herder.api.kinds.pool import ScaleInStrategy, SelectionPolicy
from herder.rules.pools.member import FIRST, NEVER, Member
from herder.rules.pools.naming import free_numbers, machine_name
from herder.rules.pools.online_preservation import Progress, progress
from herder.rules.pools.selection import Inputs, ordered
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.snapshot import PoolSnapshot
from herder.rules.pools.standby import Standbys

NO_STANDBYS = Standbys()
# Of so many refusals the rest would most likely get the same.
ENOUGH_REFUSALS = 8


class ScaleIn(msgspec.Struct, frozen=True):
    taken: tuple[Member, ...] = ()
    # Beyond replicas, and not to be taken now: the strategy, a wish (`never`), the burst or their memory does not let us.
    left: int = 0
    # Whose memory is to be saved first, and whose is being saved.
    save: tuple[Member, ...] = ()
    saving: tuple[Member, ...] = ()
    # Of whom it was tried, and is called off; and who is not taken because its memory cannot be saved, and why.
    failed: tuple[tuple[Member, str], ...] = ()
    unsaved: tuple[tuple[str, str], ...] = ()
    next_look: float | None = None

    @property
    def leaving(self) -> frozenset[str]:
        """uids of all that go, now or soon."""
        return frozenset(member.uid for member in (*self.taken, *self.save, *self.saving))


class ScaleOut(msgspec.Struct, frozen=True):
    numbers: tuple[int, ...] = ()
    # Names that were refused, and are wanted still.
    refused: tuple[str, ...] = ()
    # When the first of them is tried again.
    next_look: float | None = None
    # Numbers of machines that are kept beside the replicas.
    standby: tuple[int, ...] = ()


def scale_in(
    pool: VirtualMachinePool, staying: Sequence[Member], inputs: Inputs, burst: int, now: float, *, online: bool = False
) -> ScaleIn:
    """Of machines that are not being deleted already. `burst`: how many more may be on their way out at once. Those that only wait
    to start keep nobody from being taken: else a pool that has no room could never be made smaller. `online`: memory is kept."""
    surplus = len(staying) - pool.spec.replicas
    if surplus <= 0:
        return ScaleIn()
    takeable = [member for member in staying if may_take(pool.spec.scale_in_strategy, member)]
    order = in_order(takeable, _policy(pool.spec.scale_in_strategy), inputs)
    if not online:
        chosen = order[: min(surplus, burst)]
        return ScaleIn(tuple(chosen), surplus - len(chosen))
    return _scale_in_online(order, inputs, surplus, burst, now)


def _scale_in_online(order: Sequence[Member], inputs: Inputs, surplus: int, burst: int, now: float) -> ScaleIn:
    """Who is refused is passed over, and the next one is chosen in its place."""
    known = {member.uid: progress(member, inputs.nodes.get(member.node), now) for member in order}
    refused = [member for member in order if known[member.uid].stage in ("fails", "stays")]
    chosen = [member for member in order if known[member.uid].stage not in ("fails", "stays")][: min(surplus, burst)]
    left = surplus - len(chosen)
    return ScaleIn(
        taken=_at(chosen, known, "take"),
        left=left,
        save=_at(chosen, known, "save"),
        saving=_at(chosen, known, "saving"),
        failed=tuple((member, known[member.uid].why) for member in refused if known[member.uid].stage == "fails"),
        # Where others go in their place nobody misses anything.
        unsaved=tuple((member.name, known[member.uid].why) for member in refused) if left else (),
        next_look=min((one.retry - now for one in known.values() if one.retry is not None), default=None) if left else None,
    )


def _at(members: Sequence[Member], known: Mapping[str, Progress], stage: str) -> tuple[Member, ...]:
    return tuple(member for member in members if known[member.uid].stage == stage)


def in_order(members: Sequence[Member], policy: SelectionPolicy | None, inputs: Inputs) -> list[Member]:
    """The wish `first` goes before all policies, and who was asked for by name before those that have it for long. Whose memory is
    being saved already, or is saved, to take it, is not let go for another."""
    return sorted(
        ordered(members, policy, inputs), key=lambda one: (not one.remove_requested, not _has_begun(one), one.scale_in != FIRST)
    )


def _has_begun(member: Member) -> bool:
    return member.suspension is not None and member.suspension.by_pool


def may_take(strategy: ScaleInStrategy | None, member: Member) -> bool:
    if member.scale_in == NEVER or (strategy is not None and strategy.unmanaged is not None):
        return False
    return member.halted if strategy is not None and strategy.opportunistic is not None else True


def _policy(strategy: ScaleInStrategy | None) -> SelectionPolicy | None:
    return strategy.proactive.selection_policy if strategy is not None and strategy.proactive is not None else None


def scale_out(snapshot: PoolSnapshot, now: float, burst: int, standbys: Standbys = NO_STANDBYS) -> ScaleOut:
    """A machine that is being deleted holds its place as well as its name, unless its node does not answer. Where many are refused,
    one further is enough to see whether the rest would be, too. What standbys are put to work for is not made."""
    replicas = max(0, needed(snapshot) - len(standbys.activate))
    wanted = missing(snapshot, replicas + standbys.short)
    first = frozenset(wanted[:replicas])
    named = {number: machine_name(snapshot.pool.name, number) for number in wanted}
    refused = {number: refusal for number, name in named.items() if (refusal := snapshot.refusals.get(name)) is not None}
    waiting = [refusal.retry - now for refusal in refused.values() if refusal.retry > now]
    fresh = [number for number in wanted if number not in refused]
    again = [number for number, refusal in refused.items() if refusal.retry <= now]
    allowed = fresh if len(waiting) < ENOUGH_REFUSALS else fresh[:1]
    numbers = sorted([*again, *allowed])[: max(0, burst)]
    return ScaleOut(
        numbers=tuple(number for number in numbers if number in first),
        standby=tuple(number for number in numbers if number not in first),
        refused=tuple(named[number] for number in refused),
        next_look=min(waiting, default=None),
    )


def needed(snapshot: PoolSnapshot) -> int:
    """How many machines there are too few."""
    ours = [member for member in snapshot.members if member.number is not None and not member.standby]
    places = sum(not member.deleting or _will_go(member, snapshot.nodes.get(member.node)) for member in ours)
    return max(0, snapshot.pool.spec.replicas - places)


def missing(snapshot: PoolSnapshot, count: int) -> tuple[int, ...]:
    """Numbers of so many machines that are to be made, as far as they could be acted upon: of a hundred thousand most have to
    wait."""
    most = snapshot.burst + len(snapshot.refusals)
    taken = snapshot.held.union(member.name for member in snapshot.members)
    return tuple(islice(free_numbers(snapshot.pool.name, taken), min(most, count)))


def _will_go(member: Member, node: NodeState | None) -> bool:
    return not member.node or node is None or node.answers

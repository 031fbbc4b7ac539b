"""How many machines are made, and which are taken (seed 003: scale-out fills gaps first, scale-in goes by the strategy)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from herder.api.kinds import VirtualMachinePool
from herder.api.kinds.pool import ScaleInStrategy, SelectionPolicy
from herder.rules.pools.member import FIRST, NEVER, Member
from herder.rules.pools.naming import free_numbers, machine_name
from herder.rules.pools.selection import Inputs, ordered
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.snapshot import PoolSnapshot

# Of so many refusals the rest would most likely get the same.
ENOUGH_REFUSALS = 8


class ScaleIn(msgspec.Struct, frozen=True):
    taken: tuple[Member, ...] = ()
    # Beyond replicas, and not to be taken now: the strategy, a wish (`never`) or the burst does not let us.
    left: int = 0


class ScaleOut(msgspec.Struct, frozen=True):
    numbers: tuple[int, ...] = ()
    # Names that were refused, and are wanted still.
    refused: tuple[str, ...] = ()
    # When the first of them is tried again.
    next_look: float | None = None


def scale_in(pool: VirtualMachinePool, staying: Sequence[Member], inputs: Inputs, burst: int) -> ScaleIn:
    """Of machines that are not being deleted already. `burst`: how many more may be on their way out at once. Those that only wait
    to start keep nobody from being taken: else a pool that has no room could never be made smaller."""
    surplus = len(staying) - pool.spec.replicas
    if surplus <= 0:
        return ScaleIn()
    takeable = [member for member in staying if may_take(pool.spec.scale_in_strategy, member)]
    chosen = in_order(takeable, _policy(pool.spec.scale_in_strategy), inputs)[: min(surplus, burst)]
    return ScaleIn(tuple(chosen), surplus - len(chosen))


def in_order(members: Sequence[Member], policy: SelectionPolicy | None, inputs: Inputs) -> list[Member]:
    """The wish `first` goes before all policies, and who was asked for by name before those that have it for long."""
    return sorted(ordered(members, policy, inputs), key=lambda one: (not one.remove_requested, one.scale_in != FIRST))


def may_take(strategy: ScaleInStrategy | None, member: Member) -> bool:
    if member.scale_in == NEVER or (strategy is not None and strategy.unmanaged is not None):
        return False
    return member.halted if strategy is not None and strategy.opportunistic is not None else True


def _policy(strategy: ScaleInStrategy | None) -> SelectionPolicy | None:
    return strategy.proactive.selection_policy if strategy is not None and strategy.proactive is not None else None


def scale_out(snapshot: PoolSnapshot, now: float, burst: int) -> ScaleOut:
    """A machine that is being deleted holds its place as well as its name, unless its node does not answer. Where many are refused,
    one further is enough to see whether the rest would be, too."""
    wanted = missing(snapshot)
    named = {number: machine_name(snapshot.pool.name, number) for number in wanted}
    refused = {number: refusal for number, name in named.items() if (refusal := snapshot.refusals.get(name)) is not None}
    waiting = [refusal.retry - now for refusal in refused.values() if refusal.retry > now]
    fresh = [number for number in wanted if number not in refused]
    again = [number for number, refusal in refused.items() if refusal.retry <= now]
    allowed = fresh if len(waiting) < ENOUGH_REFUSALS else fresh[:1]
    numbers = sorted([*again, *allowed])[: max(0, burst)]
    return ScaleOut(tuple(numbers), tuple(named[number] for number in refused), min(waiting, default=None))


def missing(snapshot: PoolSnapshot) -> tuple[int, ...]:
    """Numbers of machines that are to be made, as far as they could be acted upon: of a hundred thousand most have to wait."""
    pool = snapshot.pool
    ours = [member for member in snapshot.members if member.number is not None]
    places = sum(not member.deleting or _will_go(member, snapshot.nodes.get(member.node)) for member in ours)
    most = snapshot.burst + len(snapshot.refusals)
    taken = snapshot.held.union(member.name for member in snapshot.members)
    return tuple(islice(free_numbers(pool.name, taken), min(most, max(0, pool.spec.replicas - places))))


def _will_go(member: Member, node: NodeState | None) -> bool:
    return not member.node or node is None or node.answers

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
    """Of machines that are not being deleted already. `burst`: how many more may be on their way at once."""
    surplus = len(staying) - pool.spec.replicas
    if surplus <= 0:
        return ScaleIn()
    takeable = [member for member in staying if _may_take(pool.spec.scale_in_strategy, member)]
    chosen: list[Member] = []
    for member in in_order(takeable, _policy(pool.spec.scale_in_strategy), inputs)[:surplus]:
        # What is on its way already counts already.
        burst -= 0 if member.in_flight else 1
        if burst < 0:
            break
        chosen.append(member)
    return ScaleIn(tuple(chosen), surplus - len(chosen))


def in_order(members: Sequence[Member], policy: SelectionPolicy | None, inputs: Inputs) -> list[Member]:
    """The wish `first` goes before all policies."""
    chosen = ordered(members, policy, inputs)
    return [one for one in chosen if one.scale_in == FIRST] + [one for one in chosen if one.scale_in != FIRST]


def _may_take(strategy: ScaleInStrategy | None, member: Member) -> bool:
    if member.scale_in == NEVER or (strategy is not None and strategy.unmanaged is not None):
        return False
    return member.halted if strategy is not None and strategy.opportunistic is not None else True


def _policy(strategy: ScaleInStrategy | None) -> SelectionPolicy | None:
    return strategy.proactive.selection_policy if strategy is not None and strategy.proactive is not None else None


def scale_out(snapshot: PoolSnapshot, now: float, burst: int) -> ScaleOut:
    """A machine that is being deleted holds its place as well as its name, unless its node does not answer."""
    pool = snapshot.pool
    ours = [member for member in snapshot.members if member.number is not None]
    places = sum(not member.deleting or _will_go(member, snapshot.nodes.get(member.node)) for member in ours)
    wanted = pool.spec.replicas - places
    if wanted <= 0:
        return ScaleOut()
    taken = snapshot.held.union(member.name for member in snapshot.members)
    numbers: list[int] = []
    refused: list[str] = []
    soonest: float | None = None
    for number in islice(free_numbers(pool.name, taken), wanted):
        name = machine_name(pool.name, number)
        refusal = snapshot.refusals.get(name)
        if refusal is not None:
            refused.append(name)
        if refusal is not None and refusal.retry > now:
            soonest = refusal.retry - now if soonest is None else min(soonest, refusal.retry - now)
        elif len(numbers) < burst:
            numbers.append(number)
    return ScaleOut(tuple(numbers), tuple(refused), soonest)


def _will_go(member: Member, node: NodeState | None) -> bool:
    return not member.node or node is None or node.answers

"""Which machines go first (seed 003, "VM Selection during Scale-In and Updates").

Ordered policies are priorities and no filters: machines that match the first entry go first, then those of the second, …, then
all others. Inside each group the base policy orders. A further policy is a module here and one line in the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from herder.api import defaults
from herder.api.kinds.pool import BasePolicy, OrderedPolicy, SelectionPolicy
from herder.rules.pools.member import Member
from herder.rules.pools.selection import label_selector, newest, node_selector, oldest, random
from herder.rules.pools.selection.inputs import Inputs, Matches, Order

_ORDERED: Mapping[str, Callable[[OrderedPolicy, Inputs], Matches]] = {
    "label_selector": label_selector.matches,
    "node_selector": node_selector.matches,
}
_BASE: Mapping[BasePolicy, Order] = {
    "Oldest": oldest.order,
    "Newest": newest.order,
    "Random": random.order,
}

__all__ = ["Inputs", "ordered"]


def ordered(members: Iterable[Member], policy: SelectionPolicy | None, inputs: Inputs) -> list[Member]:
    """The one that goes first comes first; among equals the lower number."""
    tests = [_test(entry, inputs) for entry in (policy.ordered_policies if policy else None) or ()]
    base = _BASE[(policy.base_policy if policy else None) or defaults.BASE_POLICY]

    def rank(member: Member) -> int:
        return next((place for place, matches in enumerate(tests) if matches(member)), len(tests))

    return sorted(members, key=lambda member: (rank(member), base(member, inputs), member.number or 0))


def _test(entry: OrderedPolicy, inputs: Inputs) -> Matches:
    found = next((make for field, make in _ORDERED.items() if getattr(entry, field) is not None), None)
    return found(entry, inputs) if found is not None else lambda _: False

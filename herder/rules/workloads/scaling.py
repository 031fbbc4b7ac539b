"""A Deployment that is given another size in the middle of a rollout, or while it is paused: every set gets its share, so that the
rollout is as far as it was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from herder.rules.workloads.rolling import Limits, Share, Sizes


def scaled_sizes(
    limits: Limits, new: Share | None, old: Sequence[Share], *, before: Mapping[str, int], saturated: bool, rolling: bool
) -> Sizes:
    """The sizes of those that have to be looked at, changed or not. `before`: how many pods there might be at most when each set
    was last given its size."""
    everyone = [*([new] if new is not None else []), *old]
    active = [one for one in everyone if one.size > 0]
    if len(active) <= 1:
        alone = active[0] if active else new or max(old, key=_age, default=None)
        return {} if alone is None else {alone.name: limits.wanted}
    if saturated:
        return {one.name: 0 for one in active if one is not new}
    return _proportional(limits, active, before) if rolling else {}


def _age(one: Share) -> tuple[float, str]:
    return (one.created, one.name)


def _proportional(limits: Limits, active: Sequence[Share], before: Mapping[str, int]) -> Sizes:
    allowed = limits.most if limits.wanted > 0 else 0
    change = allowed - sum(one.size for one in active)
    # The largest first; of equal ones the newer grow first, and the older shrink first.
    by_age = sorted(active, key=_age, reverse=change > 0)
    ordered = sorted(by_age, key=lambda one: -one.size)
    sizes: Sizes = {}
    left = change
    for one in ordered:
        share = _share(one, limits, before.get(one.name, 0), left) if change else 0
        sizes[one.name] = one.size + share
        left -= share
    # What rounding left over goes to the largest, as far as it can.
    for one in ordered:
        size = max(0, sizes[one.name] + left)
        left -= size - sizes[one.name]
        sizes[one.name] = size
    return sizes


def _share(one: Share, limits: Limits, before: int, left: int) -> int:
    if limits.wanted == 0:
        fraction = -one.size
    elif before == 0:
        fraction = 0
    else:
        # Half away from zero, as Kubernetes rounds.
        fraction = math.floor(one.size * limits.most / before + 0.5) - one.size
    return min(fraction, left) if left > 0 else max(fraction, left)

"""How many replicas of a workload may migrate, or be unavailable, at once (seed 004, GetMaxMigrating and GetMaxUnavailable)."""

from __future__ import annotations

from herder.api.int_or_percent import IntOrPercent, scaled_value

# Of more replicas than this, a share may be away; of fewer, a number.
FEW = 10
SEVERAL = 4


def max_unavailable(replicas: int, limit: IntOrPercent | None) -> int:
    """A percentage is of the replicas, rounded up; 0 allows none. ValueError for text that is no percentage: whoever reads the
    configuration has refused it before."""
    return scaled_value(default_limit(replicas) if limit is None else limit, replicas, round_up=True)


def max_migrating(replicas: int, limit: IntOrPercent | None) -> int:
    return max_unavailable(replicas, limit)


def default_limit(replicas: int) -> IntOrPercent:
    """Where nobody has set one."""
    if replicas > FEW:
        return "10%"
    return 2 if replicas >= SEVERAL else 1

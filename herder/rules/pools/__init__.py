"""What should become of a VirtualMachinePool (seed 003): `plan_pool` is the way in."""

from herder.rules.pools.plan import PoolPlan, plan_pool
from herder.rules.pools.snapshot import PoolSnapshot

__all__ = ["PoolPlan", "PoolSnapshot", "plan_pool"]

"""VirtualMachinePools: keeps as many machines as wanted, and rolls, heals and preserves them."""

from herder.controllers.pool.pools import Pools

__all__ = ["Pools"]

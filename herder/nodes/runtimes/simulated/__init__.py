"""A model of guests, honest about time: they boot, dirty memory, are copied over a shared network, and fail where told to."""

from herder.nodes.runtimes.simulated.network import Network
from herder.nodes.runtimes.simulated.runtime import SimulatedRuntime

__all__ = ["Network", "SimulatedRuntime"]

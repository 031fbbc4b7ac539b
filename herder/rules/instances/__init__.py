"""What should become of a VirtualMachineInstance: `plan_instance` is the way in."""

from herder.rules.instances.needs import Needs, needs_of
from herder.rules.instances.plan import InstancePlan, InstanceSnapshot, plan_instance

__all__ = ["InstancePlan", "InstanceSnapshot", "Needs", "needs_of", "plan_instance"]

"""What should become of a VirtualMachine: `plan_machine` is the way in."""

from herder.rules.machines.plan import MachinePlan, MachineSnapshot, plan_machine
from herder.rules.machines.preserved import TakeBack

__all__ = ["MachinePlan", "MachineSnapshot", "TakeBack", "plan_machine"]

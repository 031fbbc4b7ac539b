"""What should become of a VirtualMachine: `plan_machine` is the way in."""

from herder.rules.machines.plan import MachinePlan, MachineSnapshot, plan_machine

__all__ = ["MachinePlan", "MachineSnapshot", "plan_machine"]

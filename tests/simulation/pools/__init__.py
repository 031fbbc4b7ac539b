"""VirtualMachinePools with all controllers, the scheduler and nodes, in a simulated world."""

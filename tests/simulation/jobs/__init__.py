"""Jobs with their controllers, the scheduler, workloads and some nodes, in a simulated world."""

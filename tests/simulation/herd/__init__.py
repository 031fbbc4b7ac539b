"""Virtual machines, their controllers, the scheduler and nodes, in a simulated world."""

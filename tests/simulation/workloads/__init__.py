"""ReplicaSets and Deployments with their controllers, the scheduler and a node, in a simulated world."""

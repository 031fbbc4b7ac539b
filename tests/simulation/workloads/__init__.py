"""ReplicaSets, Deployments and StatefulSets with their controllers, the scheduler and a node, in a simulated world."""

"""What the embedded engine needs beside an API server, and a real cluster has already: two of them would fight."""

from herder.controllers.workloads.deployments import Deployments
from herder.controllers.workloads.replica_sets import ReplicaSets
from herder.controllers.workloads.stateful_sets import StatefulSets

__all__ = ["Deployments", "ReplicaSets", "StatefulSets"]

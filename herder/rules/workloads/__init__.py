"""What keeps interchangeable pods: ReplicaSets, and Deployments that roll from one of them to the next.

The same decisions as Kubernetes' own controllers make, for the embedded engine, where nobody else makes them."""

from herder.rules.workloads.claiming import Claim, claim
from herder.rules.workloads.deployment import DeploymentPlan, DeploymentSnapshot, plan_deployment
from herder.rules.workloads.replica_set import ReplicaSetPlan, ReplicaSetSnapshot, plan_replica_set, replica_set_status

__all__ = [
    "Claim",
    "DeploymentPlan",
    "DeploymentSnapshot",
    "ReplicaSetPlan",
    "ReplicaSetSnapshot",
    "claim",
    "plan_deployment",
    "plan_replica_set",
    "replica_set_status",
]

"""What keeps pods: ReplicaSets, Deployments that roll from one of them to the next, and StatefulSets, whose pods keep their names.

The same decisions as Kubernetes' own controllers make, for the embedded engine, where nobody else makes them."""

from herder.rules.workloads.claiming import Claim, claim
from herder.rules.workloads.deployment import DeploymentPlan, DeploymentSnapshot, plan_deployment
from herder.rules.workloads.replica_set import ReplicaSetPlan, ReplicaSetSnapshot, plan_replica_set, replica_set_status
from herder.rules.workloads.stateful_set import StatefulSetPlan, StatefulSetSnapshot, plan_stateful_set, stateful_set_status

__all__ = [
    "Claim",
    "DeploymentPlan",
    "DeploymentSnapshot",
    "ReplicaSetPlan",
    "ReplicaSetSnapshot",
    "StatefulSetPlan",
    "StatefulSetSnapshot",
    "claim",
    "plan_deployment",
    "plan_replica_set",
    "plan_stateful_set",
    "replica_set_status",
    "stateful_set_status",
]

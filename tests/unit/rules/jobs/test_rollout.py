"""Whether a workload is in the middle of a rollout."""

from typing import Any

import pytest

from herder.rules.jobs.rollout import daemon_set_rolls_out, deployment_rolls_out, pool_rolls_out, stateful_set_rolls_out
from tests.unit.rules.jobs.objects import pod, reference, thing

Json = dict[str, Any]
WEB = reference("Deployment", "web")
COMPLETE: Json = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def progressing(reason: str) -> Json:
    return {"conditions": [{"type": "Progressing", "status": "True", "reason": reason}]}


def replica_set(name: str, wanted: int, there: int) -> Any:
    return thing("ReplicaSet", name, WEB, spec={"replicas": wanted}, status={"replicas": there})


@pytest.mark.parametrize(
    ("status", "spec", "sets", "rolls"),
    [
        (COMPLETE, {}, [(0, 0), (3, 3)], False),
        (COMPLETE | progressing("NewReplicaSetAvailable"), {}, [(3, 3)], False),
        # Nobody has looked at the spec yet.
        (COMPLETE | {"observedGeneration": 1}, {}, [(3, 3)], True),
        # Pods of before are there, as the status or as a set says; also where it is paused in the middle.
        (COMPLETE | {"updatedReplicas": 1}, {}, [(2, 2), (1, 1)], True),
        (COMPLETE | {"updatedReplicas": 1}, {"paused": True}, [(2, 2), (1, 1)], True),
        (COMPLETE, {}, [(1, 0), (2, 3)], True),
        (COMPLETE, {}, [(0, 1), (3, 3)], True),
        # Paused, and the template was changed: it stands before the rollout.
        (COMPLETE | {"updatedReplicas": 0}, {"paused": True}, [(3, 3)], True),
        (COMPLETE, {"paused": True}, [(3, 3)], False),
        # All are new, and have not been available yet: of strategy Recreate, or the last one.
        (COMPLETE | {"availableReplicas": 2} | progressing("ReplicaSetUpdated"), {}, [(3, 3)], True),
        (COMPLETE | {"availableReplicas": 2} | progressing("ProgressDeadlineExceeded"), {}, [(3, 3)], True),
        # One was evicted, and one is to come: that is no rollout.
        (
            {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2} | progressing("NewReplicaSetAvailable"),
            {},
            [(3, 2)],
            False,
        ),
        (COMPLETE | progressing("NewReplicaSetAvailable"), {"replicas": 9}, [(9, 3)], False),
        (COMPLETE | progressing("DeploymentResumed"), {}, [(3, 3)], False),
    ],
)
def test_a_deployment_rolls_out_while_pods_of_two_templates_are_there(
    status: Json, spec: Json, sets: list[tuple[int, int]], rolls: bool
) -> None:
    made = [replica_set(f"web-{number}", *counts) for number, counts in enumerate(sets)]
    assert deployment_rolls_out(thing("Deployment", "web", spec=spec, status=status), made) is rolls


def revisions(current: str = "db-1", update: str = "db-2") -> Json:
    return {"currentRevision": current, "updateRevision": update}


def partition(number: int) -> Json:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


@pytest.mark.parametrize(
    ("status", "spec", "pods", "rolls"),
    [
        (revisions("db-1", "db-1"), {}, {"db-0": "db-1"}, False),
        (revisions("db-1", "db-1") | {"observedGeneration": 1}, {}, {"db-0": "db-1"}, True),
        (revisions(), {}, {"db-0": "db-1", "db-1": "db-2"}, True),
        # All are new, and the last has not become ready.
        (revisions(), {}, {"db-0": "db-2", "db-1": "db-2"}, True),
        # From the partition on they are to change: they have, or have not.
        (revisions(), partition(1), {"db-0": "db-1", "db-1": "db-2", "db-2": "db-2"}, False),
        (revisions(), partition(1), {"db-0": "db-1", "db-1": "db-1", "db-2": "db-2"}, True),
        (revisions(), partition(5), {"db-0": "db-1", "db-1": "db-1"}, False),
        # One of those was evicted, one below the partition is missing: neither is a rollout.
        (revisions(), partition(1), {"db-0": "db-1", "db-2": "db-2"}, False),
        (revisions(), partition(1), {"db-1": "db-1", "db-2": "db-2"}, True),
        (revisions(), partition(1) | {"ordinals": {"start": 5}}, {"db-5": "db-1", "db-6": "db-2"}, False),
        (revisions(), partition(1) | {"ordinals": {"start": 5}}, {"db-5": "db-1", "db-6": "db-1"}, True),
        # Nobody rolls.
        (revisions(), {"updateStrategy": {"type": "OnDelete"}}, {"db-0": "db-1"}, False),
    ],
)
def test_a_stateful_set_rolls_out_down_to_its_partition(status: Json, spec: Json, pods: dict[str, str], rolls: bool) -> None:
    made = [pod(name, labels={"controller-revision-hash": revision}) for name, revision in pods.items()]
    assert stateful_set_rolls_out(thing("StatefulSet", "db", spec=spec, status=status), made) is rolls


@pytest.mark.parametrize(
    ("status", "kind", "rolls"),
    [
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 3}, "RollingUpdate", False),
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 2}, "RollingUpdate", True),
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 2}, "OnDelete", False),
        ({"observedGeneration": 1}, "RollingUpdate", True),
    ],
)
def test_a_daemon_set_rolls_out_until_all_are_updated(status: Json, kind: str, rolls: bool) -> None:
    assert daemon_set_rolls_out(thing("DaemonSet", "agents", spec={"updateStrategy": {"type": kind}}, status=status)) is rolls


@pytest.mark.parametrize(
    ("status", "rolls"),
    [
        (progressing("RolloutComplete"), False),
        (progressing("RollingOut"), True),
        (progressing("RolloutPaused"), True),
        (progressing("ProgressDeadlineExceeded"), True),
        # So many have it as were to get it; others wait for somebody to restart them.
        (progressing("RolloutLimited"), False),
        (progressing("WaitingForRestarts"), False),
        (progressing("RolledBack") | {"updatedReplicas": 1}, True),
        (progressing("RolledBack") | {"updatedReplicas": 0}, False),
        (progressing("RolloutComplete") | {"observedGeneration": 1}, True),
        ({}, False),
    ],
)
def test_a_pool_rolls_out_as_it_says_itself(status: Json, rolls: bool) -> None:
    assert pool_rolls_out(thing("VirtualMachinePool", "vms", status=status)) is rolls

"""What a pod is a replica of."""

from typing import Any

import pytest

from herder.rules.jobs.workload import Controller, NoScale, Scale, Workload, describe, top_of
from tests.unit.rules.jobs.objects import Known, controller, pod, reference, thing

DEPLOYMENT = reference("Deployment", "web")
SETS = [thing("ReplicaSet", "web-1", DEPLOYMENT, spec={"replicas": 0}), thing("ReplicaSet", "web-2", DEPLOYMENT)]
POOL = reference("VirtualMachinePool", "vms")
MACHINE = reference("VirtualMachine", "vms-0")


def find(direct: Controller, objects: Known, pods: int = 1) -> Workload:
    top = top_of(direct, "shop", objects)
    return describe(direct, top, "shop", [pod(f"p-{number}") for number in range(pods)], objects)


def shown(workload: Workload) -> tuple[str, str, int | None, bool]:
    return workload.kind, workload.name, workload.replicas, workload.scalable


@pytest.mark.parametrize(
    ("direct", "things", "expected"),
    [
        (controller("ReplicaSet", "web-1"), [*SETS, thing("Deployment", "web")], ("Deployment", "web", 3, True)),
        (controller("ReplicaSet", "web-2"), [*SETS, thing("Deployment", "web")], ("Deployment", "web", 3, True)),
        (controller("ReplicaSet", "alone"), [thing("ReplicaSet", "alone")], ("ReplicaSet", "alone", 3, True)),
        (controller("StatefulSet", "db"), [thing("StatefulSet", "db")], ("StatefulSet", "db", 3, True)),
        # Whoever keeps the StatefulSet keeps more than one: the replicas are its own.
        (
            controller("StatefulSet", "db"),
            [thing("StatefulSet", "db", reference("Postgres", "pg"))],
            ("StatefulSet", "db", 3, True),
        ),
        (
            controller("DaemonSet", "agents"),
            [thing("DaemonSet", "agents", status={"desiredNumberScheduled": 5})],
            ("DaemonSet", "agents", 5, False),
        ),
        (
            controller("VirtualMachineInstance", "vms-0"),
            [
                thing("VirtualMachineInstance", "vms-0", MACHINE, uid="uid-instance"),
                thing("VirtualMachine", "vms-0", POOL),
                thing("VirtualMachinePool", "vms"),
            ],
            ("VirtualMachinePool", "vms", 3, True),
        ),
        (
            controller("VirtualMachineInstance", "vms-0"),
            [thing("VirtualMachineInstance", "vms-0", MACHINE, uid="uid-instance"), thing("VirtualMachine", "vms-0")],
            ("VirtualMachine", "vms-0", 1, False),
        ),
        (
            controller("VirtualMachineInstance", "vms-0"),
            [thing("VirtualMachineInstance", "vms-0", uid="uid-instance")],
            ("VirtualMachineInstance", "vms-0", 1, False),
        ),
    ],
)
def test_a_pod_belongs_to_the_highest_that_scales_it(direct: Controller, things: list[Any], expected: Any) -> None:
    if direct.kind == "VirtualMachineInstance":
        direct = controller("VirtualMachineInstance", "vms-0", "uid-instance")
    workload = find(direct, Known(*things))
    assert shown(workload) == expected
    assert workload.controller == direct
    assert (workload.missing, workload.problem) == (False, "")


def test_a_deployments_old_and_new_pods_are_of_one_group() -> None:
    objects = Known(*SETS, thing("Deployment", "web"))
    old, new = find(controller("ReplicaSet", "web-1"), objects), find(controller("ReplicaSet", "web-2"), objects)
    assert old.id == new.id == ("shop", "uid-web")
    assert old.controller != new.controller


@pytest.mark.parametrize(
    ("direct", "things"),
    [
        (controller("StatefulSet", "db", "uid-of-before"), [thing("StatefulSet", "db")]),
        (controller("ReplicaSet", "web-2"), [*SETS, thing("Deployment", "web", uid="uid-of-after")]),
        (controller("ReplicaSet", "web-2"), SETS),
        (controller("StatefulSet", "db"), []),
    ],
)
def test_an_owner_that_was_made_again_under_its_name_is_not_the_owner(direct: Controller, things: list[Any]) -> None:
    workload = find(direct, Known(*things))
    assert (workload.missing, workload.replicas) == (True, None)
    assert "is another one by now (uid" in workload.problem or "is not there" in workload.problem


@pytest.mark.parametrize(
    ("answer", "replicas", "scalable", "missing"),
    [
        (Scale("uid-clones", 7), 7, True, False),
        (Scale("uid-clones", 0), 0, True, False),
        (Scale("uid-of-after", 7), None, True, True),
        (NoScale("NoScale"), 2, False, False),
        (NoScale("Missing", "it is not there"), None, True, True),
        (NoScale("Unknown", "may not be read"), None, True, False),
    ],
)
def test_a_kind_of_somebody_elses_is_asked_for_its_scale(answer: Any, replicas: int | None, scalable: bool, missing: bool) -> None:
    workload = find(controller("CloneSet", "clones"), Known(scales={"clones": answer}), pods=2)
    assert (workload.replicas, workload.scalable, workload.missing) == (replicas, scalable, missing)
    assert bool(workload.problem) is (replicas is None)


def test_replica_sets_and_instances_lead_to_whoever_else_keeps_them() -> None:
    rollout = reference("Rollout", "canary", api_version="argoproj.io/v1alpha1")
    objects = Known(thing("ReplicaSet", "canary-1", rollout), scales={"canary": Scale("uid-canary", 4)})
    assert shown(find(controller("ReplicaSet", "canary-1"), objects)) == ("Rollout", "canary", 4, True)
    keeper = reference("VirtualMachineInstanceReplicaSet", "farm", api_version="kubevirt.io/v1")
    objects = Known(thing("VirtualMachineInstance", "farm-x", keeper), scales={"farm": Scale("uid-farm", 4)})
    assert find(controller("VirtualMachineInstance", "farm-x"), objects).kind == "VirtualMachineInstanceReplicaSet"


def test_a_kind_that_only_has_the_name_of_a_known_one_is_somebody_elses() -> None:
    impostor = controller("Deployment", "web", api_version="evil.io/v1")
    objects = Known(thing("Deployment", "web"), scales={"web": Scale("uid-web", 9)})
    assert find(impostor, objects).replicas == 9
    assert find(controller("Deployment", "web", api_version="apps/v1beta1"), objects).replicas == 3


def test_a_circle_of_owners_is_left() -> None:
    """As somebody may write it: the set is owned by itself, the Deployment by the set."""
    itself = thing("ReplicaSet", "web-2", reference("ReplicaSet", "web-2"))
    assert find(controller("ReplicaSet", "web-2"), Known(itself)).kind == "ReplicaSet"
    back = thing("Deployment", "web", reference("ReplicaSet", "web-2"))
    assert find(controller("ReplicaSet", "web-2"), Known(*SETS, back)).kind == "Deployment"


@pytest.mark.parametrize("kind", [("Job", "batch/v1"), ("Node", "v1")])
def test_pods_of_jobs_and_of_nodes_themselves_ask_nobody(kind: tuple[str, str]) -> None:
    objects = Known()
    workload = find(controller(kind[0], "x", api_version=kind[1]), objects, pods=2)
    assert (workload.replicas, workload.scalable, objects.asked) == (2, False, [])


def test_a_workload_that_is_being_deleted_says_so() -> None:
    going = thing("StatefulSet", "db", deletionTimestamp="2025-06-15T15:06:40Z")
    assert find(controller("StatefulSet", "db"), Known(going)).being_deleted

"""Each way in which a job moves its pod: the replacement first, into given room, by a deletion, before it has one, guests alive."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.kube.client import Client
from herder.kube.resources import BUDGETS, CONFIG_MAPS, DEPLOYMENTS, INSTANCES, JOBS, PODS, RESERVATIONS, Key
from tests.simulation.herd.scenario import NAMESPACE, herd, runs
from tests.simulation.herd.scenario import make as make_machine
from tests.simulation.jobs.ledger import Allowed
from tests.simulation.jobs.scenario import Json, ended, file, pods_of_web, scenario, watched
from tests.simulation.matrix import Step
from tests.simulation.workloads.scenario import KEY, make, patch

APP = {"matchLabels": {"app": "web"}}
# Its room is there before it may have a node: otherwise whichever is placed first would decide.
GATED: Json = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}], "schedulingGates": [{"name": "example.com/wait"}]},
}


def budget(**spec: Any) -> Step:
    async def step(client: Client) -> None:
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        await client.create(BUDGETS, {"metadata": metadata, "spec": {"selector": APP, **spec}})

    return step


def settings(text: str) -> Step:
    async def step(client: Client) -> None:
        metadata = {"name": "herder-config", "namespace": "herder-system"}
        await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"jobs.yaml": text}})

    return step


async def ungate(client: Client) -> None:
    """From now on the pod may have a node."""
    for pod in await pods_of_web(client):
        await client.patch(PODS, Key(pod.namespace, pod.name), {"spec": {"schedulingGates": None}})


async def reserve_elsewhere(client: Client) -> None:
    """Room for the workload's pods on a node that none of them is on."""
    (pod,) = await pods_of_web(client)
    away = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [pod.spec.node_name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [away]}}}
    template: Json = {"metadata": {"namespace": KEY.namespace}, "spec": {"containers": [{"name": "main"}], "affinity": affinity}}
    spec = {"template": template, "owners": [{"labelSelector": APP}], "ttl": "0s"}
    await client.create(RESERVATIONS, {"metadata": {"name": "room"}, "spec": spec})


def _file_both(*names: str) -> Step:
    """At once."""

    async def step(client: Client) -> None:
        for number, name in enumerate(names):
            await file(name, number)(client)

    return step


async def _file_for_guest(client: Client) -> None:
    instance = await client.get(INSTANCES, Key(NAMESPACE, "vm"))
    assert instance.status is not None
    reference = {"namespace": NAMESPACE, "name": instance.status.launcher_pod_name}
    await client.create(JOBS, {"metadata": {"name": "a"}, "spec": {"podRef": reference}})


def _guest_was_moved(left: dict[str, bytes]) -> str:
    status: Json = msgspec.json.decode(left.get("podmigrationjobs.scheduling.koordinator.sh a", b"{}")).get("status", {})
    moved = (status.get("phase"), status.get("strategy")) == ("Succeed", "LiveMigration")
    return runs(left) or ("" if moved else f"the job should have moved the guest, but is {status}")


# At no moment is nobody ready.
SURGED = scenario(
    "the replacement first",
    make(DEPLOYMENTS, 1),
    budget(minAvailable=1),
    file("a", annotations={labels.SURGE: "true"}),
    expect=ended(1, a="Succeed"),
    allowed=Allowed(per_node=2, per_workload=1, unavailable=0, replicas={"web": 1}),
    prepared=2,
)
GIVEN = scenario(
    "into given room",
    make(DEPLOYMENTS, 1),
    reserve_elsewhere,
    file("a", reservationOptions={"reservationRef": {"name": "room"}}),
    expect=ended(1, a="Succeed"),
    prepared=2,
)
# Limits let both go at once, and so would a deletion: the budget alone does not.
DELETED = scenario(
    "deleted within a budget",
    settings(
        "evictionPolicy: Delete\ndefaultJobMode: EvictDirectly\nmaxMigratingPerWorkload: 2\nevictQPS: '100'\nevictBurst: 10\n"
    ),
    make(DEPLOYMENTS, 2),
    budget(maxUnavailable=1),
    _file_both("a", "b"),
    expect=ended(2, a="Succeed", b="Succeed"),
    nodes=1,
    allowed=Allowed(per_node=2, per_workload=2, unavailable=1, replicas={"web": 2}),
    prepared=3,
)
PLACED = scenario(
    "before it has a node",
    make(DEPLOYMENTS, 0, template=GATED),
    patch(DEPLOYMENTS, {"replicas": 1}),
    file("a"),
    ungate,
    expect=ended(1, a="Succeed"),
    nodes=1,
    prepared=2,
)
MOVED_ALIVE = msgspec.structs.replace(
    herd("a guest is moved alive by a job", make_machine(), _file_for_guest, expect=_guest_was_moved),
    # The pod that it leaves ends by itself.
    watch=watched(Allowed(globally=1, others_go=True)),
    prepared=2,
)

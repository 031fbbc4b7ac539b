"""Jobs of pods with volumes: room is where their replacement reaches them, and what only the old pod has does not count."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from herder.api.storage import SELECTED_NODE
from herder.kube.client import Selection
from herder.kube.resources import CLAIMS, NODES, PODS, REPLICA_SETS, STORAGE_CLASSES, VOLUMES, Key
from tests.simulation.jobs.cluster import Cluster, in_cluster

Json = dict[str, Any]
SIZE = {"storage": "1Gi"}


def _claim(name: str, **more: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}, "storageClassName": ""}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**asked, **more}}


async def _volume(cluster: Cluster, claim: str, *nodes: str, **spec: Any) -> None:
    """For this claim: on these nodes alone, or anywhere."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}
    where: Json = {"nfs": {"server": "disks.example.com", "path": "/"}}
    if nodes:
        where = {"local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    about = {"claimRef": {"namespace": "default", "name": claim}, "capacity": SIZE, "accessModes": ["ReadWriteOnce"]}
    await cluster.client.create(VOLUMES, {"metadata": {"name": claim}, "spec": {**about, "storageClassName": "", **where, **spec}})


def _uses(claim: str) -> list[Json]:
    return [{"name": "disk", "persistentVolumeClaim": {"claimName": claim}}]


async def _cordon(cluster: Cluster, cordoned: bool, *names: str) -> None:
    for name in names:
        await cluster.client.patch(NODES, Key("", name), {"spec": {"unschedulable": cordoned or None}})
    await asyncio.sleep(2)


def test_a_claim_that_one_pod_may_use_is_free_once_that_pod_is_gone() -> None:
    """ReadWriteOncePod: while the old pod has it nobody else fits anywhere, and the job's room is found all the same."""

    async def story(cluster: Cluster) -> None:
        await cluster.client.create(CLAIMS, _claim("disk", accessModes=["ReadWriteOncePod"]))
        await _volume(cluster, "disk", accessModes=["ReadWriteOncePod"])
        (pod,) = await cluster.deploy("web", 1, volumes=_uses("disk"))
        before = await cluster.pod("web")
        assert before.status.phase == "Running"
        await cluster.file("a", pod)
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"a": ("Succeed", "")}
        after = await cluster.pod("web")
        assert (after.status.phase, after.spec.node_name != before.spec.node_name) == ("Running", True)

    in_cluster(story)


@pytest.mark.parametrize("reach", [("node-1",), ("node-1", "node-3")], ids=" ".join)
def test_a_pod_goes_only_where_its_local_volume_is(reach: tuple[str, ...]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.client.create(CLAIMS, _claim("disk"))
        await _volume(cluster, "disk", *reach)
        await _cordon(cluster, True, "node-2", "node-3")
        (pod,) = await cluster.deploy("web", 1, volumes=_uses("disk"))
        await _cordon(cluster, False, "node-2", "node-3")
        before = await cluster.pod("web")
        assert before.spec.node_name == "node-1"
        await cluster.file("a", pod)
        await asyncio.sleep(60)
        after = await cluster.pod("web")
        if len(reach) > 1:
            assert (await cluster.statuses(), after.spec.node_name) == ({"a": ("Succeed", "")}, "node-3")
            return
        assert (await cluster.statuses(), after.uid) == ({"a": ("Running", "Unschedulable")}, before.uid)
        status = (await cluster.job("a")).status
        assert status is not None and "PersistentVolume's node affinity" in (status.message or "")

    in_cluster(story)


def test_a_volume_that_is_made_for_its_pod_s_node_is_made_where_the_job_has_room() -> None:
    """Late binding: a pod without a node has no volume yet. Its class makes one when the pod has its place."""

    async def story(cluster: Cluster) -> None:
        everywhere = ("node-1", "node-2", "node-3")
        late = {"metadata": {"name": "late"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await cluster.client.create(STORAGE_CLASSES, late)
        await cluster.client.create(CLAIMS, _claim("disk", storageClassName="late"))
        await _cordon(cluster, True, *everywhere)
        # Of a ReplicaSet: a Deployment whose first pod does not run is in the middle of a rollout.
        (pod,) = await cluster.deploy("web", 1, of=REPLICA_SETS, volumes=_uses("disk"))
        await cluster.file("a", pod)
        await asyncio.sleep(10)
        assert await cluster.statuses() == {"a": ("Running", "Unschedulable")}
        await _cordon(cluster, False, "node-2")
        await asyncio.sleep(10)
        made = await cluster.client.get(CLAIMS, Key("default", "disk"))
        assert made.annotations[SELECTED_NODE] == "node-2"
        await _volume(cluster, "disk", "node-2", storageClassName="late")
        await _cordon(cluster, False, *everywhere)
        await asyncio.sleep(60)
        status = (await cluster.job("a")).status
        assert status is not None and (status.phase, status.strategy, status.node_name) == ("Succeed", "Placement", "node-2")
        assert (await cluster.pod("web")).spec.node_name == "node-2"

    in_cluster(story)


def test_what_a_pod_has_for_its_life_alone_does_not_keep_its_replacement_from_leaving() -> None:
    """Ephemeral volumes: each pod has a claim of its own, and that of the old one is on its node. The test makes these claims, as
    Kubernetes' controller would."""

    async def story(cluster: Cluster) -> None:
        template = {"spec": _claim("")["spec"]}
        scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        keeper = asyncio.create_task(_claims_of_pods(cluster))
        (pod,) = await cluster.deploy("web", 1, volumes=scratch)
        before = await cluster.pod("web")
        await cluster.file("a", pod)
        await asyncio.sleep(60)
        keeper.cancel()
        after = await cluster.pod("web")
        assert await cluster.statuses() == {"a": ("Succeed", "")}
        assert (after.status.phase, after.spec.node_name != before.spec.node_name) == ("Running", True)

    in_cluster(story, nodes=2)


async def _claims_of_pods(cluster: Cluster) -> None:
    """The first pod's volume is on node-1 alone, that of each other one on node-2."""
    known: list[str] = []
    while True:
        for pod in (await cluster.client.list(PODS, Selection("default", "app=web"))).items:
            if pod.name not in known:
                known.append(pod.name)
                name = f"{pod.name}-scratch"
                owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
                claim = _claim(name)
                claim["metadata"]["ownerReferences"] = [owner]
                await cluster.client.create(CLAIMS, claim)
                await _volume(cluster, name, "node-1" if len(known) == 1 else "node-2")
        await asyncio.sleep(0.5)

"""What a node fills, copies and clears, asked of a node's agent where no controllers of ours are: every object is the test's."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels, node_role, registry
from herder.api.storage import ALLOW_CLONE, CONTENT_FINALIZER, PROVISIONED_BY
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api, Json
from tests.engines.credentials import grant, user
from tests.engines.engine import Engine
from tests.engines.resources import CLAIMS, NAMESPACES, PODS, VOLUMES
from tests.engines.waiting import eventually
from tests.machines.agent import run_agent

DATA_VOLUMES = resource_of(registry.DATA_VOLUME)
MIB = 1024 * 1024
TREASURE = os.urandom(MIB)
SYSTEM = "herder-system"
PATIENCE = 60.0


@dataclass(frozen=True)
class Disk:
    """A DataVolume with its claim, bound to a volume."""

    namespace: str
    name: str
    uid: str
    volume: str
    volume_uid: str


class Site:
    """A node with real volumes, on which pods are put by hand."""

    def __init__(self, api: Api, node: str, folder: Path) -> None:
        self.api, self.node, self.folder = api, node, folder

    def disk(self, disk: Disk) -> Path:
        return self.folder / "storage" / disk.volume / "disk.img"

    def write(self, disk: Disk, content: bytes = TREASURE) -> None:
        self.disk(disk).parent.mkdir(parents=True)
        self.disk(disk).write_bytes(content)

    async def make(self, namespace: str, name: str, source: Json | None = None, **annotations: str) -> Disk:
        spec = {"source": source or {"blank": {}}, "storage": {"resources": {"requests": {"storage": "2Mi"}}}}
        made = (await self.api.create(DATA_VOLUMES, {"metadata": {"name": name}, "spec": spec}, namespace)).ok["metadata"]
        owner = {"apiVersion": registry.DATA_VOLUME.api_version, "kind": "DataVolume", "name": name, "uid": made["uid"]}
        claim = await self._claim(namespace, name, annotations, [{**owner, "controller": True}])
        volume = f"pvc-{claim['uid']}"
        found = await self._volume(volume, claim)
        await self._bound(namespace, name, volume)
        return Disk(namespace, name, made["uid"], volume, found["uid"])

    async def _claim(self, namespace: str, name: str, annotations: dict[str, str], owners: list[Json]) -> Json:
        # No class: nobody but us makes a volume for it.
        spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "2Mi"}}}
        metadata = {"name": name, "annotations": annotations, "ownerReferences": owners}
        return (await self.api.create(CLAIMS, {"metadata": metadata, "spec": spec}, namespace)).ok["metadata"]

    async def _volume(self, name: str, claim: Json) -> Json:
        term = {"matchExpressions": [{"key": labels.STORAGE, "operator": "In", "values": [self.node]}]}
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim["namespace"], "name": claim["name"]}
        metadata = {
            "name": name,
            "annotations": {PROVISIONED_BY: labels.PROVISIONER},
            "labels": {labels.STORAGE: self.node},
            "finalizers": [CONTENT_FINALIZER],
        }
        spec = {
            "capacity": {"storage": "2Mi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "",
            "claimRef": {**reference, "uid": claim["uid"]},
            "local": {"path": f"/herder/volumes/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        return (await self.api.create(VOLUMES, {"metadata": metadata, "spec": spec})).ok["metadata"]

    async def _bound(self, namespace: str, name: str, volume: str) -> None:
        async def look() -> bool:
            claim = (await self.api.get(CLAIMS, name, namespace)).ok
            assert (claim["status"].get("phase"), claim["spec"].get("volumeName")) == ("Bound", volume), claim["status"]
            return (await self.api.get(VOLUMES, volume)).ok["status"].get("phase") == "Bound"

        await eventually(look, PATIENCE)

    async def put(self, namespace: str, name: str, order: Json, owner: Json | None, *claims: str) -> None:
        metadata: Json = {"name": name, "annotations": {labels.IMPORT: json.dumps(order)}}
        if owner is not None:
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        spec = {
            "nodeName": self.node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "importer", "image": "herder.dev/importer"}],
            "volumes": [{"name": f"v-{one}", "persistentVolumeClaim": {"claimName": one}} for one in claims],
        }
        (await self.api.create(PODS, {"metadata": metadata, "spec": spec}, namespace)).ok  # noqa: B018

    async def ends(self, namespace: str, name: str) -> Json:
        """The status of the pod, once it has ended."""

        async def look() -> Json:
            status = (await self.api.get(PODS, name, namespace)).ok["status"]
            assert status.get("phase") in ("Succeeded", "Failed"), status
            return status

        return await eventually(look, PATIENCE)

    async def refuses(self, namespace: str, name: str) -> str:
        status = await self.ends(namespace, name)
        assert (status["phase"], status.get("reason")) == ("Failed", "ImportForbidden"), status
        return status["message"]


def of_data_volume(disk: Disk) -> Json:
    return {"apiVersion": registry.DATA_VOLUME.api_version, "kind": "DataVolume", "name": disk.name, "uid": disk.uid}


def of_volume(disk: Disk) -> Json:
    return {"apiVersion": "v1", "kind": "PersistentVolume", "name": disk.volume, "uid": disk.volume_uid}


def clone(source: Disk, target: Disk) -> Json:
    return {"action": "clone", "source": source.volume, "volume": target.volume, "capacity": 2 * MIB}


def blank(target: Disk) -> Json:
    return {"action": "blank", "volume": target.volume, "capacity": 2 * MIB}


def delete(target: Disk) -> Json:
    return {"action": "delete", "volume": target.volume}


def pvc(source: Disk) -> Json:
    return {"pvc": {"name": source.name, "namespace": source.namespace}}


@pytest.fixture
async def site(engine: Engine, api: Api, unique: Callable[..., str], tmp_path: Path) -> AsyncIterator[Site]:
    await install_crds(api)
    node = unique("node")
    if engine.name == "kubernetes":
        # To this node alone, and not to all as `herder install` does: other tests ask what a node may see without it.
        await grant(api, "", user(f"system:node:{node}"), *node_role.RULES)
    (await api.patch(NAMESPACES, SYSTEM, SYSTEM_NAMESPACE, kind="apply", fieldManager="test", force="true")).ok  # noqa: B018
    with run_agent(engine, node, tmp_path):
        yield Site(api, node, tmp_path)


SYSTEM_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}


@pytest.fixture
async def elsewhere(api: Api, unique: Callable[..., str]) -> str:
    name = unique("victim")
    (await api.create(NAMESPACES, {"metadata": {"name": name}})).ok  # noqa: B018
    return name


async def test_what_the_data_volume_asks_for_is_done(site: Site, namespace: str) -> None:
    source = await site.make(namespace, "source")
    site.write(source)
    copy = await site.make(namespace, "copy", pvc(source))
    empty = await site.make(namespace, "empty")
    await site.put(namespace, "copies", clone(source, copy), of_data_volume(copy), "copy", "source")
    await site.put(namespace, "blank", blank(empty), of_data_volume(empty), "empty")
    for name in ("copies", "blank"):
        assert (await site.ends(namespace, name))["phase"] == "Succeeded"
    assert site.disk(copy).read_bytes() == TREASURE + bytes(MIB)
    assert site.disk(empty).read_bytes() == bytes(2 * MIB)


async def test_a_pod_of_a_data_volume_does_nothing_that_it_does_not_ask_for(site: Site, namespace: str, elsewhere: str) -> None:
    theirs = await site.make(elsewhere, "treasure")
    site.write(theirs)
    mine = await site.make(namespace, "mine")
    orders = {
        "copies": (clone(theirs, mine), "action, source of it differ"),
        "fills": (blank(theirs), "volume of it differ"),
        "large": ({**blank(mine), "capacity": 1 << 50}, "capacity of it differ"),
        "fetches": ({**blank(mine), "action": "http", "http": {"url": "http://169.254.169.254/"}}, "action, http of it differ"),
    }
    for name, (order, _) in orders.items():
        await site.put(namespace, name, order, of_data_volume(mine), "mine")
    for name, (_, words) in orders.items():
        assert f"is not what DataVolume mine asks for: {words}" in await site.refuses(namespace, name)
    assert site.disk(theirs).read_bytes() == TREASURE
    assert not site.disk(mine).exists()


async def test_a_foreign_claim_is_copied_with_consent_alone_and_consent_is_asked_for_when_it_is_copied(
    site: Site, api: Api, namespace: str, elsewhere: str
) -> None:
    theirs = await site.make(elsewhere, "treasure", None, **{ALLOW_CLONE: f"someone, {namespace}"})
    site.write(theirs)
    copy, later = await site.make(namespace, "copy", pvc(theirs)), await site.make(namespace, "later", pvc(theirs))
    await site.put(namespace, "allowed", clone(theirs, copy), of_data_volume(copy), "copy")
    assert (await site.ends(namespace, "allowed"))["phase"] == "Succeeded"
    assert site.disk(copy).read_bytes() == TREASURE + bytes(MIB)
    withdrawn = {"metadata": {"annotations": {ALLOW_CLONE: "someone"}}}
    (await api.patch(CLAIMS, "treasure", withdrawn, elsewhere)).ok  # noqa: B018
    await site.put(namespace, "withdrawn", clone(theirs, later), of_data_volume(later), "later")
    assert f"only if its annotation {ALLOW_CLONE} names them ({namespace})" in await site.refuses(namespace, "withdrawn")
    assert not site.disk(later).exists()


async def test_another_volume_than_the_one_behind_the_claim_is_neither_copied_nor_filled(
    site: Site, api: Api, namespace: str, elsewhere: str
) -> None:
    """A claim may name any volume. Whose it is, the volume says."""
    theirs = await site.make(elsewhere, "treasure")
    site.write(theirs)
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": theirs.volume}
    spec |= {"resources": {"requests": {"storage": "2Mi"}}}
    bound = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    (await api.create(CLAIMS, {"metadata": {"name": "claims", "annotations": bound}, "spec": spec}, namespace)).ok  # noqa: B018
    copy = await site.make(namespace, "copy", {"pvc": {"name": "claims"}})
    await site.put(namespace, "copies", clone(theirs, copy), of_data_volume(copy), "copy", "claims")
    assert f"PersistentVolumeClaim {namespace}/claims is not bound" in await site.refuses(namespace, "copies")
    assert not site.disk(copy).exists()


async def test_content_goes_when_the_volume_is_released_and_its_claim_is_gone_and_not_before(
    site: Site, api: Api, namespace: str
) -> None:
    disk, name = await site.make(namespace, "disk"), f"clear-{namespace}"
    site.write(disk)
    await site.put(SYSTEM, f"{name}-bound", delete(disk), of_volume(disk))
    assert "is Bound, and not being deleted: its content stays" in await site.refuses(SYSTEM, f"{name}-bound")
    await site.put(namespace, "stranger", delete(disk), of_volume(disk), "disk")
    assert f"only by pods of namespace {SYSTEM}" in await site.refuses(namespace, "stranger")
    (await api.delete(PODS, "stranger", namespace)).ok  # noqa: B018
    # Going, but there: it is protected from being deleted while it is bound.
    (await api.delete(VOLUMES, disk.volume)).ok  # noqa: B018
    await site.put(SYSTEM, f"{name}-claimed", delete(disk), of_volume(disk))
    assert f"PersistentVolumeClaim {namespace}/disk of PersistentVolume {disk.volume} still exists" in await site.refuses(
        SYSTEM, f"{name}-claimed"
    )
    assert site.disk(disk).read_bytes() == TREASURE
    (await api.delete(DATA_VOLUMES, "disk", namespace)).ok  # noqa: B018

    async def unclaimed() -> bool:
        return (await api.get(CLAIMS, "disk", namespace)).code == 404

    await eventually(unclaimed, PATIENCE)
    await site.put(SYSTEM, name, delete(disk), of_volume(disk))
    assert (await site.ends(SYSTEM, name))["phase"] == "Succeeded"
    assert not site.disk(disk).exists()
    await _clear_away(api, name, disk)


async def _clear_away(api: Api, name: str, disk: Disk) -> None:
    await asyncio.gather(*(api.delete(PODS, one, SYSTEM) for one in (name, f"{name}-bound", f"{name}-claimed")))
    await api.patch(VOLUMES, disk.volume, {"metadata": {"finalizers": None}})


@pytest.mark.slow
async def test_an_agent_that_is_started_again_obeys_no_order_that_is_not_vouched_for(
    engine: Engine, api: Api, namespace: str, elsewhere: str, unique: Callable[..., str], tmp_path: Path
) -> None:
    """The pod says that it is at work; a pod's status can be written by who may write it, too."""
    await install_crds(api)
    node = unique("node")
    if engine.name == "kubernetes":
        await grant(api, "", user(f"system:node:{node}"), *node_role.RULES)
    site = Site(api, node, tmp_path)
    theirs, mine = await site.make(elsewhere, "treasure"), await site.make(namespace, "mine")
    site.write(theirs)
    await site.put(namespace, "copies", clone(theirs, mine), of_data_volume(mine), "mine")
    state: dict[str, Any] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "importer", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    status = {"phase": "Running", "containerStatuses": [container]}
    (await api.patch(PODS, "copies", {"status": status}, namespace, "status")).ok  # noqa: B018
    with run_agent(engine, node, tmp_path):
        assert "is not what DataVolume mine asks for" in await site.refuses(namespace, "copies")
    assert not site.disk(mine).exists()

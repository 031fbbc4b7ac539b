"""Importer pods that nobody but a tenant made: no node obeys them, and nothing of anybody else's is read or removed."""

import json
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels, registry
from herder.api.storage import ALLOW_CLONE
from tests.engines.api import Api, Json
from tests.engines.credentials import bind, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.processes import Child
from tests.engines.resources import CLAIMS, NAMESPACES, PODS, REPLICA_SETS, STORAGE_CLASSES, VOLUMES
from tests.machines.agent import run_agent
from tests.machines.herd import DATA_VOLUMES, Herd
from tests.machines.volumes import BLANK, becomes, copied, make, volume_is_gone, volume_of

MIB = 1024 * 1024
TREASURE = os.urandom(MIB)
FORBIDDEN = "ImportForbidden"


@dataclass(frozen=True)
class Site:
    """A node that keeps real volumes, one of which belongs to somebody else."""

    node: str
    folder: Path
    victim: Herd
    volume: str  # the victim's

    def disk(self, volume: str) -> Path:
        return self.folder / "storage" / volume / "disk.img"

    @property
    def intact(self) -> bool:
        return self.disk(self.volume).read_bytes()[:MIB] == TREASURE

    def copies(self) -> list[Path]:
        """Whatever there is of the victim's content elsewhere."""
        files = [one for one in (self.folder / "storage").rglob("*") if one.is_file() and one != self.disk(self.volume)]
        return [one for one in files if TREASURE[:512] in one.read_bytes()]


@pytest.fixture
def agent(engine: Engine, storage: str, tmp_path: Path) -> Iterator[Child]:
    with run_agent(engine, storage, tmp_path) as running:
        yield running


@pytest.fixture
async def site(api: Api, storage: str, agent: Child, tmp_path: Path, unique: Callable[..., str]) -> Site:
    body = {"metadata": {"name": storage}, "provisioner": labels.PROVISIONER, "parameters": {"storage": storage}}
    (await api.create(STORAGE_CLASSES, body)).ok  # noqa: B018
    other = unique("victim")
    (await api.create(NAMESPACES, {"metadata": {"name": other}})).ok  # noqa: B018
    victim = Herd(api, other, unique)
    await make(victim, kept(BLANK, storage), "treasure")
    await becomes(victim, "Succeeded", "treasure")
    made = Site(storage, tmp_path, victim, (await volume_of(victim, "treasure"))["metadata"]["name"])
    with made.disk(made.volume).open("r+b") as file:
        file.write(TREASURE)
    return made


@pytest.fixture(params=["admin", "edit"])
async def tenant(request: pytest.FixtureRequest, engine: Engine, api: Api, herd: Herd) -> AsyncIterator[Api]:
    who = f"tenant-{uuid.uuid4().hex[:8]}"
    await bind(api, herd.namespace, request.param, user(who), rule("create", "pods"))
    async with with_certificate(engine, who) as connected:
        yield connected


def kept(spec: Json, storage: str) -> Json:
    return {**spec, "storage": {**spec["storage"], "storageClassName": storage}}


def forged(site: Site, order: Json, owner: Json | None = None, name: str = "forged", **spec: Any) -> Json:
    metadata: Json = {"name": name, "annotations": {labels.IMPORT: json.dumps(order)}}
    if owner is not None:
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    toleration = {"key": labels.VM_HOST_TAINT, "operator": "Exists"}
    container = {"name": "importer", "image": "herder.dev/importer"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": site.node, "restartPolicy": "Never", "containers": [container], "tolerations": [toleration], **spec},
    }


def delete(site: Site) -> Json:
    return {"action": "delete", "volume": site.volume}


def owner_of(document: Json, kind: str, api_version: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": document["metadata"]["name"], "uid": document["metadata"]["uid"]}


def data_volume(document: Json) -> Json:
    return owner_of(document, registry.DATA_VOLUME.kind, registry.DATA_VOLUME.api_version)


async def own_disk(herd: Herd, site: Site, name: str = "mine") -> tuple[Json, str]:
    """A DataVolume of the tenant's own, and the volume that it filled."""
    made = await make(herd, kept(BLANK, site.node), name)
    await becomes(herd, "Succeeded", name)
    return made, (await volume_of(herd, name))["metadata"]["name"]


async def fails(herd: Herd, name: str = "forged") -> str:
    """The sentence with which the node refuses it."""

    async def look() -> str:
        status = (await herd.api.get(PODS, name, herd.namespace)).ok["status"]
        assert (status.get("phase"), status.get("reason")) == ("Failed", FORBIDDEN), status
        return status["message"]

    return await herd.eventually(look)


# --- at admission ----------------------------------------------------------------------------------------------------------------


async def test_a_tenant_cannot_make_a_pod_that_removes_or_copies_a_foreign_volume(herd: Herd, site: Site, tenant: Api) -> None:
    mine, volume = await own_disk(herd, site)
    stolen = {"action": "clone", "source": site.volume, "volume": volume, "capacity": 64 * MIB}
    for pod in (forged(site, delete(site)), forged(site, stolen), forged(site, stolen, data_volume(mine))):
        reply = await tenant.create(PODS, pod, herd.namespace)
        reply.refused(403, "Forbidden")
        assert f"metadata.annotations[{labels.IMPORT}]: a node obeys it" in reply.message
    plain = forged(site, delete(site))
    plain["metadata"]["annotations"] = {}
    (await tenant.create(PODS, plain, herd.namespace)).ok  # noqa: B018
    added = {"metadata": {"annotations": {labels.IMPORT: json.dumps(delete(site))}}}
    (await tenant.patch(PODS, "forged", added, herd.namespace)).refused(403, "Forbidden")
    assert site.intact and site.copies() == []


async def test_a_template_makes_no_pod_that_orders_something(herd: Herd, site: Site, tenant: Api) -> None:
    """By a controller of the cluster, which on the embedded engine has the account of ours."""
    pod = forged(site, delete(site), terminationGracePeriodSeconds=0)
    template = {"metadata": {"labels": {"app": "a"}, "annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    template["spec"] = {**template["spec"], "restartPolicy": "Always"}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    (await tenant.create(REPLICA_SETS, {"metadata": {"name": "set"}, "spec": spec}, herd.namespace)).ok  # noqa: B018

    async def told() -> bool:
        made = (await tenant.get(REPLICA_SETS, "set", herd.namespace)).ok
        conditions = made.get("status", {}).get("conditions", ())
        messages = [one["message"] for one in conditions if one["type"] == "ReplicaFailure"]
        assert any("is only for pods that belong to a DataVolume or a PersistentVolume" in one for one in messages), made["status"]
        return True

    await herd.eventually(told)
    assert (await tenant.list(PODS, herd.namespace)).names == []
    assert site.intact


# --- and without it: written by who may write anything ---------------------------------------------------------------------------


async def test_a_node_removes_no_volume_because_a_pod_says_so(herd: Herd, site: Site) -> None:
    document = (await herd.api.get(VOLUMES, site.volume)).ok
    owner = owner_of(document, "PersistentVolume", "v1")
    for name, pod in (("bare", forged(site, delete(site))), ("owned", forged(site, delete(site), owner))):
        pod["metadata"]["name"] = name
        (await herd.api.create(PODS, pod, herd.namespace)).ok  # noqa: B018
        assert "only by pods of namespace herder-system" in await fails(herd, name)
    assert site.intact


async def test_a_node_removes_no_volume_that_is_claimed_whoever_asks(herd: Herd, site: Site, unique: Callable[..., str]) -> None:
    system = Herd(herd.api, "herder-system", unique)
    document = (await herd.api.get(VOLUMES, site.volume)).ok
    name = unique("forged")
    pod = forged(site, delete(site), owner_of(document, "PersistentVolume", "v1"), name)
    (await herd.api.create(PODS, pod, system.namespace)).ok  # noqa: B018
    try:
        assert "is Bound, and not being deleted: its content stays" in await fails(system, name)
        assert site.intact
    finally:
        await herd.api.delete(PODS, name, system.namespace)


async def test_a_node_copies_no_foreign_volume_because_a_pod_says_so(herd: Herd, site: Site) -> None:
    """What it does where the pod names a DataVolume as its owner, too: tests/behaviour/test_import_verification.py."""
    _, volume = await own_disk(herd, site)
    site.disk(volume).unlink()
    stolen = {"action": "clone", "source": site.volume, "volume": volume, "capacity": 64 * MIB}
    mounts = [{"name": "target", "persistentVolumeClaim": {"claimName": "mine"}}]
    (await herd.api.create(PODS, forged(site, stolen, volumes=mounts), herd.namespace)).ok  # noqa: B018
    assert "has no DataVolume as its controller" in await fails(herd)
    assert site.intact and site.copies() == []


# --- and what our controllers ask for is done ------------------------------------------------------------------------------------


async def test_a_copy_with_consent_is_made(herd: Herd, site: Site) -> None:
    await site.victim.patch("treasure", {"metadata": {"annotations": {ALLOW_CLONE: herd.namespace}}}, CLAIMS)
    await make(herd, kept(copied("treasure", site.victim.namespace), site.node), "copy")
    await becomes(herd, "Succeeded", "copy")
    volume = (await volume_of(herd, "copy"))["metadata"]["name"]
    assert site.disk(volume).read_bytes()[:MIB] == TREASURE


async def test_a_volume_that_nobody_claims_any_more_is_cleared(herd: Herd, site: Site) -> None:
    await herd.api.delete(DATA_VOLUMES, "treasure", site.victim.namespace)
    await volume_is_gone(herd, site.volume)
    assert not site.disk(site.volume).parent.exists()

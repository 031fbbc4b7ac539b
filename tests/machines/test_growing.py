"""Claims that ask for more: the disk grows where it is, then volume and claim say so."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels
from tests.engines.api import Reply
from tests.engines.engine import Engine
from tests.engines.resources import CLAIMS, STORAGE_CLASSES, VOLUMES
from tests.machines.agent import run_agent
from tests.machines.herd import MACHINES, Herd, Json, condition, machine
from tests.machines.volumes import BLANK, becomes, fetched, make, volume_of

MIB = 1024 * 1024


def asks_for(size: str) -> Json:
    return {"spec": {"resources": {"requests": {"storage": size}}}}


async def ask(herd: Herd, size: str, name: str = "disk") -> Reply:
    return await herd.api.patch(CLAIMS, name, asks_for(size), herd.namespace, kind="merge")


async def has(herd: Herd, size: str, name: str = "disk") -> Json:
    """The claim, once it and its volume have grown and there is nothing more to say of it."""

    async def look() -> Json:
        claim = (await herd.api.get(CLAIMS, name, herd.namespace)).ok
        status = claim["status"]
        volume = (await herd.api.get(VOLUMES, claim["spec"]["volumeName"])).ok
        assert (status["capacity"], volume["spec"]["capacity"]) == ({"storage": size}, {"storage": size}), status
        assert not status.get("conditions") and not status.get("allocatedResourceStatuses"), status
        return claim

    return await herd.eventually(look)


async def says(herd: Herd, kind: str, words: str) -> Json:
    async def look() -> Json:
        claim = (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok
        shown = condition(claim, kind)
        assert shown.get("status") == "True" and words in shown.get("message", ""), claim["status"]
        return claim

    return await herd.eventually(look)


@pytest.fixture
async def in_class(herd: Herd, storage: str) -> Callable[..., Any]:
    """A blank disk on the storage of the test's own node."""

    async def made(expansion: bool, **spec: Any) -> None:
        body = {"metadata": {"name": storage}, "provisioner": labels.PROVISIONER, "parameters": {"storage": storage}}
        (await herd.api.create(STORAGE_CLASSES, {**body, "allowVolumeExpansion": expansion})).ok  # noqa: B018
        size = {"resources": {"requests": {"storage": "8Mi"}}, "storageClassName": storage}
        await make(herd, {**BLANK, "storage": size, **spec})

    return made


async def test_a_larger_claim_gets_a_larger_volume_and_never_a_smaller_one(herd: Herd) -> None:
    await make(herd, BLANK)
    await becomes(herd, "Succeeded")
    (await ask(herd, "100Mi")).ok  # noqa: B018
    claim = await has(herd, "100Mi")
    assert claim["status"]["allocatedResources"] == {"storage": "100Mi"}
    assert "100Mi" in await herd.told("PersistentVolumeClaim", "VolumeResizeSuccessful", "disk")
    less = await ask(herd, "99Mi")
    less.refused(422, "Invalid")
    assert "field can not be less than status.capacity" in less.body["message"]


async def test_what_a_volume_says_by_hand_is_not_what_a_claim_has(herd: Herd) -> None:
    await make(herd, BLANK)
    await becomes(herd, "Succeeded")
    volume = (await volume_of(herd))["metadata"]["name"]
    (await herd.api.patch(VOLUMES, volume, {"spec": {"capacity": {"storage": "1Ti"}}}, kind="merge")).ok  # noqa: B018
    (await ask(herd, "100Mi")).ok  # noqa: B018
    await herd.told("PersistentVolumeClaim", "VolumeResizeSuccessful", "disk")
    assert (await herd.api.get(CLAIMS, "disk", herd.namespace)).ok["status"]["capacity"] == {"storage": "100Mi"}


async def test_a_claim_may_ask_for_more_only_where_it_is_bound_and_its_class_allows_it(
    herd: Herd, in_class: Callable[..., Any]
) -> None:
    await in_class(expansion=False)
    unbound = {"accessModes": ["ReadWriteOnce"], "storageClassName": "nobody", "resources": {"requests": {"storage": "8Mi"}}}
    (await herd.api.create(CLAIMS, {"metadata": {"name": "waits"}, "spec": unbound}, herd.namespace)).ok  # noqa: B018
    early = await ask(herd, "16Mi", "waits")
    early.refused(422, "Invalid")
    assert "for bound claims" in early.body["message"]

    async def bound() -> Reply:
        reply = await ask(herd, "16Mi")
        assert reply.code == 403, reply.body
        return reply

    refused: Reply = await herd.eventually(bound)
    assert "the storageclass that provisions the pvc must support resize" in refused.body["message"]


async def test_the_disk_of_a_machine_grows_with_its_template(herd: Herd) -> None:
    body = machine(volumes={"root": BLANK})
    spec = body["spec"]["template"]["spec"]
    spec["domain"]["devices"] = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": "root"}}]
    (await herd.api.create(MACHINES, body, herd.namespace)).ok  # noqa: B018
    before = await herd.running()
    larger = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    await herd.patch("vm", {"spec": {"dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": larger}]}})
    await has(herd, "1Gi", "root")
    assert (await herd.running())["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_claim_that_is_being_filled_grows_afterwards(herd: Herd) -> None:
    await make(herd, fetched(), import_duration="3s")
    await becomes(herd, "ImportInProgress")
    (await ask(herd, "100Mi")).ok  # noqa: B018
    await says(herd, "Resizing", "waits for DataVolume disk to be filled")
    await has(herd, "100Mi")
    await becomes(herd, "Succeeded")


@pytest.fixture
def agent(engine: Engine, storage: str, tmp_path: Path) -> Iterator[None]:
    with run_agent(engine, storage, tmp_path):
        yield


@pytest.mark.usefixtures("agent")
async def test_what_can_never_be_had_is_told_and_less_is_then_given(
    herd: Herd, in_class: Callable[..., Any], tmp_path: Path
) -> None:
    await in_class(expansion=True)
    await becomes(herd, "Succeeded")
    disk = tmp_path / "storage" / (await volume_of(herd))["metadata"]["name"] / "disk.img"
    (await ask(herd, "8Ei")).ok  # noqa: B018
    claim = await says(herd, "ControllerResizeError", "can never be filled")
    assert (claim["status"]["capacity"], disk.stat().st_size) == ({"storage": "8Mi"}, 8 * MIB)
    assert condition(claim, "Resizing")["status"] == "True"
    (await ask(herd, "16Mi")).ok  # noqa: B018
    await has(herd, "16Mi")
    assert disk.stat().st_size == 16 * MIB

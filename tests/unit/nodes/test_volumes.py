"""What a guest mounts, from an engine in this process and a folder for storage."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api import reasons
from herder.api.core import Pod
from herder.api.guest import GuestDefinition
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.kube.resources import CLAIMS, CONFIG_MAPS, SECRETS, VOLUMES, Key
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Refused, Volume
from herder.nodes.volumes import NodeVolumes
from herder.nodes.work import NotYet
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside

HERE = "default"


class Rig:
    def __init__(self, client: Client, storage: Path) -> None:
        self.client = client
        self.storage = storage
        self._volumes = NodeVolumes(client, storage)

    async def resolve(self, **source: Any) -> Volume | None:
        """A guest with one volume like this."""
        spec = {"domain": {}, "hostname": "shop", "volumes": [{"name": "one", **source}]}
        instance = {"namespace": HERE, "name": "web", "uid": "0"}
        definition = msgspec.convert({"instance": instance, "spec": spec}, GuestDefinition)
        pod = msgspec.convert({"metadata": {"namespace": HERE, "name": "launcher"}}, Pod)
        return (await self._volumes.resolve(pod, definition)).get("one")

    async def files(self, **source: Any) -> dict[str, bytes]:
        found = await self.resolve(**source)
        assert isinstance(found, FilesVolume)
        return found.files

    async def claim(self, name: str, path: str | None, bound: bool = True) -> None:
        """A claim, and its volume where there is a path."""
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        if path is not None:
            spec["volumeName"] = f"pv-{name}"
        made = await self.client.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, HERE)
        if path is not None:
            source = {"local": {"path": path}} if path else {"hostPath": {"path": "/etc"}}
            reference = {"namespace": HERE, "name": name, "uid": made.uid if bound else "another"}
            term = {"matchExpressions": [{"key": "herder.dev/storage", "operator": "In", "values": ["local"]}]}
            await self.client.create(
                VOLUMES,
                {
                    "metadata": {"name": f"pv-{name}"},
                    "spec": {
                        **source,
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "claimRef": reference,
                        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                    },
                },
            )
            await self.client.patch(CLAIMS, Key(HERE, name), {"status": {"phase": "Bound"}}, subresource="status")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    for name in ("engine", "volumes"):
        (tmp_path / name).mkdir()
    async with engine_inside(tmp_path / "engine") as inside:
        yield Rig(Client(InsideTransport(inside.router, "agent", user=ENGINE), "agent"), tmp_path / "volumes")


async def test_a_bound_claim_is_a_file_of_the_storage(rig: Rig) -> None:
    await rig.claim("disk", "/herder/volumes/pvc-1")
    (rig.storage / "pvc-1").write_bytes(b"")
    assert await rig.resolve(dataVolume={"name": "disk"}) == FileVolume(rig.storage / "pvc-1")
    by_claim = {"claimName": "disk", "readOnly": True}
    assert await rig.resolve(persistentVolumeClaim=by_claim) == FileVolume(rig.storage / "pvc-1", read_only=True)


async def test_a_claim_is_waited_for_until_all_of_it_is_there(rig: Rig) -> None:
    wanted = {"persistentVolumeClaim": {"claimName": "disk"}}
    await _waits(rig, wanted, reasons.MISSING_CLAIM, "waits for PersistentVolumeClaim disk, which does not exist")
    await rig.claim("disk", None)
    await _waits(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, "waits for PersistentVolumeClaim disk to be bound to a volume")
    await rig.claim("full", "/herder/volumes/pvc-2")
    wanted = {"persistentVolumeClaim": {"claimName": "full"}}
    await _waits(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, "waits for the content of claim full: pvc-2 is not there")


async def test_a_volume_of_another_claim_is_never_used(rig: Rig) -> None:
    await rig.claim("disk", "/herder/volumes/pvc-1", bound=False)
    (rig.storage / "pvc-1").write_bytes(b"")
    wanted = {"persistentVolumeClaim": {"claimName": "disk"}}
    await _waits(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, "waits for PersistentVolumeClaim disk to be bound to a volume")


@pytest.mark.parametrize(
    ("path", "why"), [("", "no volume of a node's own storage"), ("/", "names no file"), ("/.hidden", "names no file")]
)
async def test_a_path_that_leads_elsewhere_is_refused(rig: Rig, path: str, why: str) -> None:
    await rig.claim("disk", path)
    with pytest.raises(Refused, match=why):
        await rig.resolve(persistentVolumeClaim={"claimName": "disk"})


async def test_an_empty_disk_has_its_size(rig: Rig) -> None:
    assert await rig.resolve(emptyDisk={"capacity": "2Gi"}) == EmptyVolume(2 << 30)


async def test_secrets_and_config_maps_become_files(rig: Rig) -> None:
    await rig.client.create(SECRETS, {"metadata": {"name": "keys"}, "stringData": {"id": "secret"}}, HERE)
    content = {"data": {"colour": "blue"}, "binaryData": {"raw": base64.b64encode(b"\0\1").decode()}}
    await rig.client.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, **content}, HERE)
    labelled = await rig.resolve(secret={"secretName": "keys", "volumeLabel": "KEYS"})
    assert labelled == FilesVolume({"id": b"secret"}, "KEYS")
    assert await rig.files(configMap={"name": "settings"}) == {"colour": b"blue", "raw": b"\0\1"}
    assert await rig.files(sysprep={"configMap": {"name": "settings"}}) == {"colour": b"blue", "raw": b"\0\1"}


async def test_what_is_missing_is_waited_for_unless_it_is_optional(rig: Rig) -> None:
    await _waits(rig, {"secret": {"secretName": "no"}}, reasons.MISSING_SECRET, "waits for Secret no, which does not exist")
    await _waits(rig, {"configMap": {"name": "no"}}, reasons.MISSING_CONFIG_MAP, "waits for ConfigMap no, which does not exist")
    assert await rig.files(secret={"secretName": "no", "optional": True}) == {}
    assert await rig.files(configMap={"name": "no", "optional": True}) == {}


async def test_a_cloud_init_seed_is_what_cloud_init_looks_for(rig: Rig) -> None:
    seed = await rig.resolve(cloudInitNoCloud={"userData": "#cloud-config\n", "networkData": "version: 2\n"})
    assert isinstance(seed, FilesVolume) and seed.label == "cidata"
    assert seed.files["user-data"] == b"#cloud-config\n"
    assert seed.files["network-config"] == b"version: 2\n"
    assert msgspec.json.decode(seed.files["meta-data"]) == {"instance-id": "web.default", "local-hostname": "shop"}


async def test_a_config_drive_has_its_files_in_folders(rig: Rig) -> None:
    seed = await rig.resolve(cloudInitConfigDrive={"userDataBase64": base64.b64encode(b"hello").decode()})
    assert isinstance(seed, FilesVolume) and seed.label == "config-2"
    assert seed.files["openstack/latest/user_data"] == b"hello"
    assert msgspec.json.decode(seed.files["openstack/latest/meta_data.json"])["hostname"] == "shop"


async def test_user_data_may_be_in_a_secret_that_comes_later(rig: Rig) -> None:
    wanted = {"cloudInitNoCloud": {"secretRef": {"name": "seed"}}}
    await _waits(rig, wanted, reasons.MISSING_SECRET, "waits for Secret seed, which does not exist")
    await rig.client.create(SECRETS, {"metadata": {"name": "seed"}, "stringData": {"other": "x"}}, HERE)
    await _waits(rig, wanted, reasons.MISSING_SECRET, "waits for Secret seed to have the key userdata")
    await rig.client.patch(SECRETS, Key(HERE, "seed"), {"stringData": {"userData": "#cloud-config\n"}})
    assert (await rig.files(**wanted))["user-data"] == b"#cloud-config\n"


async def test_base64_that_is_none_is_refused(rig: Rig) -> None:
    with pytest.raises(Refused, match="userDataBase64 is not base64"):
        await rig.resolve(cloudInitNoCloud={"userDataBase64": "?"})


async def _waits(rig: Rig, wanted: dict[str, Any], reason: str, sentence: str) -> None:
    with pytest.raises(NotYet) as waits:
        await rig.resolve(**wanted)
    assert (waits.value.reason, str(waits.value)) == (reason, sentence)

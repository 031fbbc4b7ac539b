"""What a guest mounts, from an engine in this process and a folder for storage."""

from __future__ import annotations

import base64
import struct
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
from herder.nodes.disk_space import DiskSpace
from herder.nodes.imports import StorageFolder
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Refused, Volume
from herder.nodes.volumes import NodeVolumes
from herder.nodes.work import NotYet
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside

HERE = "default"


FIRST = "pvc-00000000-0000-4000-8000-000000000001"
SECOND = "pvc-00000000-0000-4000-8000-000000000002"
QCOW2_HEADER = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, 1 << 50).ljust(512, b"\0")


class Rig:
    def __init__(self, client: Client, storage: Path) -> None:
        self.client = client
        self.storage = storage
        self.cloud_init_again = False
        self._volumes = NodeVolumes(client, StorageFolder(storage))

    def use(self, space: DiskSpace) -> None:
        self._volumes = NodeVolumes(self.client, StorageFolder(self.storage, space))

    async def resolve(self, **source: Any) -> Volume | None:
        """A guest with one volume like this."""
        spec = {"domain": {}, "hostname": "shop", "volumes": [{"name": "one", **source}]}
        instance = {"namespace": HERE, "name": "web", "uid": "0"}
        definition = msgspec.convert({"instance": instance, "spec": spec, "cloudInitAgain": self.cloud_init_again}, GuestDefinition)
        pod = msgspec.convert({"metadata": {"namespace": HERE, "name": "launcher"}}, Pod)
        return (await self._volumes.resolve(pod, definition)).get("one")

    async def files(self, **source: Any) -> dict[str, bytes]:
        found = await self.resolve(**source)
        assert isinstance(found, FilesVolume)
        return found.files

    async def claim(self, name: str, path: str | None, bound: bool = True, owner: str = "") -> None:
        """A claim, and its volume where there is a path."""
        reference = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": name, "uid": owner, "controller": True}
        metadata = {"name": name, **({"ownerReferences": [reference]} if owner else {})}
        spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        if path is not None:
            spec["volumeName"] = f"pv-{name}"
        made = await self.client.create(CLAIMS, {"metadata": metadata, "spec": spec}, HERE)
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
    await rig.claim("disk", f"/herder/volumes/{FIRST}")
    (rig.storage / FIRST).mkdir()
    file = rig.storage / FIRST / "disk.img"
    file.write_bytes(b"content")
    assert await rig.resolve(dataVolume={"name": "disk"}) == FileVolume(file)
    by_claim = {"claimName": "disk", "readOnly": True}
    assert await rig.resolve(persistentVolumeClaim=by_claim) == FileVolume(file, read_only=True)
    assert file.read_bytes() == b"content"


async def test_what_a_guest_writes_into_its_disk_never_makes_it_another_format(rig: Rig) -> None:
    await rig.claim("blank", f"/herder/volumes/{FIRST}")
    made = await rig.resolve(persistentVolumeClaim={"claimName": "blank"})
    assert isinstance(made, FileVolume) and made.format == "raw"
    with made.path.open("r+b") as disk:
        disk.write(QCOW2_HEADER)
    assert await rig.resolve(persistentVolumeClaim={"claimName": "blank"}) == made


async def test_a_disk_from_before_formats_were_recorded_is_raw_from_its_first_use_on(rig: Rig) -> None:
    await rig.claim("disk", f"/herder/volumes/{FIRST}")
    (rig.storage / FIRST).mkdir()
    file = rig.storage / FIRST / "disk.img"
    file.write_bytes(bytes(1024))
    assert await rig.resolve(persistentVolumeClaim={"claimName": "disk"}) == FileVolume(file, format="raw")
    file.write_bytes(QCOW2_HEADER)
    assert await rig.resolve(persistentVolumeClaim={"claimName": "disk"}) == FileVolume(file, format="raw")


async def test_what_was_a_qcow2_before_formats_were_recorded_waits_until_somebody_says_what_it_is(rig: Rig) -> None:
    """Imported as one, or written by its guest: nobody can tell by looking at it."""
    await rig.claim("disk", f"/herder/volumes/{FIRST}")
    (rig.storage / FIRST).mkdir()
    file = rig.storage / FIRST / "disk.img"
    file.write_bytes(QCOW2_HEADER)
    with pytest.raises(NotYet, match=r'begins as a qcow2.*{"format":"raw"} or {"format":"qcow2"} in .*/volume\.json') as waits:
        await rig.resolve(persistentVolumeClaim={"claimName": "disk"})
    assert waits.value.reason == reasons.VOLUME_FORMAT_UNKNOWN
    (rig.storage / FIRST / "volume.json").write_text('{"format":"qcow2"}')
    assert await rig.resolve(persistentVolumeClaim={"claimName": "disk"}) == FileVolume(file, format="qcow2")


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{", b"\0" * 64, b'{"format":"vmdk"}', b"[]", None])
async def test_a_record_that_cannot_be_read_is_waited_for_and_kept(rig: Rig, content: bytes | None) -> None:
    await rig.claim("disk", f"/herder/volumes/{FIRST}")
    (rig.storage / FIRST).mkdir()
    (rig.storage / FIRST / "disk.img").write_bytes(bytes(1024))
    record = rig.storage / FIRST / "volume.json"
    record.mkdir() if content is None else record.write_bytes(content)
    with pytest.raises(NotYet, match=r"volume\.json in the storage folder, .*, cannot be read") as waits:
        await rig.resolve(persistentVolumeClaim={"claimName": "disk"})
    assert waits.value.reason == reasons.VOLUME_RECORD_UNREADABLE
    assert record.is_dir() if content is None else record.read_bytes() == content


async def test_a_claim_that_nobody_fills_is_an_empty_disk_of_its_size(rig: Rig) -> None:
    await rig.claim("blank", f"/herder/volumes/{FIRST}")
    made = await rig.resolve(persistentVolumeClaim={"claimName": "blank"})
    assert isinstance(made, FileVolume)
    assert made.path.stat().st_size == 1 << 30


async def test_a_claim_is_waited_for_until_all_of_it_is_there(rig: Rig) -> None:
    wanted = {"persistentVolumeClaim": {"claimName": "disk"}}
    await waits_for(rig, wanted, reasons.MISSING_CLAIM, "waits for PersistentVolumeClaim disk, which does not exist")
    await rig.claim("disk", None)
    await waits_for(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, "waits for PersistentVolumeClaim disk to be bound to a volume")
    await rig.claim("full", f"/herder/volumes/{SECOND}", owner="data-volume")
    wanted = {"persistentVolumeClaim": {"claimName": "full"}}
    await waits_for(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, f"waits for the content of claim full: {SECOND} is not there")


async def test_a_volume_of_another_claim_is_never_used(rig: Rig) -> None:
    await rig.claim("disk", f"/herder/volumes/{FIRST}", bound=False)
    wanted = {"persistentVolumeClaim": {"claimName": "disk"}}
    await waits_for(rig, wanted, reasons.WAITING_FOR_VOLUME_BINDING, "waits for PersistentVolumeClaim disk to be bound to a volume")


@pytest.mark.parametrize(
    ("path", "why"),
    [("", "no volume of a node's own storage"), ("/", "none of ours"), ("/.hidden", "none of ours"), ("/x", "none of ours")],
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
    await waits_for(rig, {"secret": {"secretName": "no"}}, reasons.MISSING_SECRET, "waits for Secret no, which does not exist")
    await waits_for(rig, {"configMap": {"name": "no"}}, reasons.MISSING_CONFIG_MAP, "waits for ConfigMap no, which does not exist")
    assert await rig.files(secret={"secretName": "no", "optional": True}) == {}
    assert await rig.files(configMap={"name": "no", "optional": True}) == {}


async def test_a_cloud_init_seed_is_what_cloud_init_looks_for(rig: Rig) -> None:
    seed = await rig.resolve(cloudInitNoCloud={"userData": "#cloud-config\n", "networkData": "version: 2\n"})
    assert isinstance(seed, FilesVolume) and seed.label == "cidata"
    assert seed.files["user-data"] == b"#cloud-config\n"
    assert seed.files["network-config"] == b"version: 2\n"
    assert msgspec.json.decode(seed.files["meta-data"]) == {"instance-id": "web.default", "local-hostname": "shop"}


async def test_changed_user_data_are_those_of_another_machine_to_cloud_init_where_that_is_wished(rig: Rig) -> None:
    async def identity(data: str, *, again: bool) -> str:
        rig.cloud_init_again = again
        seed = await rig.resolve(cloudInitNoCloud={"userData": data})
        assert isinstance(seed, FilesVolume)
        return msgspec.json.decode(seed.files["meta-data"])["instance-id"]

    assert await identity("one", again=False) == await identity("two", again=False) == "web.default"
    assert await identity("one", again=True) == await identity("one", again=True) != await identity("two", again=True)


async def test_a_config_drive_has_its_files_in_folders(rig: Rig) -> None:
    seed = await rig.resolve(cloudInitConfigDrive={"userDataBase64": base64.b64encode(b"hello").decode()})
    assert isinstance(seed, FilesVolume) and seed.label == "config-2"
    assert seed.files["openstack/latest/user_data"] == b"hello"
    assert msgspec.json.decode(seed.files["openstack/latest/meta_data.json"])["hostname"] == "shop"


async def test_user_data_may_be_in_a_secret_that_comes_later(rig: Rig) -> None:
    wanted = {"cloudInitNoCloud": {"secretRef": {"name": "seed"}}}
    await waits_for(rig, wanted, reasons.MISSING_SECRET, "waits for Secret seed, which does not exist")
    await rig.client.create(SECRETS, {"metadata": {"name": "seed"}, "stringData": {"other": "x"}}, HERE)
    await waits_for(rig, wanted, reasons.MISSING_SECRET, "waits for Secret seed to have the key userdata")
    await rig.client.patch(SECRETS, Key(HERE, "seed"), {"stringData": {"userData": "#cloud-config\n"}})
    assert (await rig.files(**wanted))["user-data"] == b"#cloud-config\n"


async def test_base64_that_is_none_is_refused(rig: Rig) -> None:
    with pytest.raises(Refused, match="userDataBase64 is not base64"):
        await rig.resolve(cloudInitNoCloud={"userDataBase64": "?"})


async def waits_for(rig: Rig, wanted: dict[str, Any], reason: str, sentence: str) -> None:
    with pytest.raises(NotYet) as waits:
        await rig.resolve(**wanted)
    assert (waits.value.reason, str(waits.value)) == (reason, sentence)

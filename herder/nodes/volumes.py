"""What a guest mounts: claims become files of this node's storage, Secrets, ConfigMaps and cloud-init small disks of files."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePosixPath

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.guest import GuestDefinition
from herder.api.kinds.volumes import CloudInitSource, SysprepSource, Volume
from herder.api.meta import LocalObjectReference
from herder.api.quantity import parse_quantity
from herder.kube.cache import Cache
from herder.kube.client import Client
from herder.kube.resources import CLAIMS, CONFIG_MAPS, SECRETS, VOLUMES, Key
from herder.nodes.cloud_init import config_drive, no_cloud
from herder.nodes.imports import ImportFailed, StorageFolder
from herder.nodes.runtimes import base
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Refused, Unfit
from herder.nodes.shared_reads import SharedReads
from herder.nodes.work import NotYet

Files = dict[str, bytes]


class NodeVolumes:
    def __init__(self, client: Client, storage: StorageFolder) -> None:
        self._client = client
        self._storage = storage
        self._reads = SharedReads(client)

    def follow(self, pods: Cache[Pod]) -> None:
        self._reads.follow(pods)

    async def resolve(self, pod: Pod, definition: GuestDefinition) -> dict[str, base.Volume]:
        """In their order: the first that is missing is the one that is told."""
        found: dict[str, base.Volume] = {}
        for volume in definition.spec.volumes or ():
            made = await self._volume(pod, volume, definition)
            if made is not None:
                found[volume.name] = made
        if definition.incoming is None:
            # One that comes has its disks here already: where it writes to them makes no difference.
            await asyncio.to_thread(self._check_room, found)
        return found

    async def memory(self, pod: Pod, claim: str) -> Path | None:
        found = await self._client.find(CLAIMS, Key(pod.namespace, claim))
        volume = await self._volume_of(found) if found is not None else None
        if volume is None or volume.spec.local is None:
            raise Unfit(f"PersistentVolumeClaim {claim}, into which its memory was saved, is gone or has no volume of a node's own")
        try:
            return self._storage.memory(PurePosixPath(volume.spec.local.path).name)
        except ImportFailed as unknown:
            raise Unfit(str(unknown)) from None

    async def _volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """That it is bound to, and that is bound to it."""
        name = claim.spec.volume_name
        volume = await self._client.find(VOLUMES, Key("", name)) if name and claim.status.phase == "Bound" else None
        owner = volume.spec.claim_ref if volume is not None else None
        return volume if owner is not None and owner.uid == claim.uid else None

    def _check_room(self, volumes: dict[str, base.Volume]) -> None:
        """Nothing that takes room is started while there is none."""
        for name, volume in volumes.items():
            if isinstance(volume, EmptyVolume) and (lack := self._storage.space.never_fits(volume.capacity)):
                raise NotYet(reasons.INSUFFICIENT_STORAGE, f"volume {name}: {lack}")
        thin = any(isinstance(one, EmptyVolume) or (isinstance(one, FileVolume) and not one.read_only) for one in volumes.values())
        if thin and (lack := self._storage.space.lack()):
            raise NotYet(reasons.INSUFFICIENT_STORAGE, f"waits for room: {lack}")

    async def _volume(self, pod: Pod, volume: Volume, definition: GuestDefinition) -> base.Volume | None:
        if volume.data_volume is not None:
            return await self._claim(Key(pod.namespace, volume.data_volume.name), read_only=False)
        if (claim := volume.persistent_volume_claim) is not None:
            return await self._claim(Key(pod.namespace, claim.claim_name), read_only=bool(claim.read_only))
        if volume.empty_disk is not None:
            return EmptyVolume(parse_quantity(volume.empty_disk.capacity).value())
        files = await self._files(pod, volume, definition)
        # What is left is for the runtime to refuse, by name.
        return FilesVolume(files[0], files[1]) if files is not None else None

    async def _claim(self, key: Key, *, read_only: bool) -> FileVolume:
        """By way of the claim's volume: its name is that of a file below this node's storage."""
        claim = await self._client.find(CLAIMS, key)
        if claim is None:
            raise NotYet(reasons.MISSING_CLAIM, f"waits for PersistentVolumeClaim {key.name}, which does not exist")
        volume = await self._volume_of(claim)
        if volume is None:
            raise NotYet(reasons.WAITING_FOR_VOLUME_BINDING, f"waits for PersistentVolumeClaim {key.name} to be bound to a volume")
        if volume.spec.local is None:
            why = "no volume of a node's own storage (spec.local); use StorageClass herder-local"
            raise Refused(reasons.UNSUPPORTED, f"PersistentVolume {volume.name} of claim {key.name} is {why}")
        # A claim that nobody fills is an empty disk of its size, made when it is first used.
        size = parse_quantity(volume.spec.capacity.get("storage", 0)).value() if not claim.controller_uid else 0
        return await asyncio.to_thread(self._file, volume.spec.local.path, key.name, size, read_only)

    def _file(self, path: str, claim: str, size: int, read_only: bool) -> FileVolume:
        name = PurePosixPath(path).name
        try:
            filled = self._storage.is_filled(name)
        except ImportFailed:
            raise Refused(
                reasons.UNSUPPORTED, f"the volume of claim {claim} has the path {path!r}, which is none of ours"
            ) from None
        if not filled and size:
            if lack := self._storage.space.never_fits(size) or self._storage.space.lack():
                raise NotYet(reasons.INSUFFICIENT_STORAGE, f"waits for room for claim {claim}: {lack}")
            self._storage.make_blank(name, size)
        elif not filled:
            raise NotYet(reasons.WAITING_FOR_VOLUME_BINDING, f"waits for the content of claim {claim}: {name} is not there")
        try:
            return FileVolume(self._storage.disk(name), read_only, self._storage.format_of(name))
        except ImportFailed as unknown:
            raise NotYet(unknown.reason, f"waits for the volume of claim {claim}: {unknown}") from None

    async def _files(self, pod: Pod, volume: Volume, definition: GuestDefinition) -> tuple[Files, str] | None:
        if (secret := volume.secret) is not None:
            return await self._secret(pod, secret.secret_name, bool(secret.optional)), secret.volume_label or ""
        if (config := volume.config_map) is not None:
            return await self._config_map(pod, config.name, bool(config.optional)), config.volume_label or ""
        if volume.sysprep is not None:
            return await self._sysprep(pod, volume.sysprep), "sysprep"
        if (source := volume.cloud_init_no_cloud) is not None:
            return no_cloud(definition, *await self._cloud_init(pod, source)), "cidata"
        if (source := volume.cloud_init_config_drive) is not None:
            return config_drive(definition, *await self._cloud_init(pod, source)), "config-2"
        return None

    async def _secret(self, pod: Pod, name: str, optional: bool = False) -> Files:
        found = await self._reads.find(SECRETS, Key(pod.namespace, name), pod)
        if found is None and not optional:
            raise NotYet(reasons.MISSING_SECRET, f"waits for Secret {name}, which does not exist")
        return dict(found.data) if found is not None else {}

    async def _config_map(self, pod: Pod, name: str, optional: bool = False) -> Files:
        found = await self._reads.find(CONFIG_MAPS, Key(pod.namespace, name), pod)
        if found is None and not optional:
            raise NotYet(reasons.MISSING_CONFIG_MAP, f"waits for ConfigMap {name}, which does not exist")
        return {file: text.encode() for file, text in found.data.items()} | dict(found.binary_data) if found is not None else {}

    async def _sysprep(self, pod: Pod, source: SysprepSource) -> Files:
        if source.secret is not None:
            return await self._secret(pod, source.secret.name)
        assert source.config_map is not None, "one of both is there"
        return await self._config_map(pod, source.config_map.name)

    async def _cloud_init(self, pod: Pod, source: CloudInitSource) -> tuple[bytes, bytes]:
        """User data and network data."""
        user = await self._data(pod, source.user_data, source.user_data_base64, source.secret_ref, "userdata")
        network = await self._data(
            pod, source.network_data, source.network_data_base64, source.network_data_secret_ref, "networkdata"
        )
        return user, network

    async def _data(
        self, pod: Pod, clear: str | None, encoded: str | None, reference: LocalObjectReference | None, name: str
    ) -> bytes:
        if clear is not None:
            return clear.encode()
        if encoded is not None:
            return _decoded(encoded, name)
        if reference is None:
            return b""
        files = await self._secret(pod, reference.name)
        for key in (name, name.replace("data", "Data")):
            if key in files:
                return files[key]
        raise NotYet(reasons.MISSING_SECRET, f"waits for Secret {reference.name} to have the key {name}")


def _decoded(text: str, name: str) -> bytes:
    try:
        return msgspec.convert(text, bytes)
    except msgspec.ValidationError:
        raise Refused(reasons.UNSUPPORTED, f"{name.replace('data', 'DataBase64')} is not base64") from None

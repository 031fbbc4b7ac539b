"""What an instance mounts and therefore waits for: Secrets, ConfigMaps, claims and DataVolumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.volumes import CloudInitSource, Volume
from herder.rules.plans import failing


class Needs(msgspec.Struct, frozen=True):
    """Names in the instance's namespace, in the order of its volumes."""

    secrets: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    data_volumes: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """What there is of it."""

    secrets: frozenset[str] = frozenset()
    config_maps: frozenset[str] = frozenset()
    claims: Mapping[str, PersistentVolumeClaim] = {}
    data_volumes: Mapping[str, DataVolume] = {}


class Missing(msgspec.Struct, frozen=True):
    reason: str
    message: str


def needs_of(spec: VirtualMachineInstanceSpec) -> Needs:
    volumes = spec.volumes or ()
    return Needs(
        secrets=_names(name for volume in volumes for name in _secrets(volume)),
        config_maps=_names(name for volume in volumes for name in _config_maps(volume)),
        claims=_names(volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim),
        data_volumes=_names(volume.data_volume.name for volume in volumes if volume.data_volume),
    )


def missing(needs: Needs, found: Found) -> Missing | None:
    """The first thing that is not there yet, in a sentence for the instance's condition. What never will be is said before what may
    still come."""
    for volume in (found.data_volumes[name] for name in needs.data_volumes if name in found.data_volumes):
        if why := failed_for_good(volume):
            return Missing(reasons.DATA_VOLUME_FAILED, why)
    for name in needs.secrets:
        if name not in found.secrets:
            return Missing(reasons.MISSING_SECRET, f"waits for Secret {name}, which does not exist")
    for name in needs.config_maps:
        if name not in found.config_maps:
            return Missing(reasons.MISSING_CONFIG_MAP, f"waits for ConfigMap {name}, which does not exist")
    for name in needs.data_volumes:
        if problem := _data_volume_missing(name, found):
            return problem
    for name in needs.claims:
        if name not in found.claims:
            return Missing(reasons.MISSING_CLAIM, f"waits for PersistentVolumeClaim {name}, which does not exist")
    return None


def failed_for_good(volume: DataVolume) -> str:
    """Of a DataVolume that is not tried again, which and why, in a sentence; empty of any other."""
    status = volume.status
    if status is None or status.phase != "Failed":
        return ""
    return f"DataVolume {volume.name} failed for good: {status.message or status.reason or 'nobody says why'}"


def _data_volume_missing(name: str, found: Found) -> Missing | None:
    """A claim of that name without a DataVolume will do: the DataVolume may be gone once its work was done."""
    volume = found.data_volumes.get(name)
    if volume is None:
        if name in found.claims:
            return None
        return Missing(reasons.MISSING_DATA_VOLUME, f"waits for DataVolume {name}, which does not exist")
    phase = (volume.status.phase if volume.status else None) or "Pending"
    if phase == "Succeeded" or phase == "WaitForFirstConsumer":
        return None
    progress = (volume.status.progress if volume.status else None) or "N/A"
    fails = failing(volume.status.conditions if volume.status else None)
    if fails is not None:
        return Missing(reasons.DATA_VOLUME_ERROR, f"DataVolume {name}: {phase}: {fails.message or fails.reason}")
    return Missing(reasons.WAITING_FOR_DATA_VOLUME, f"waits for DataVolume {name}: {phase}, {progress}")


def claims_of(needs: Needs) -> tuple[str, ...]:
    """All claims that are mounted: a DataVolume's has its name."""
    return _names((*needs.claims, *needs.data_volumes))


def _secrets(volume: Volume) -> Iterable[str]:
    if volume.secret is not None and not volume.secret.optional:
        yield volume.secret.secret_name
    if volume.sysprep is not None and volume.sysprep.secret is not None:
        yield volume.sysprep.secret.name
    for source in (volume.cloud_init_no_cloud, volume.cloud_init_config_drive):
        yield from cloud_init_secrets(source)


def cloud_init_secrets(source: CloudInitSource | None) -> Iterable[str]:
    for reference in (source.secret_ref, source.network_data_secret_ref) if source is not None else ():
        if reference is not None:
            yield reference.name


def _config_maps(volume: Volume) -> Iterable[str]:
    if volume.config_map is not None and not volume.config_map.optional:
        yield volume.config_map.name
    if volume.sysprep is not None and volume.sysprep.config_map is not None:
        yield volume.sysprep.config_map.name


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

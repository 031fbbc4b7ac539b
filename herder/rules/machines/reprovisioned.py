"""Which DataVolumes of a machine are made again before its next start: those that somebody asked for and that differ from their
templates (seed 003: an image that is refreshed by a rollout).

Asked for by name, and done only where volume and template differ: to look twice wipes nothing twice. What is done is asked for no
longer: a template that somebody changes by hand later wipes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.kinds import DataVolume, VirtualMachine
from herder.api.kinds.data_volume import ClaimSpec, DataVolumeSpec
from herder.api.quantity import parse_quantity


def to_reprovision(machine: VirtualMachine, volumes: Mapping[str, DataVolume]) -> tuple[DataVolume, ...]:
    """Only its own. One that is being deleted already is among them, so that nothing starts with it."""
    asked = _asked(machine)
    own = (volumes[name] for name in asked if name in volumes)
    return tuple(one for one in own if one.controller_uid == machine.uid and differs(one.spec, asked[one.name]))


def is_reprovisioned(machine: VirtualMachine, volumes: Mapping[str, DataVolume]) -> bool:
    """All that was asked for is there, is its own, and is as its template says: the request may go."""
    if labels.REPROVISION not in machine.annotations or machine.being_deleted or to_reprovision(machine, volumes):
        return False
    return all(name in volumes and volumes[name].controller_uid == machine.uid for name in _asked(machine))


def _asked(machine: VirtualMachine) -> dict[str, DataVolumeSpec]:
    """Of those that the machine has: what their templates say."""
    names = {name.strip() for name in machine.annotations.get(labels.REPROVISION, "").split(",")}
    return {one.metadata.name: one.spec for one in machine.spec.data_volume_templates or () if one.metadata.name in names}


def differs(is_: DataVolumeSpec, wanted: DataVolumeSpec) -> bool:
    """In more than the size: a volume that is too small is grown."""
    return _without_size(is_) != _without_size(wanted) or _size(is_) > _size(wanted)


def _without_size(spec: DataVolumeSpec) -> DataVolumeSpec:
    return msgspec.structs.replace(spec, pvc=_sizeless(spec.pvc), storage=_sizeless(spec.storage))


def _sizeless(claim: ClaimSpec | None) -> ClaimSpec | None:
    return None if claim is None else msgspec.structs.replace(claim, resources=None)


def _size(spec: DataVolumeSpec) -> int:
    return max(map(_requested, _claims(spec)), default=0)


def _claims(spec: DataVolumeSpec) -> Iterable[ClaimSpec]:
    return (one for one in (spec.pvc, spec.storage) if one is not None)


def _requested(claim: ClaimSpec) -> int:
    requests = (claim.resources.requests if claim.resources else None) or {}
    try:
        return parse_quantity(requests.get("storage", 0)).value()
    except (ValueError, TypeError):
        return 0

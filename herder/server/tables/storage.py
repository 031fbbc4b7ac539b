"""The tables of volumes, claims, storage classes, secrets and config maps."""

from __future__ import annotations

from typing import Any

from herder.server.tables.ages import age
from herder.server.tables.columns import AGE, NAME, Printer, created, name_of, part, text, wide

UNSET = "<unset>"
OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
DEFAULT_ANNOTATIONS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def print_claim(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    volume = spec.get("volumeName", "")
    return [
        name_of(obj),
        _phase(obj, status),
        volume,
        part(status, "capacity").get("storage", "0") if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class(obj, spec),
        _or_unset(spec.get("volumeAttributesClassName")),
        age(created(obj), now),
        _or_unset(spec.get("volumeMode")),
    ]


def print_volume(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj, status),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj, spec),
        _or_unset(spec.get("volumeAttributesClassName")),
        status.get("reason", ""),
        age(created(obj), now),
        _or_unset(spec.get("volumeMode")),
    ]


def print_class(obj: dict[str, Any], now: float) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in DEFAULT_ANNOTATIONS)
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion") or False,
        age(created(obj), now),
    ]


def print_secret(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age(created(obj), now)]


def print_config_map(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(created(obj), now)]


def _phase(obj: dict[str, Any], status: dict[str, Any]) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")


def _modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in MODES.items() if mode in (modes or ()))


def _class(obj: dict[str, Any], spec: dict[str, Any]) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(OLD_CLASS_ANNOTATION, spec.get("storageClassName") or "")


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value


_CAPACITY = text("Capacity", "How much it holds.")
_MODES = text("Access Modes", "How it may be mounted.")
_CLASS = text("StorageClass", "Kind of storage.")
_ATTRIBUTES = text("VolumeAttributesClass", "Named settings of the volume.")
_VOLUME_MODE = wide("VolumeMode", "File system or raw block device.")

CLAIMS = Printer(
    (
        NAME,
        text("Status", "Whether a volume was found."),
        text("Volume", "The volume that was found."),
        _CAPACITY,
        _MODES,
        _CLASS,
        _ATTRIBUTES,
        AGE,
        _VOLUME_MODE,
    ),
    print_claim,
)
VOLUMES = Printer(
    (
        NAME,
        _CAPACITY,
        _MODES,
        text("Reclaim Policy", "What becomes of it once it is released."),
        text("Status", "Whether it is available, bound or released."),
        text("Claim", "The claim that has it."),
        _CLASS,
        _ATTRIBUTES,
        text("Reason", "Why it failed, in one word."),
        AGE,
        _VOLUME_MODE,
    ),
    print_volume,
)
CLASSES = Printer(
    (
        NAME,
        text("Provisioner", "Who makes the volumes."),
        text("ReclaimPolicy", "What becomes of released volumes."),
        text("VolumeBindingMode", "When a volume is made."),
        text("AllowVolumeExpansion", "Whether volumes may grow."),
        AGE,
    ),
    print_class,
)
SECRETS = Printer((NAME, text("Type", "What kind of secret it is."), text("Data", "Number of keys."), AGE), print_secret)
CONFIG_MAPS = Printer((NAME, text("Data", "Number of keys."), AGE), print_config_map)

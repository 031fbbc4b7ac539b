"""A VirtualMachineInstance made complete, so that what runs is what the object says.

A VirtualMachine's template is left as the user wrote it: each instance is completed when it is made.
"""

from __future__ import annotations

from typing import Any

from herder.api import defaults
from herder.api.reading import entries, part, text

Json = dict[str, Any]
_BUS = {"disk": "virtio", "cdrom": "sata", "lun": "scsi"}


def default_instance(instance: Json) -> None:
    spec = _object(instance, "spec")
    spec.setdefault("terminationGracePeriodSeconds", defaults.TERMINATION_GRACE_PERIOD_SECONDS)
    domain = _object(spec, "domain")
    _default_cpu(_object(domain, "cpu"))
    _default_memory(domain)
    _default_disks(spec)
    _default_network(spec)


def _object(parent: Json, name: str) -> Json:
    if not isinstance(parent.get(name), dict):
        parent[name] = {}
    return parent[name]


def _list(parent: Json, name: str) -> list[Json]:
    if not isinstance(parent.get(name), list):
        parent[name] = []
    return parent[name]


def _default_cpu(cpu: Json) -> None:
    for name in ("sockets", "cores", "threads"):
        cpu.setdefault(name, 1)
    cpu.setdefault("model", defaults.GUEST_CPU_MODEL)


def _default_memory(domain: Json) -> None:
    asked = part(domain, "resources", "requests").get("memory")
    most = part(domain, "resources", "limits").get("memory")
    _object(domain, "memory").setdefault("guest", asked or most or defaults.GUEST_MEMORY)


def _default_disks(spec: Json) -> None:
    """Every volume is shown as a disk, except the one that only holds the kernel."""
    kernel = text(part(spec, "domain", "firmware", "kernelBoot", "volume"), "name")
    names = [text(volume, "name") for volume in entries(spec, "volumes") if text(volume, "name") != kernel]
    shown = {text(disk, "name") for disk in entries(spec, "domain", "devices", "disks")}
    missing = [name for name in names if name not in shown]
    if missing:
        _list(_object(spec["domain"], "devices"), "disks").extend({"name": name} for name in missing)
    for disk in entries(spec, "domain", "devices", "disks"):
        _default_bus(disk)


def _default_bus(disk: Json) -> None:
    target = next((name for name in _BUS if isinstance(disk.get(name), dict)), "disk")
    _object(disk, target).setdefault("bus", _BUS[target])


def _default_network(spec: Json) -> None:
    devices = _object(spec["domain"], "devices")
    if devices.get("autoattachPodInterface") is not False and not spec.get("networks") and not devices.get("interfaces"):
        spec["networks"] = [{"name": "default", "pod": {}}]
        devices["interfaces"] = [{"name": "default", "masquerade": {}}]
    for card in entries(devices, "interfaces"):
        if "bridge" not in card:
            card.setdefault("masquerade", {})
        card.setdefault("model", "virtio")

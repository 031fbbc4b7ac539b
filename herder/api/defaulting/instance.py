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
    spec = part(instance, "spec")
    if not isinstance(spec.get("domain"), dict):
        # It has to be written: what is made up here would be answered with a sentence about something else.
        return
    spec.setdefault("terminationGracePeriodSeconds", defaults.TERMINATION_GRACE_PERIOD_SECONDS)
    domain: Json = spec["domain"]
    _default_cpu(_object(domain, "cpu"))
    _default_memory(domain)
    devices = _object(domain, "devices")
    _default_disks(spec, devices)
    _default_network(spec, devices)


# Defaults come before the schema is asked: what is of the wrong type stays, so that the schema refuses it and nobody loses a value.


def _object(parent: Json, name: str) -> Json:
    if parent.get(name) is None:
        parent[name] = {}
    return parent[name] if isinstance(parent[name], dict) else {}


def _list(parent: Json, name: str) -> list[Json]:
    if parent.get(name) is None:
        parent[name] = []
    return parent[name] if isinstance(parent[name], list) else []


def _default_cpu(cpu: Json) -> None:
    for name in ("sockets", "cores", "threads"):
        cpu.setdefault(name, 1)
    cpu.setdefault("model", defaults.GUEST_CPU_MODEL)


def _default_memory(domain: Json) -> None:
    asked = part(domain, "resources", "requests").get("memory")
    most = part(domain, "resources", "limits").get("memory")
    _object(domain, "memory").setdefault("guest", asked or most or defaults.GUEST_MEMORY)


def _default_disks(spec: Json, devices: Json) -> None:
    """Every volume is shown as a disk, except the one that only holds the kernel."""
    kernel = text(part(spec, "domain", "firmware", "kernelBoot", "volume"), "name")
    names = [text(volume, "name") for volume in entries(spec, "volumes") if text(volume, "name") != kernel]
    shown = {text(disk, "name") for disk in entries(devices, "disks")}
    missing = [name for name in names if name not in shown]
    if missing:
        _list(devices, "disks").extend({"name": name} for name in missing)
    for disk in entries(devices, "disks"):
        _default_bus(disk)


def _default_bus(disk: Json) -> None:
    target = next((name for name in _BUS if isinstance(disk.get(name), dict)), "disk")
    _object(disk, target).setdefault("bus", _BUS[target])


def _default_network(spec: Json, devices: Json) -> None:
    unsaid = spec.get("networks") in (None, []) and devices.get("interfaces") in (None, [])
    if unsaid and devices.get("autoattachPodInterface") is not False:
        spec["networks"] = [{"name": "default", "pod": {}}]
        devices["interfaces"] = [{"name": "default", "masquerade": {}}]
    for card in entries(devices, "interfaces"):
        if "bridge" not in card:
            card.setdefault("masquerade", {})
        card.setdefault("model", "virtio")

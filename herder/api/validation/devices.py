"""Disks, volumes, cards and networks of a guest: what one of them says about another."""

from __future__ import annotations

import base64
import binascii

from herder.api.problems import Problem, duplicate, invalid, required
from herder.api.reading import Json, entries, indexed, part, positive_bytes, text

_CLOUD_INIT = ("cloudInitNoCloud", "cloudInitConfigDrive")
_DATA_FIELDS = ("userData", "userDataBase64", "secretRef", "networkData", "networkDataBase64", "networkDataSecretRef")


def device_problems(spec: Json, path: str) -> list[Problem]:
    devices = part(spec, "domain", "devices")
    place = f"{path}.domain.devices"
    problems = _reference_problems(spec, path)
    problems += _network_problems(spec, path)
    problems += _boot_order_problems(devices, place)
    problems += _probe_problems(spec, path)
    for where, volume in indexed(spec, "volumes"):
        problems += _volume_problems(volume, f"{path}.{where}")
    return problems


def _names(spec: Json, *path: str) -> list[str]:
    return [text(one, "name") for one in entries(spec, *path)]


def _there_is_no(what: str, names: list[str]) -> str:
    return f"there is no {what} of this name: {what}s has {', '.join(names) or 'no entry'}"


def _reference_problems(spec: Json, path: str) -> list[Problem]:
    """Every disk, and the kernel, must name a volume."""
    volumes = _names(spec, "volumes")
    named = [(f"{place}.name", text(disk, "name")) for place, disk in indexed(spec, "domain", "devices", "disks")]
    kernel = part(spec, "domain", "firmware", "kernelBoot", "volume")
    if kernel:
        named.append(("domain.firmware.kernelBoot.volume.name", text(kernel, "name")))
    message = _there_is_no("volume", volumes)
    return [invalid(f"{path}.{place}", name, message) for place, name in named if name not in volumes]


def _network_problems(spec: Json, path: str) -> list[Problem]:
    """Cards and networks belong together by name, one to one."""
    networks, cards = _names(spec, "networks"), _names(spec, "domain", "devices", "interfaces")
    problems: list[Problem] = []
    for place, card in indexed(spec, "domain", "devices", "interfaces"):
        if text(card, "name") not in networks:
            problems.append(invalid(f"{path}.{place}.name", text(card, "name"), _there_is_no("network", networks)))
    for place, network in indexed(spec, "networks"):
        if text(network, "name") not in cards:
            message = "no interface is on this network: add one of the same name to domain.devices.interfaces"
            problems.append(invalid(f"{path}.{place}.name", text(network, "name"), message))
    return problems


def _boot_order_problems(devices: Json, path: str) -> list[Problem]:
    seen: set[int] = set()
    problems: list[Problem] = []
    for place, device in [*indexed(devices, "disks"), *indexed(devices, "interfaces")]:
        order = device.get("bootOrder")
        if order is not None and order in seen:
            problems.append(duplicate(f"{path}.{place}.bootOrder", order))
        if order is not None:
            seen.add(order)
    return problems


def _probe_problems(spec: Json, path: str) -> list[Problem]:
    """A port that a probe asks is a number, or the name that a card gives it."""
    named = [text(port, "name") for card in entries(spec, "domain", "devices", "interfaces") for port in entries(card, "ports")]
    problems: list[Problem] = []
    for probe in ("livenessProbe", "readinessProbe"):
        for way in ("httpGet", "tcpSocket"):
            port = part(spec, probe, way).get("port")
            where = f"{path}.{probe}.{way}.port"
            if isinstance(port, str) and port.isdigit():
                if not 1 <= int(port) <= 65535:
                    problems.append(invalid(where, port, "must be a port number from 1 to 65535"))
            elif isinstance(port, str) and port not in named:
                names = ", ".join(name for name in named if name) or "none"
                problems.append(
                    invalid(where, port, f"no port of an interface has this name: ports of interfaces are called {names}")
                )
    return problems


def _volume_problems(volume: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    positive_bytes(part(volume, "emptyDisk"), "capacity", f"{path}.emptyDisk", problems)
    for name in _CLOUD_INIT:
        if name in volume:
            problems += _cloud_init_problems(part(volume, name), f"{path}.{name}")
    return problems


def _cloud_init_problems(source: Json, path: str) -> list[Problem]:
    if not any(field in source for field in _DATA_FIELDS):
        return [required(path, f"must have user data or network data: one of {', '.join(_DATA_FIELDS)}")]
    problems: list[Problem] = []
    for name in ("userDataBase64", "networkDataBase64"):
        if name in source and not _is_base64(text(source, name)):
            problems.append(invalid(f"{path}.{name}", source[name], "must be base64: use the field without Base64 for plain text"))
    return problems


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True

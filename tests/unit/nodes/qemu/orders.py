"""Orders and a host to try them on, without any QEMU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from herder.api.guest import GuestDefinition, Started
from herder.nodes.runtimes.base import Order, Volume
from herder.nodes.runtimes.qemu.blueprint import DiskPlan, draw
from herder.nodes.runtimes.qemu.command import ConsoleFiles, Fittings, Image, command_line
from herder.nodes.runtimes.qemu.facts import Facts

FACTS = Facts(
    program="qemu-system-x86_64",
    version="10.0.2",
    accelerator="tcg",
    machine_types={"q35": "pc-q35-10.0", "pc": "pc-i440fx-10.0", "pc-q35-10.0": "pc-q35-10.0", "pc-i440fx-10.0": "pc-i440fx-10.0"},
    models={"Westmere": (), "Nehalem": (), "EPYC": ("fxsr-opt", "tsc-deadline")},
    features=("aes", "avx", "pcid", "sse4.2"),
    vendor="Intel",
    host_model="Westmere",
    host_model_features=("avx", "pcid"),
)


def order(spec: dict[str, Any] | None = None, volumes: dict[str, Volume] | None = None, incoming: Started | None = None) -> Order:
    document = {
        "instance": {"namespace": "shop", "name": "web", "uid": "0000-1111"},
        "spec": {"domain": {"memory": {"guest": "64Mi"}}, **(spec or {})},
    }
    definition = msgspec.convert(document, GuestDefinition)
    return Order("pod-1", msgspec.structs.replace(definition, incoming=incoming), volumes or {})


def command(spec: dict[str, Any] | None = None, volumes: dict[str, Volume] | None = None, **fitted: Any) -> list[str]:
    """The command line, with descriptors from 20 on for disks."""
    facts: Facts = fitted.pop("facts", FACTS)
    blueprint = draw(order(spec, volumes), facts)
    disks = {disk.volume: _image(20 + number, disk) for number, disk in enumerate(blueprint.disks)}
    return command_line(blueprint, Fittings(qmp=10, console=ConsoleFiles(12, 11, 13), disks=disks, **fitted), facts)


def _image(descriptor: int, disk: DiskPlan) -> Image:
    return Image(descriptor=descriptor, format="raw", read_only=disk.read_only, direct=True)


def values(line: list[str], option: str) -> list[str]:
    """What follows each time that this option is given."""
    return [after for before, after in pairwise(line) if before == option]

"""A blueprint and what was opened for it → QEMU's command line. Pure: numbers of descriptors come in as they are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from herder.nodes.runtimes.qemu import cpu
from herder.nodes.runtimes.qemu.blueprint import Blueprint, CardPlan, DiskPlan
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.guest_agent import PORT

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
# What guests get only when they ask for it. The board's own controllers are off, so that q35 and pc have the same ones.
BOARD = "usb=off,vmport=off,hpet=off,smbus=off,sata=off,smm=off,dump-guest-core=off"
DISKS_PER_SATA = 6
# What the nodes of guests' disks are called in QEMU, with a number.
DISK = "disk"
# A guest that finds its disk full is stopped before it hears of it, and can go on; all other errors are its own to handle.
ON_ERROR = {"werror": "enospc", "rerror": "report"}


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An open disk image. QEMU never opens one by its name: what was checked is what is used."""

    descriptor: int
    format: str  # raw or qcow2
    read_only: bool = False
    direct: bool = False


class ConsoleFiles(msgspec.Struct, frozen=True):
    """What QEMU writes to, what it reads from, and the other end of that."""

    log: int
    keys: int | None = None
    held: int | None = None


class Fittings(msgspec.Struct, frozen=True, kw_only=True):
    """What was opened and chosen for one start."""

    qmp: int
    console: ConsoleFiles | None = None
    guest_agent: int | None = None
    disks: dict[str, Image] = msgspec.field(default_factory=dict)
    kernel: int | None = None
    initrd: int | None = None
    efi: tuple[Image, Image] | None = None
    memory: int | None = None  # saved earlier, to go on from
    address: str = "127.0.0.1"
    ports: dict[int, int] = msgspec.field(default_factory=dict)
    incoming: bool = False
    paused: bool = False
    now: float = 0.0

    def descriptors(self) -> tuple[int, ...]:
        """All that QEMU inherits."""
        console = () if self.console is None else (self.console.log, self.console.keys, self.console.held)
        single = (self.qmp, *console, self.guest_agent, self.kernel, self.initrd, self.memory)
        images = (*self.disks.values(), *(self.efi or ()))
        return tuple(dict.fromkeys([*(one for one in single if one is not None), *(image.descriptor for image in images)]))


def command_line(blueprint: Blueprint, fittings: Fittings, facts: Facts) -> list[str]:
    return [
        facts.program,
        *("-nodefaults", "-no-user-config", "-display", "none", "-name", f"guest={_escaped(blueprint.name)}"),
        *("-sandbox", SANDBOX),
        *_board(blueprint, fittings),
        *_control(blueprint, fittings),
        *_boot(blueprint, fittings),
        *_disks(blueprint, fittings),
        *_network(blueprint, fittings),
        *_extras(blueprint),
        *_guest_agent(fittings),
    ]


def shape_of(command: list[str]) -> dict[str, str]:
    """What QEMU takes for granted that both sides of a move have alike, and never compares. Devices in their order: it gives them
    their places."""
    options = list(itertools.pairwise(command))
    words = {name.removeprefix("-"): value for name, value in options if name in ("-machine", "-accel", "-cpu", "-smp", "-m")}
    words["memory"] = words.pop("m")
    devices = " ".join(value for name, value in options if name in ("-device", "-serial"))
    words["devices"] = devices.replace(f",{_json(ON_ERROR)[1:-1]}", "")  # the guest sees nothing of that
    disks = disks_of(json.loads(value) for name, value in options if name == "-blockdev")
    return words | ({"disks": disks} if disks else {})


def disks_of(nodes: Iterable[dict[str, Any]]) -> str:
    """The guest's disks, each with its format: a disk that is raw here and qcow2 there would be torn to pieces."""
    formats = {str(node.get("node-name", "")): node.get("drv") or node.get("driver") for node in nodes}
    return " ".join(f"{name}={formats[name]}" for name in sorted(formats) if name.startswith(DISK))


def _board(blueprint: Blueprint, fittings: Fittings) -> Iterator[str]:
    started = blueprint.started
    machine = f"{started.machine_type},{BOARD}"
    machine += "" if blueprint.acpi else ",acpi=off"
    machine += ",graphics=off" if blueprint.bios_console else ""
    machine += ",pflash0=efi-code,pflash1=efi-variables" if fittings.efi else ""
    yield from ("-machine", machine, "-accel", started.accelerator)
    if started.cpu is not None:
        yield from ("-cpu", cpu.option(started.cpu))
        sockets, cores, threads = started.cpu.sockets or 1, started.cpu.cores or 1, started.cpu.threads or 1
        yield from ("-smp", f"{sockets * cores * threads},sockets={sockets},cores={cores},threads={threads}")
    yield from ("-m", f"{started.memory_bytes // 1024}K", "-uuid", blueprint.uuid)
    if blueprint.serial:
        yield from ("-smbios", f"type=1,serial={_escaped(blueprint.serial)}")
    yield from ("-rtc", f"base={_clock(blueprint, fittings.now)}")


def _clock(blueprint: Blueprint, now: float) -> str:
    """A zone is QEMU's own, set in its environment."""
    if blueprint.timezone:
        return "localtime"
    if not blueprint.clock_offset:
        return "utc"
    return datetime.fromtimestamp(int(now) + blueprint.clock_offset, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _control(blueprint: Blueprint, fittings: Fittings) -> Iterator[str]:
    """A guest that has ended stays where it ended: whoever comes, even after a crash of the agent, can see how."""
    watchdog = f",watchdog={blueprint.watchdog}" if blueprint.watchdog else ""
    yield from ("-action", f"shutdown=pause,panic=pause,reboot=reset{watchdog}")
    yield from ("-chardev", f"socket,id=qmp,fd={fittings.qmp},server=on,wait=off", "-mon", "chardev=qmp,mode=control")
    if fittings.console is not None:
        yield from _console(fittings.console)
    if fittings.memory is not None:
        yield from _set(fittings.memory)
    if fittings.incoming or fittings.memory is not None:
        yield from ("-incoming", "defer")
    if fittings.incoming or fittings.paused or fittings.memory is not None:
        yield "-S"


def _console(files: ConsoleFiles) -> Iterator[str]:
    keys = ""
    yield from _set(files.log)
    if files.keys is not None:
        yield from _set(files.keys)
        keys = f",input-path={_path(files.keys)}"
    yield from ("-chardev", f"file,id=console,path={_path(files.log)},append=on{keys}", "-serial", "chardev:console")


def _boot(blueprint: Blueprint, fittings: Fittings) -> Iterator[str]:
    if fittings.kernel is not None:
        yield from ("-kernel", f"/proc/self/fd/{fittings.kernel}")
        if fittings.initrd is not None:
            yield from ("-initrd", f"/proc/self/fd/{fittings.initrd}")
        if blueprint.kernel is not None and blueprint.kernel.arguments:
            yield from ("-append", blueprint.kernel.arguments)
    for name, image in zip(("efi-code", "efi-variables"), fittings.efi or (), strict=False):
        yield from _set(image.descriptor)
        yield from ("-blockdev", _blockdev(name, image, DiskPlan(volume=name, bus="", cache="writeback")))


def _disks(blueprint: Blueprint, fittings: Fittings) -> Iterator[str]:
    taken = {"sata": 0, "scsi": 0, "usb": 0}
    for number, disk in enumerate(blueprint.disks):
        image = fittings.disks[disk.volume]
        place = taken.get(disk.bus, 0)
        yield from _controller(disk.bus, place)
        yield from _set(image.descriptor)
        yield from ("-blockdev", _blockdev(f"{DISK}{number}", image, disk))
        yield from ("-device", _json(_device(number, disk, image, place)))
        if disk.bus in taken:
            taken[disk.bus] += 1


def _controller(bus: str, place: int) -> Iterator[str]:
    if bus == "sata" and place % DISKS_PER_SATA == 0:
        yield from ("-device", f"ich9-ahci,id=sata{place // DISKS_PER_SATA}")
    elif bus == "scsi" and place == 0:
        yield from ("-device", "virtio-scsi-pci,id=scsi0")
    elif bus == "usb" and place == 0:
        yield from ("-device", "qemu-xhci,id=usb0")


def _blockdev(name: str, image: Image, disk: DiskPlan) -> str:
    cache = {"direct": image.direct, "no-flush": False}
    file: dict[str, Any] = {"driver": "file", "filename": _path(image.descriptor), "read-only": image.read_only, "cache": cache}
    if disk.io in ("native", "threads"):
        file["aio"] = disk.io
    if not image.read_only:
        file["discard"] = "unmap"
    node: dict[str, Any] = {"driver": image.format, "node-name": name, "read-only": image.read_only, "cache": cache, "file": file}
    if image.format == "qcow2":
        node["backing"] = None  # whatever its header says by now
    return _json(node if image.read_only else node | {"discard": "unmap"})


def _device(number: int, disk: DiskPlan, image: Image, place: int) -> dict[str, Any]:
    about: dict[str, Any] = {"drive": f"{DISK}{number}", "id": f"drive{number}"}
    if disk.bus == "virtio":
        about["driver"] = "virtio-blk-pci"
    elif disk.bus == "usb":
        about |= {"driver": "usb-storage", "bus": "usb0.0", "removable": disk.cdrom}
    elif disk.bus == "scsi":
        about |= {"driver": "scsi-cd" if disk.cdrom else "scsi-hd", "bus": "scsi0.0", "scsi-id": place}
    else:
        bus = f"sata{place // DISKS_PER_SATA}.{place % DISKS_PER_SATA}"
        about |= {"driver": "ide-cd" if disk.cdrom else "ide-hd", "bus": bus}
    if disk.serial:
        about["serial"] = disk.serial
    if disk.boot_index is not None:
        about["bootindex"] = disk.boot_index
    if not image.read_only:
        about |= ON_ERROR
    if disk.cache == "writethrough" and not image.read_only:
        about["write-cache"] = "off"
    return about


def _network(blueprint: Blueprint, fittings: Fittings) -> Iterator[str]:
    """Ports are those of the first card."""
    for number, card in enumerate(blueprint.cards):
        forwarded = "".join(
            f",hostfwd={protocol}:{fittings.address}:{fittings.ports.get(port, port)}-:{port}" for protocol, port in blueprint.ports
        )
        yield from ("-netdev", f"user,id=net{number}{forwarded if number == 0 else ''}")
        yield from ("-device", _json(_card(number, card)))


def _card(number: int, card: CardPlan) -> dict[str, Any]:
    about: dict[str, Any] = {"driver": card.device, "netdev": f"net{number}", "id": f"card{number}", "mac": card.mac}
    # Its boot ROM costs time at each boot, and need not be installed.
    return about | ({"romfile": ""} if card.boot_index is None else {"bootindex": card.boot_index})


def _extras(blueprint: Blueprint) -> Iterator[str]:
    yield from ("-device", "pvpanic")
    if blueprint.rng:
        yield from ("-object", "rng-builtin,id=random", "-device", "virtio-rng-pci,rng=random")
    if blueprint.watchdog:
        yield from ("-device", "i6300esb")
    if blueprint.balloon:
        yield from ("-device", "virtio-balloon-pci")
    if blueprint.graphics:
        yield from ("-device", "VGA")


def _guest_agent(fittings: Fittings) -> Iterator[str]:
    if fittings.guest_agent is not None:
        yield from ("-chardev", f"socket,id=agent,fd={fittings.guest_agent},server=on,wait=off")
        yield from ("-device", "virtio-serial-pci,id=serial", "-device", f"virtserialport,bus=serial.0,chardev=agent,name={PORT}")


def _set(descriptor: int) -> Iterator[str]:
    yield from ("-add-fd", f"fd={descriptor},set={descriptor}")


def _path(descriptor: int) -> str:
    return f"/dev/fdset/{descriptor}"


def _json(document: dict[str, Any]) -> str:
    """QEMU reads JSON where names may hold commas."""
    return json.dumps(document, separators=(",", ":"))


def _escaped(text: str) -> str:
    return text.replace(",", ",,")

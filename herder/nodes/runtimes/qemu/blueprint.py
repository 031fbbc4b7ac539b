"""An order and the facts of the node → what is to be built, without touching anything. All refusals that need no file are here."""

from __future__ import annotations

import hashlib
import uuid

import msgspec

from herder.api import reasons
from herder.api.guest import GuestDefinition, Started
from herder.api.kinds.domain import Devices, Disk, Interface
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.probes import Probe
from herder.nodes.runtimes.base import EmptyVolume, Order, Refused
from herder.nodes.runtimes.qemu import cpu, refusals
from herder.nodes.runtimes.qemu.facts import Facts
from herder.rules.instances.launcher import guest_memory

DEFAULT_MACHINE = "q35"
MEBIBYTE = 1 << 20
_NAMES = uuid.UUID("5f0bd0cf-21c9-4bb4-9d4c-6f6f1f9b0e11")


class DiskPlan(msgspec.Struct, frozen=True, kw_only=True):
    volume: str
    bus: str  # virtio, sata, scsi, usb
    cdrom: bool = False
    read_only: bool = False
    serial: str = ""
    cache: str = "none"
    io: str = ""
    boot_index: int | None = None


class CardPlan(msgspec.Struct, frozen=True, kw_only=True):
    device: str
    mac: str
    boot_index: int | None = None


class KernelPlan(msgspec.Struct, frozen=True, kw_only=True):
    volume: str
    kernel: str = ""  # path in the volume; all of it when empty
    initrd: str = ""
    arguments: str = ""


class Blueprint(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    started: Started
    disks: tuple[DiskPlan, ...] = ()
    cards: tuple[CardPlan, ...] = ()
    # Of the guest: (tcp or udp, port), reachable from the node.
    ports: tuple[tuple[str, int], ...] = ()
    kernel: KernelPlan | None = None
    uuid: str = ""
    serial: str = ""
    clock_offset: int | None = None
    timezone: str = ""
    acpi: bool = True
    efi: bool = False
    rng: bool = False
    watchdog: str = ""
    balloon: bool = True
    console: bool = True
    # A serial port for the guest agent, where a probe needs one.
    guest_agent: bool = False
    bios_console: bool = False
    graphics: bool = False
    not_migratable_because: str = ""


def draw(order: Order, facts: Facts) -> Blueprint:
    definition, spec = order.definition, order.definition.spec
    refusals.check(spec, facts)
    domain, devices = spec.domain, spec.domain.devices or Devices()
    firmware, clock = domain.firmware, domain.clock
    loader = firmware.bootloader if firmware else None
    return Blueprint(
        name=f"{definition.instance.namespace}/{definition.instance.name}",
        started=_started(definition, facts),
        disks=_disks(devices, order),
        cards=tuple(_card(one, definition) for one in _interfaces(spec, devices)),
        ports=_ports(spec, devices),
        kernel=_kernel(spec, order),
        uuid=(firmware.uuid if firmware else None) or str(uuid.uuid5(_NAMES, _identity(definition))),
        serial=(firmware.serial if firmware else None) or "",
        clock_offset=clock.utc.offset_seconds if clock and clock.utc else None,
        timezone=(clock.timezone if clock else None) or "",
        acpi=not (domain.features and domain.features.acpi and domain.features.acpi.enabled is False),
        efi=loader is not None and loader.efi is not None,
        rng=devices.rng is not None,
        watchdog=(devices.watchdog.action or "reset") if devices.watchdog else "",
        balloon=devices.autoattach_mem_balloon is not False,
        console=devices.autoattach_serial_console is not False,
        guest_agent=any(one.exec_ is not None or one.guest_agent_ping is not None for one in _probes(spec)),
        bios_console=bool(loader and loader.bios and loader.bios.use_serial),
        graphics=bool(devices.autoattach_graphics_device),
        not_migratable_because=_not_migratable(order),
    )


def _started(definition: GuestDefinition, facts: Facts) -> Started:
    """Where the guest comes in from elsewhere it is what it was there, or nothing."""
    if definition.incoming is not None:
        return _as_told(definition.incoming, facts)
    domain = definition.spec.domain
    return Started(
        machine_type=_machine_type((domain.machine.type if domain.machine else None) or DEFAULT_MACHINE, facts),
        accelerator=facts.accelerator,
        runtime="qemu",
        cpu=cpu.resolve(domain.cpu, facts),
        memory_bytes=_memory(definition.spec),
    )


def _as_told(started: Started, facts: Facts) -> Started:
    if started.runtime != "qemu":
        raise Refused(reasons.UNSUPPORTED, f"the guest was started by the runtime {started.runtime}, this node runs qemu")
    if started.accelerator != facts.accelerator:
        was = started.accelerator or "none"
        raise Refused(reasons.UNSUPPORTED, f"the guest was started with accelerator {was}, this node has {facts.accelerator}")
    if started.machine_type not in facts.machine_types.values():
        raise Refused(reasons.UNSUPPORTED, f"the guest's machine type {started.machine_type} is not known to QEMU {facts.version}")
    if started.cpu is None or not started.memory_bytes:
        raise Refused(reasons.UNSUPPORTED, "it is not said which CPU and how much memory the guest was started with")
    cpu.check(started.cpu, facts)
    return started


def _machine_type(wanted: str, facts: Facts) -> str:
    found = facts.machine_types.get(wanted)
    if found is None:
        known = ", ".join(sorted(facts.machine_types))
        raise Refused(reasons.UNSUPPORTED, f"domain.machine.type: {wanted} is not known to QEMU {facts.version}; known are {known}")
    return found


def _memory(spec: VirtualMachineInstanceSpec) -> int:
    memory = guest_memory(spec).value()
    if memory < MEBIBYTE:
        raise Refused(reasons.UNSUPPORTED, f"domain.memory.guest: {memory} bytes are too little; at least 1Mi is needed")
    # QEMU takes multiples of its pages only.
    return memory // 4096 * 4096


def _disks(devices: Devices, order: Order) -> tuple[DiskPlan, ...]:
    disks = devices.disks or ()
    ordered = any(disk.boot_order for disk in disks) or any(card.boot_order for card in devices.interfaces or ())
    return tuple(_disk(disk, None if ordered else place, order) for place, disk in enumerate(disks, 1))


def _disk(disk: Disk, place: int | None, order: Order) -> DiskPlan:
    """Without any order of theirs the firmware tries them as they are written."""
    if disk.name not in order.volumes:
        raise Refused(reasons.UNSUPPORTED, f"domain.devices.disks: {disk.name} shows a volume of that name, and there is none")
    if disk.cdrom is not None:
        bus, read_only = disk.cdrom.bus or "sata", True
    else:
        bus = (disk.disk.bus if disk.disk else None) or "virtio"
        read_only = bool(disk.disk and disk.disk.readonly)
    return DiskPlan(
        volume=disk.name,
        bus=bus,
        cdrom=disk.cdrom is not None,
        read_only=read_only,
        serial=disk.serial or "",
        cache=disk.cache or "none",
        io=disk.io or "",
        boot_index=disk.boot_order or place,
    )


def _interfaces(spec: VirtualMachineInstanceSpec, devices: Devices) -> tuple[Interface, ...]:
    """A machine without any gets one, as people expect of it."""
    if devices.interfaces is None and not spec.networks and devices.autoattach_pod_interface is not False:
        return (Interface(name="default"),)
    return devices.interfaces or ()


def _card(card: Interface, definition: GuestDefinition) -> CardPlan:
    digest = hashlib.sha256(f"{_identity(definition)}/{card.name}".encode()).digest()
    made = ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))
    mac = (card.mac_address or made).replace("-", ":").lower()
    return CardPlan(device=refusals.CARDS[card.model or "virtio"], mac=mac, boot_index=card.boot_order)


def _identity(definition: GuestDefinition) -> str:
    """Follows from the name: the same at every start, and on every node."""
    return f"{definition.instance.namespace}/{definition.instance.name}"


def _ports(spec: VirtualMachineInstanceSpec, devices: Devices) -> tuple[tuple[str, int], ...]:
    """Those that are written, and those that probes ask."""
    written = [((port.protocol or "TCP").lower(), port.port) for card in devices.interfaces or () for port in card.ports or ()]
    asked = [("tcp", port_of(probe, spec)) for probe in _probes(spec) if probe.http_get or probe.tcp_socket]
    return tuple(dict.fromkeys([*written, *asked]))


def _probes(spec: VirtualMachineInstanceSpec) -> list[Probe]:
    return [probe for probe in (spec.liveness_probe, spec.readiness_probe) if probe is not None]


def port_of(probe: Probe, spec: VirtualMachineInstanceSpec) -> int:
    """Ports have numbers, or names that an interface gives them."""
    action = probe.http_get or probe.tcp_socket
    wanted = action.port if action is not None else 0
    if isinstance(wanted, int) or wanted.isdigit():
        return int(wanted)
    devices = spec.domain.devices or Devices()
    for card in devices.interfaces or ():
        for port in card.ports or ():
            if port.name == wanted:
                return port.port
    raise Refused(reasons.UNSUPPORTED, f"a probe asks port {wanted}, and no interface has a port of that name")


def _kernel(spec: VirtualMachineInstanceSpec, order: Order) -> KernelPlan | None:
    boot = spec.domain.firmware.kernel_boot if spec.domain.firmware else None
    if boot is None or boot.volume is None:
        return None
    if boot.volume.name not in order.volumes:
        raise Refused(reasons.UNSUPPORTED, f"domain.firmware.kernelBoot.volume: there is no volume {boot.volume.name}")
    return KernelPlan(
        volume=boot.volume.name,
        kernel=boot.volume.kernel_path or "",
        initrd=boot.volume.initrd_path or "",
        arguments=boot.kernel_args or "",
    )


def _not_migratable(order: Order) -> str:
    for name, volume in order.volumes.items():
        if isinstance(volume, EmptyVolume):
            return f"volume {name} is an emptyDisk, which is on this node only"
    return ""

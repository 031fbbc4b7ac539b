"""The machine itself: processors, memory, firmware, clock and devices of one guest."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.views import (
    NAME,
    PRINTABLE,
    STAYS_INSIDE,
    WORD,
    ObjectName,
    Quantity,
    View,
    at_most_one,
    doc,
    exactly_one,
    spelled,
)

_NAME_LIMIT = 63

_UUID = spelled(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", "a UUID such as 5d307ca9-b3ef-428c-8861-06e72d69f223")
# It becomes the name of a file below the host's zones.
_ZONE = spelled(r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$", "the name of a time zone such as Europe/Berlin or UTC")
_PORT_NAME = spelled(r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", "a name of letters, digits and hyphens such as http")
_MAC = spelled(r"^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$", "a hardware address such as 02:00:00:00:00:01")
_RESOURCE = spelled(
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", "the name of a resource such as nvidia.com/gpu"
)

DiskBus = Literal["virtio", "sata", "scsi", "usb"]


class CPUFeature(View, frozen=True, kw_only=True):
    """One feature of the processor and what to do about it."""

    name: Annotated[
        str, doc("Name of the feature as QEMU knows it, for example pcid.", min_length=1, max_length=_NAME_LIMIT, rules=(WORD,))
    ]
    policy: (
        Annotated[
            Literal["force", "require", "optional", "disable", "forbid"],
            doc("force, require (the default), optional, disable or forbid."),
        ]
        | None
    ) = None


class CPU(View, frozen=True, kw_only=True):
    """Processors of the guest."""

    cores: Annotated[int, doc("Cores per socket; 1 when absent.", ge=1, le=1024, format="int32")] | None = None
    sockets: Annotated[int, doc("Sockets; 1 when absent.", ge=1, le=1024, format="int32")] | None = None
    threads: Annotated[int, doc("Threads per core; 1 when absent.", ge=1, le=64, format="int32")] | None = None
    model: (
        Annotated[
            str,
            doc(
                "CPU model: a model name of QEMU, host-model (the default: the closest model of the node it first starts on), or"
                " host-passthrough (the node's own CPU).",
                min_length=1,
                max_length=_NAME_LIMIT,
                rules=(WORD,),
            ),
        ]
        | None
    ) = None
    features: (
        Annotated[tuple[CPUFeature, ...], doc("Features to add or to take away.", max_length=512, list_keys=("name",))] | None
    ) = None


class Memory(View, frozen=True, kw_only=True):
    """Memory of the guest."""

    guest: (
        Annotated[Quantity, doc("Memory that the guest sees, for example 1Gi; the memory request, or else 512Mi, when absent.")]
        | None
    ) = None


class ResourceRequirements(View, frozen=True, kw_only=True):
    """What is asked of the node and what must not be exceeded."""

    requests: Annotated[dict[str, Quantity], doc("What must be free on the node: cpu, memory, …", max_properties=64)] | None = None
    limits: Annotated[dict[str, Quantity], doc("The most that may be used: cpu, memory, …", max_properties=64)] | None = None


class Machine(View, frozen=True, kw_only=True):
    """The kind of board that is emulated."""

    type: (
        Annotated[str, doc("Machine type, for example q35 or pc-q35-8.2.", min_length=1, max_length=_NAME_LIMIT, rules=(WORD,))]
        | None
    ) = None


class KernelBootContainer(View, frozen=True, kw_only=True):
    """A container image that holds kernel and initrd."""

    image: Annotated[str, doc("Image that holds the files.", min_length=1, max_length=1024, rules=(PRINTABLE,))]
    kernel_path: Annotated[str, doc("Path of the kernel in the image.", max_length=1024, rules=(STAYS_INSIDE,))] | None = None
    initrd_path: Annotated[str, doc("Path of the initial ramdisk in the image.", max_length=1024, rules=(STAYS_INSIDE,))] | None = (
        None
    )
    image_pull_secret: Annotated[ObjectName, doc("Secret with the credentials for the image.")] | None = None
    image_pull_policy: Annotated[Literal["Always", "IfNotPresent", "Never"], doc("When the image is fetched.")] | None = None


class KernelBootVolume(View, frozen=True, kw_only=True):
    """A volume of this machine that holds kernel and initrd as files, or a kernel as its whole content."""

    name: Annotated[str, doc("Name of an entry of volumes.", min_length=1, max_length=_NAME_LIMIT)]
    kernel_path: (
        Annotated[
            str, doc("Path of the kernel in the volume; the whole volume when absent.", max_length=1024, rules=(STAYS_INSIDE,))
        ]
        | None
    ) = None
    initrd_path: (
        Annotated[str, doc("Path of the initial ramdisk in the volume.", max_length=1024, rules=(STAYS_INSIDE,))] | None
    ) = None


class KernelBoot(View, frozen=True, kw_only=True):
    """Starts a kernel directly, without a boot loader."""

    RULES = (exactly_one("container", "volume"),)

    container: Annotated[KernelBootContainer, doc("Take the files from a container image.")] | None = None
    volume: Annotated[KernelBootVolume, doc("Take the files from one of this machine's volumes.")] | None = None
    kernel_args: Annotated[str, doc("Command line of the kernel.", max_length=4096, rules=(PRINTABLE,))] | None = None


class Bios(View, frozen=True, kw_only=True):
    """Settings of the BIOS."""

    use_serial: Annotated[bool, doc("Whether the BIOS writes to the serial console.")] | None = None


class Efi(View, frozen=True, kw_only=True):
    """Settings of UEFI."""

    secure_boot: Annotated[bool, doc("Whether only signed boot loaders start.")] | None = None
    persistent: Annotated[bool, doc("Whether UEFI variables survive a restart.")] | None = None


class Bootloader(View, frozen=True, kw_only=True):
    """Which firmware starts the guest."""

    RULES = (at_most_one("bios", "efi"),)

    bios: Annotated[Bios, doc("Start by BIOS (the default).")] | None = None
    efi: Annotated[Efi, doc("Start by UEFI.")] | None = None


class Firmware(View, frozen=True, kw_only=True):
    """Firmware of the guest."""

    uuid: (
        Annotated[
            str, doc("UUID that the guest's firmware reports; made from the name when absent.", max_length=36, rules=(_UUID,))
        ]
        | None
    ) = None
    serial: Annotated[str, doc("Serial number that the guest's firmware reports.", max_length=256, rules=(PRINTABLE,))] | None = (
        None
    )
    bootloader: Annotated[Bootloader, doc("Which firmware starts the guest.")] | None = None
    kernel_boot: Annotated[KernelBoot, doc("Start this kernel directly.")] | None = None


class ClockOffsetUTC(View, frozen=True, kw_only=True):
    """The guest's clock follows UTC."""

    offset_seconds: Annotated[int, doc("Seconds by which the guest's clock is ahead.", format="int32")] | None = None


class Clock(View, frozen=True, kw_only=True):
    """The guest's clock."""

    RULES = (at_most_one("utc", "timezone"),)

    utc: Annotated[ClockOffsetUTC, doc("The clock follows UTC (the default).")] | None = None
    timezone: (
        Annotated[str, doc("The clock follows this zone, for example Europe/Berlin.", max_length=_NAME_LIMIT, rules=(_ZONE,))]
        | None
    ) = None


class FeatureState(View, frozen=True, kw_only=True):
    """Whether a feature is there."""

    enabled: Annotated[bool, doc("Whether the guest gets it; true when absent.")] | None = None


class Features(View, frozen=True, kw_only=True):
    """Features of the machine, beyond the processor."""

    acpi: Annotated[FeatureState, doc("ACPI: the power button and tables of devices.")] | None = None
    apic: Annotated[FeatureState, doc("The interrupt controller of x86.")] | None = None
    smm: Annotated[FeatureState, doc("System management mode, which secure boot needs.")] | None = None


class DiskTarget(View, frozen=True, kw_only=True):
    """A disk."""

    bus: Annotated[DiskBus, doc("How it is attached; virtio when absent.")] | None = None
    readonly: Annotated[bool, doc("Whether the guest may only read.")] | None = None


class LunTarget(View, frozen=True, kw_only=True):
    """A disk to which SCSI commands are passed through. A machine with one cannot be migrated."""

    bus: Annotated[DiskBus, doc("How it is attached; scsi when absent.")] | None = None
    readonly: Annotated[bool, doc("Whether the guest may only read.")] | None = None


class CDRomTarget(View, frozen=True, kw_only=True):
    """A CD-ROM drive."""

    bus: Annotated[Literal["sata", "scsi", "usb", "virtio"], doc("How it is attached; sata when absent.")] | None = None
    readonly: Annotated[bool, doc("Whether the guest may only read; true when absent.")] | None = None


class Disk(View, frozen=True, kw_only=True):
    """A volume as the guest sees it. Without disk, lun or cdrom it is a disk."""

    RULES = (at_most_one("disk", "lun", "cdrom"),)

    name: Annotated[str, doc("Name of the entry of volumes that it shows.", min_length=1, max_length=_NAME_LIMIT)]
    disk: Annotated[DiskTarget, doc("Show it as a disk.")] | None = None
    lun: Annotated[LunTarget, doc("Show it as a disk with SCSI passed through.")] | None = None
    cdrom: Annotated[CDRomTarget, doc("Show it as a CD-ROM.")] | None = None
    boot_order: (
        Annotated[int, doc("Place in the order in which the firmware tries to boot, from 1; no two alike.", ge=1, format="int32")]
        | None
    ) = None
    serial: Annotated[str, doc("Serial number that the guest sees.", max_length=256, rules=(PRINTABLE,))] | None = None
    cache: Annotated[Literal["none", "writethrough", "writeback"], doc("How the host caches writes; none when absent.")] | None = (
        None
    )
    io: Annotated[Literal["native", "threads", "default"], doc("How the host does the I/O.")] | None = None


class InterfaceMasquerade(View, frozen=True, kw_only=True):
    """Addresses are translated: the guest shares the pod's."""


class InterfaceBridge(View, frozen=True, kw_only=True):
    """The guest is on the pod's network itself. A machine with it on the pod network cannot be migrated."""


class InterfacePort(View, frozen=True, kw_only=True):
    """A port of the guest that is reachable from outside."""

    port: Annotated[int, doc("Port number in the guest.", ge=1, le=65535, format="int32")]
    name: Annotated[str, doc("A name for the port.", max_length=15, rules=(_PORT_NAME,))] | None = None
    protocol: Annotated[Literal["TCP", "UDP"], doc("TCP when absent.")] | None = None


class Interface(View, frozen=True, kw_only=True):
    """A network card of the guest. Without masquerade or bridge it is masquerade."""

    RULES = (at_most_one("masquerade", "bridge"),)

    name: Annotated[str, doc("Name of the entry of networks it is on.", rules=(NAME,), max_length=_NAME_LIMIT)]
    masquerade: Annotated[InterfaceMasquerade, doc("Translate addresses.")] | None = None
    bridge: Annotated[InterfaceBridge, doc("Bridge to the pod's network.")] | None = None
    model: (
        Annotated[str, doc("Kind of card, for example virtio (the default) or e1000.", max_length=_NAME_LIMIT, rules=(WORD,))]
        | None
    ) = None
    mac_address: Annotated[str, doc("Hardware address, for example 02:00:00:00:00:01.", max_text=17, rules=(_MAC,))] | None = None
    ports: Annotated[tuple[InterfacePort, ...], doc("Ports that are forwarded; all when empty.", max_length=256)] | None = None
    boot_order: Annotated[int, doc("Place in the order in which the firmware tries to boot.", ge=1, format="int32")] | None = None


class Rng(View, frozen=True, kw_only=True):
    """A source of random numbers for the guest."""


class HostDevice(View, frozen=True, kw_only=True):
    """A device of the node, given to the guest. A machine with one cannot be migrated."""

    name: Annotated[str, doc("Name of the device in this machine.", min_length=1, max_length=_NAME_LIMIT, rules=(WORD,))]
    device_name: Annotated[
        str, doc("Name of the node's resource, for example nvidia.com/gpu.", min_length=1, max_length=317, rules=(_RESOURCE,))
    ]


class Watchdog(View, frozen=True, kw_only=True):
    """A watchdog that acts when the guest stops feeding it."""

    name: Annotated[str, doc("Name of the device.", min_length=1, max_length=_NAME_LIMIT, rules=(WORD,))]
    action: Annotated[Literal["poweroff", "reset", "shutdown"], doc("What happens then; reset when absent.")] | None = None


class Devices(View, frozen=True, kw_only=True):
    """Devices of the guest."""

    disks: Annotated[tuple[Disk, ...], doc("Volumes as the guest sees them.", max_length=256, list_keys=("name",))] | None = None
    interfaces: Annotated[tuple[Interface, ...], doc("Network cards of the guest.", max_length=64, list_keys=("name",))] | None = (
        None
    )
    rng: Annotated[Rng, doc("Gives the guest a source of random numbers.")] | None = None
    watchdog: Annotated[Watchdog, doc("Gives the guest a watchdog.")] | None = None
    host_devices: (
        Annotated[tuple[HostDevice, ...], doc("Devices of the node for the guest.", max_length=64, list_keys=("name",))] | None
    ) = None
    gpus: Annotated[tuple[HostDevice, ...], doc("Graphics processors of the node.", max_length=64, list_keys=("name",))] | None = (
        None
    )
    autoattach_serial_console: Annotated[bool, doc("Whether there is a serial console; true when absent.")] | None = None
    autoattach_graphics_device: Annotated[bool, doc("Whether there is a graphics card; false when absent.")] | None = None
    autoattach_pod_interface: Annotated[bool, doc("Whether a machine without interfaces gets one; true when absent.")] | None = None
    autoattach_mem_balloon: Annotated[bool, doc("Whether there is a memory balloon; true when absent.")] | None = None


class Domain(View, frozen=True, kw_only=True):
    """The machine that the guest sees."""

    cpu: Annotated[CPU, doc("Processors.")] | None = None
    memory: Annotated[Memory, doc("Memory.")] | None = None
    resources: Annotated[ResourceRequirements, doc("What the node must provide; made from cpu and memory when absent.")] | None = (
        None
    )
    machine: Annotated[Machine, doc("Kind of board.")] | None = None
    firmware: Annotated[Firmware, doc("Firmware.")] | None = None
    clock: Annotated[Clock, doc("Clock.")] | None = None
    features: Annotated[Features, doc("Features beyond the processor.")] | None = None
    devices: Annotated[Devices, doc("Devices.")] | None = None

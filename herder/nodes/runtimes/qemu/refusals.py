"""What QEMU guests of ours cannot have yet: refused by name, never left out in silence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from herder.api import reasons
from herder.api.kinds.domain import Devices, Disk, Domain, Interface
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.probes import Probe
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu.facts import Facts

_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
CARDS = {"virtio": "virtio-net-pci", "e1000": "e1000", "e1000e": "e1000e", "rtl8139": "rtl8139"}


def check(spec: VirtualMachineInstanceSpec, facts: Facts) -> None:
    for field, sentence in _problems(spec, facts):
        raise Refused(reasons.UNSUPPORTED, f"{field}: {sentence}")


def _problems(spec: VirtualMachineInstanceSpec, facts: Facts) -> Iterator[tuple[str, str]]:
    devices = spec.domain.devices or Devices()
    if devices.host_devices:
        yield "domain.devices.hostDevices", "devices of the node cannot be given to a guest of the runtime qemu"
    if devices.gpus:
        yield "domain.devices.gpus", "graphics processors of the node cannot be given to a guest of the runtime qemu"
    for volume in spec.volumes or ():
        if volume.container_disk is not None:
            yield "volumes.containerDisk", f"volume {volume.name}: images of containers cannot be used; import it with a DataVolume"
    for card in devices.interfaces or ():
        yield from _interface(card)
    for disk in devices.disks or ():
        yield from _disk(disk)
    yield from _domain(spec.domain, facts)
    yield from _texts(spec.domain)
    yield from _probe("livenessProbe", spec.liveness_probe, spec)
    yield from _probe("readinessProbe", spec.readiness_probe, spec)


def _interface(card: Interface) -> Iterator[tuple[str, str]]:
    if card.bridge is not None:
        yield "domain.devices.interfaces.bridge", f"interface {card.name}: there is no bridge to be on; use masquerade"
    if card.model is not None and card.model not in CARDS:
        yield "domain.devices.interfaces.model", f"interface {card.name}: {card.model} is none of {', '.join(CARDS)}"


def _disk(disk: Disk) -> Iterator[tuple[str, str]]:
    if disk.lun is not None:
        yield "domain.devices.disks.lun", f"disk {disk.name}: SCSI cannot be passed through to a file; use disk"
    if disk.cdrom is not None and disk.cdrom.bus == "virtio":
        yield "domain.devices.disks.cdrom.bus", f"disk {disk.name}: there is no virtio CD-ROM; use sata, scsi or usb"
    if disk.cdrom is not None and disk.cdrom.readonly is False:
        yield "domain.devices.disks.cdrom.readonly", f"disk {disk.name}: a CD-ROM can only be read; use disk"


def _domain(domain: Domain, facts: Facts) -> Iterator[tuple[str, str]]:
    features, firmware = domain.features, domain.firmware
    if features and features.smm and features.smm.enabled is not False:
        yield "domain.features.smm", "system management mode is not offered by the runtime qemu"
    if features and features.apic and features.apic.enabled is False:
        yield "domain.features.apic", "a machine without an interrupt controller is not offered by the runtime qemu"
    loader = firmware.bootloader if firmware else None
    if loader and loader.efi is not None:
        if facts.efi is None:
            yield "domain.firmware.bootloader.efi", "no UEFI firmware (OVMF) is installed on this node"
        if loader.efi.secure_boot is not False:
            yield "domain.firmware.bootloader.efi.secureBoot", "needs system management mode, which is not offered: say false"
        if loader.efi.persistent:
            yield "domain.firmware.bootloader.efi.persistent", "variables that outlive the guest are not offered"
    if firmware and firmware.kernel_boot and firmware.kernel_boot.container is not None:
        yield "domain.firmware.kernelBoot.container", "images of containers cannot be used; use volume"


def _texts(domain: Domain) -> Iterator[tuple[str, str]]:
    """What admission refuses today, and may have been stored before: no program can be started with NUL, and a comma is the next
    option to QEMU."""
    firmware, devices = domain.firmware, domain.devices or Devices()
    boot = firmware.kernel_boot if firmware else None
    texts = [("firmware.kernelBoot.kernelArgs", boot.kernel_args if boot else None)]
    texts += [("firmware.serial", firmware.serial if firmware else None), ("firmware.uuid", firmware.uuid if firmware else None)]
    texts += [("clock.timezone", domain.clock.timezone if domain.clock else None)]
    texts += [("devices.disks.serial", disk.serial) for disk in devices.disks or ()]
    for field, text in texts:
        if text and "\0" in text:
            yield f"domain.{field}", f"{text!r} holds NUL"
    for feature in (domain.cpu.features if domain.cpu else None) or ():
        if not _WORD.fullmatch(feature.name):
            yield "domain.cpu.features", f"{feature.name!r} is no name of a feature"
    zone = domain.clock.timezone if domain.clock else None
    if zone and (".." in zone or zone.startswith(("/", ":"))):
        yield "domain.clock.timezone", f"{zone!r} is no name of a time zone"


def _probe(field: str, probe: Probe | None, spec: VirtualMachineInstanceSpec) -> Iterator[tuple[str, str]]:
    if probe is None:
        return
    for way, action in (("httpGet", probe.http_get), ("tcpSocket", probe.tcp_socket)):
        if action is None:
            continue
        if action.host:
            yield f"{field}.{way}.host", f"{action.host}: a node asks nobody but the guest itself; leave it out"
        if not _has_network(spec):
            yield f"{field}.{way}", "the guest has no network interface to be asked through; use exec or guestAgentPing"


def _has_network(spec: VirtualMachineInstanceSpec) -> bool:
    devices = spec.domain.devices or Devices()
    if devices.interfaces is None and not spec.networks:
        return devices.autoattach_pod_interface is not False
    return bool(devices.interfaces)

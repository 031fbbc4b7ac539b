"""Whether an instance can be moved while it runs, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping

from herder.api import reasons
from herder.api.core import PersistentVolumeClaim
from herder.api.guest import GuestReport
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.rules.instances.needs import Missing, claims_of, needs_of

SHARED = ("ReadWriteMany", "ReadOnlyMany")


def not_migratable(
    spec: VirtualMachineInstanceSpec, claims: Mapping[str, PersistentVolumeClaim], report: GuestReport | None
) -> Missing | None:
    """None where it can be moved."""
    return _devices(spec) or _disks(spec, claims) or _interfaces(spec) or _cpu(spec) or _runtime(report)


def _devices(spec: VirtualMachineInstanceSpec) -> Missing | None:
    devices = spec.domain.devices
    held = [*(devices.host_devices or ()), *(devices.gpus or ())] if devices else []
    if held:
        return Missing(reasons.HOST_DEVICE_NOT_LIVE_MIGRATABLE, f"device {held[0].name} belongs to the node")
    lun = next((disk for disk in (devices.disks if devices else None) or () if disk.lun is not None), None)
    if lun is not None:
        return Missing(reasons.DISKS_NOT_LIVE_MIGRATABLE, f"disk {lun.name} passes SCSI through to the node")
    return None


def _disks(spec: VirtualMachineInstanceSpec, claims: Mapping[str, PersistentVolumeClaim]) -> Missing | None:
    for name in claims_of(needs_of(spec)):
        claim = claims.get(name)
        if claim is not None and not any(mode in SHARED for mode in claim.spec.access_modes):
            modes = ", ".join(claim.spec.access_modes) or "no access mode"
            why = f"claim {name} is {modes}: both nodes must have it for a moment, which needs ReadWriteMany"
            return Missing(reasons.DISKS_NOT_LIVE_MIGRATABLE, why)
    return None


def _interfaces(spec: VirtualMachineInstanceSpec) -> Missing | None:
    pod_networks = {network.name for network in spec.networks or () if network.pod is not None}
    devices = spec.domain.devices
    for card in (devices.interfaces if devices else None) or ():
        if card.bridge is not None and card.name in pod_networks:
            why = f"interface {card.name} is bridged to the pod's network, which stays behind; use masquerade"
            return Missing(reasons.INTERFACE_NOT_LIVE_MIGRATABLE, why)
    return None


def _cpu(spec: VirtualMachineInstanceSpec) -> Missing | None:
    if spec.domain.cpu is not None and spec.domain.cpu.model == "host-passthrough":
        why = "the guest has the node's own CPU (host-passthrough), which no other node is sure to have"
        return Missing(reasons.CPU_NOT_LIVE_MIGRATABLE, why)
    return None


def _runtime(report: GuestReport | None) -> Missing | None:
    if report is not None and not report.migratable:
        return Missing(reasons.RUNTIME_NOT_LIVE_MIGRATABLE, report.not_migratable_because or "the node's runtime cannot move it")
    return None

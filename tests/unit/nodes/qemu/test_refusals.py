"""What cannot be had is refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api import reasons
from herder.nodes.runtimes.base import EmptyVolume, Refused
from herder.nodes.runtimes.qemu.blueprint import draw
from herder.nodes.runtimes.qemu.facts import Firmware, describe
from tests.unit.nodes.qemu.orders import FACTS, order


def devices(**about: Any) -> dict[str, Any]:
    return {"domain": {"devices": about}}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            devices(hostDevices=[{"name": "a", "deviceName": "b/c"}]),
            "domain.devices.hostDevices: devices of the node cannot be given",
        ),
        (devices(gpus=[{"name": "a", "deviceName": "b/c"}]), "domain.devices.gpus: graphics processors"),
        (devices(interfaces=[{"name": "a", "bridge": {}}]), "domain.devices.interfaces.bridge: interface a: .* use masquerade"),
        (devices(interfaces=[{"name": "a", "model": "ne2k"}]), "interface a: ne2k is none of virtio, e1000"),
        (devices(disks=[{"name": "a", "lun": {}}]), "domain.devices.disks.lun: disk a: "),
        (devices(disks=[{"name": "a", "cdrom": {"bus": "virtio"}}]), "disk a: there is no virtio CD-ROM"),
        (devices(disks=[{"name": "a"}]), "domain.devices.disks: a shows a volume of that name, and there is none"),
        ({"volumes": [{"name": "a", "containerDisk": {"image": "b"}}]}, "volumes.containerDisk: volume a: .* use|import"),
        ({"domain": {"features": {"smm": {}}}}, "domain.features.smm: "),
        ({"domain": {"features": {"apic": {"enabled": False}}}}, "domain.features.apic: "),
        ({"domain": {"firmware": {"bootloader": {"efi": {}}}}}, r"efi: no UEFI firmware \(OVMF\) is installed"),
        ({"domain": {"firmware": {"kernelBoot": {"container": {"image": "a"}}}}}, "domain.firmware.kernelBoot.container: "),
        ({"domain": {"firmware": {"kernelBoot": {"volume": {"name": "a"}}}}}, "kernelBoot.volume: there is no volume a"),
        ({"domain": {"machine": {"type": "virt"}}}, "domain.machine.type: virt is not known to QEMU 10.0.2; known are pc, "),
        (
            {"domain": {"cpu": {"model": "Pentium9"}}},
            "domain.cpu.model: Pentium9 is no model of QEMU 10.0.2; usable here are Nehalem",
        ),
        ({"domain": {"cpu": {"model": "EPYC"}}}, "domain.cpu.model: EPYC needs fxsr-opt, tsc-deadline, which this node lacks"),
        (
            {"domain": {"cpu": {"features": [{"name": "sha-ni"}]}}},
            "domain.cpu.features: sha-ni is required, and this node lacks it",
        ),
        ({"domain": {"cpu": {"features": [{"name": "avx", "policy": "forbid"}]}}}, "avx is forbidden, and this node has it"),
        ({"domain": {"memory": {"guest": "1Ki"}}}, "domain.memory.guest: 1024 bytes are too little"),
        # Of objects that were stored before admission refused them.
        ({"domain": {"firmware": {"kernelBoot": {"kernelArgs": "a\0b"}}}}, r"kernelBoot.kernelArgs: 'a\\x00b' holds NUL"),
        ({"domain": {"firmware": {"serial": "\0"}}}, "domain.firmware.serial: .* holds NUL"),
        (devices(disks=[{"name": "a", "serial": "\0"}]), "domain.devices.disks.serial: .* holds NUL"),
        (
            {"domain": {"cpu": {"features": [{"name": "x=y,check", "policy": "force"}]}}},
            "domain.cpu.features: 'x=y,check' is no name of a feature",
        ),
        ({"domain": {"clock": {"timezone": "../../etc/shadow"}}}, "domain.clock.timezone: .* is no name of a time zone"),
        (
            {"domain": {}, "livenessProbe": {"httpGet": {"port": 80, "host": "metadata"}}},
            "livenessProbe.httpGet.host: metadata: a node asks nobody but the guest itself",
        ),
        (
            {"domain": {}, "readinessProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}},
            "readinessProbe.tcpSocket.host: 10.0.0.1: a node asks nobody",
        ),
        (
            {**devices(autoattachPodInterface=False), "readinessProbe": {"tcpSocket": {"port": 80}}},
            "readinessProbe.tcpSocket: the guest has no network interface",
        ),
        ({"domain": {}, "readinessProbe": {"tcpSocket": {"port": "web"}}}, "a probe asks port web, and no interface has"),
    ],
)
def test_it_is_said_which_field_and_why(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        draw(order({"domain": {}, **spec}), FACTS)


def test_secure_boot_is_refused_even_where_uefi_is_installed() -> None:
    facts = msgspec.structs.replace(FACTS, efi=Firmware("/code", "/variables"))
    with pytest.raises(Refused, match="secureBoot: needs system management mode"):
        draw(order({"domain": {"firmware": {"bootloader": {"efi": {}}}}}), facts)


def test_a_model_that_lacks_features_has_its_own_reason() -> None:
    with pytest.raises(Refused) as refused:
        draw(order({"domain": {"cpu": {"model": "EPYC"}}}), FACTS)
    assert refused.value.reason == reasons.MISSING_CPU_FEATURES


def test_volumes_without_a_disk_are_no_concern() -> None:
    assert draw(order(volumes={"a": EmptyVolume(1)}), FACTS).disks == ()


@pytest.mark.parametrize(
    ("version", "accelerator", "says"),
    [("7.2.0", "tcg", "QEMU 7.2.0 loses memory"), ("7.2.0", "kvm", ""), ("8.2.0", "tcg", ""), ("10.0.2", "tcg", "")],
)
def test_a_qemu_that_loses_pages_is_not_trusted_to_migrate(version: str, accelerator: str, says: str) -> None:
    host = describe(msgspec.structs.replace(FACTS, version=version, accelerator=accelerator))
    assert host.cannot_migrate.startswith(says) and bool(host.cannot_migrate) == bool(says)
    assert host.cpu.models == ("Nehalem", "Westmere")

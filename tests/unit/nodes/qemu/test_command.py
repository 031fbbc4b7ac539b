"""From an order to QEMU's command line."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from herder.api.guest import Started
from herder.api.kinds.domain import CPUFeature
from herder.api.kinds.instance import StartedCPU
from herder.nodes.runtimes.base import EmptyVolume, Volume
from herder.nodes.runtimes.qemu.blueprint import draw
from herder.nodes.runtimes.qemu.command import Image, shape_of
from herder.nodes.runtimes.qemu.facts import Firmware
from tests.unit.nodes.qemu.orders import FACTS, command, order, values

EMPTY: dict[str, Volume] = {"root": EmptyVolume(1 << 20)}


def disk(**about: Any) -> dict[str, Any]:
    return {"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "root", **about}]}}}


def domain(**about: Any) -> dict[str, Any]:
    return {"domain": {"memory": {"guest": "64Mi"}, **about}}


def test_a_plain_guest_gets_this_and_nothing_else() -> None:
    assert command() == [
        *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-name", "guest=shop/web"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-machine", "pc-q35-10.0,usb=off,vmport=off,hpet=off,smbus=off,sata=off,smm=off,dump-guest-core=off", "-accel", "tcg"),
        *("-cpu", "Westmere,avx=on,pcid=on,enforce", "-smp", "1,sockets=1,cores=1,threads=1", "-m", "65536K"),
        *("-uuid", "74ed537f-67f8-518a-9258-209575a08b0d", "-rtc", "base=utc"),
        *("-action", "shutdown=pause,panic=pause,reboot=reset"),
        *("-chardev", "socket,id=qmp,fd=10,server=on,wait=off", "-mon", "chardev=qmp,mode=control"),
        *("-add-fd", "fd=12,set=12", "-add-fd", "fd=11,set=11"),
        *("-chardev", "file,id=console,path=/dev/fdset/12,append=on,input-path=/dev/fdset/11", "-serial", "chardev:console"),
        *("-netdev", "user,id=net0"),
        *("-device", '{"driver":"virtio-net-pci","netdev":"net0","id":"card0","mac":"02:b4:07:a5:90:56","romfile":""}'),
        *("-device", "pvpanic", "-device", "virtio-balloon-pci"),
    ]


def test_a_machine_type_is_written_down_with_its_version() -> None:
    assert values(command(domain(machine={"type": "pc"})), "-machine")[0].startswith("pc-i440fx-10.0,")
    assert values(command(domain(machine={"type": "pc-q35-10.0"})), "-machine")[0].startswith("pc-q35-10.0,")


def test_processors_are_laid_out_as_asked() -> None:
    line = command(domain(cpu={"sockets": 2, "cores": 3, "threads": 2, "model": "Nehalem"}))
    assert values(line, "-smp") == ["12,sockets=2,cores=3,threads=2"]
    assert values(line, "-cpu") == ["Nehalem,enforce"]


def test_policies_of_features_become_on_and_off() -> None:
    features = [
        {"name": "aes"},
        {"name": "avx", "policy": "disable"},
        {"name": "pcid", "policy": "optional"},
        {"name": "sha-ni", "policy": "optional"},
        {"name": "svm", "policy": "forbid"},
    ]
    assert values(command(domain(cpu={"model": "Nehalem", "features": features})), "-cpu") == [
        "Nehalem,aes=on,avx=off,pcid=on,svm=off,enforce"
    ]
    forced = [{"name": "sha-ni", "policy": "force"}]
    assert values(command(domain(cpu={"model": "Nehalem", "features": forced})), "-cpu") == ["Nehalem,sha-ni=on"]


def test_passthrough_is_the_host_with_kvm_and_all_there_is_without() -> None:
    passed = domain(cpu={"model": "host-passthrough"})
    assert values(command(passed), "-cpu") == ["max,enforce"]
    assert values(command(passed, facts=msgspec.structs.replace(FACTS, accelerator="kvm")), "-cpu") == ["host,enforce"]


@pytest.mark.parametrize(
    ("about", "device", "before"),
    [
        ({}, {"driver": "virtio-blk-pci"}, []),
        ({"disk": {"bus": "sata"}}, {"driver": "ide-hd", "bus": "sata0.0"}, ["ich9-ahci,id=sata0"]),
        ({"disk": {"bus": "scsi"}}, {"driver": "scsi-hd", "bus": "scsi0.0", "scsi-id": 0}, ["virtio-scsi-pci,id=scsi0"]),
        ({"disk": {"bus": "usb"}}, {"driver": "usb-storage", "bus": "usb0.0", "removable": False}, ["qemu-xhci,id=usb0"]),
        ({"cdrom": {}}, {"driver": "ide-cd", "bus": "sata0.0"}, ["ich9-ahci,id=sata0"]),
        ({"cdrom": {"bus": "scsi"}}, {"driver": "scsi-cd", "bus": "scsi0.0", "scsi-id": 0}, ["virtio-scsi-pci,id=scsi0"]),
        ({"serial": "a,b"}, {"driver": "virtio-blk-pci", "serial": "a,b"}, []),
        ({"cache": "writethrough"}, {"driver": "virtio-blk-pci", "write-cache": "off"}, []),
    ],
)
def test_a_disk_is_attached_where_it_is_asked_for(about: dict[str, Any], device: dict[str, Any], before: list[str]) -> None:
    devices = values(command(disk(**about), EMPTY), "-device")
    *controllers, found = devices[: len(before) + 1]
    assert controllers == before
    full = {} if "cdrom" in about else {"werror": "enospc", "rerror": "report"}
    assert json.loads(found) == {"drive": "disk0", "id": "drive0", "bootindex": 1, **full, **device}


def test_what_happens_when_a_disk_is_full_is_no_matter_of_the_other_side_of_a_move() -> None:
    """So a guest that was started before that was said can still move."""
    line = command(disk(cache="writethrough"), EMPTY)
    assert '"werror":"enospc"' in values(line, "-device")[0]
    first = {"drive": "disk0", "id": "drive0", "driver": "virtio-blk-pci", "bootindex": 1, "write-cache": "off"}
    assert json.loads(shape_of(line)["devices"].split(" ")[1]) == first


def test_an_image_comes_as_an_open_file_and_never_by_its_name() -> None:
    line = command(disk(disk={"readonly": True}), EMPTY)
    assert "fd=20,set=20" in values(line, "-add-fd")
    (node,) = map(json.loads, values(line, "-blockdev"))
    assert node["file"]["filename"] == "/dev/fdset/20"
    assert (node["driver"], node["read-only"], node["cache"]["direct"]) == ("raw", True, True)


def test_a_seventh_sata_disk_gets_a_second_controller() -> None:
    names = [f"d{number}" for number in range(7)]
    spec = {"domain": {"devices": {"disks": [{"name": name, "disk": {"bus": "sata"}} for name in names]}}}
    devices = values(command(spec, {name: EmptyVolume(1 << 20) for name in names}), "-device")
    assert [one for one in devices if "ahci" in one] == ["ich9-ahci,id=sata0", "ich9-ahci,id=sata1"]
    assert json.loads(devices[8])["bus"] == "sata1.0"


def test_an_order_of_booting_that_is_written_is_the_only_one() -> None:
    spec = {"domain": {"devices": {"disks": [{"name": "a"}, {"name": "b", "bootOrder": 1}]}}}
    found = [json.loads(one) for one in values(command(spec, {"a": EmptyVolume(1), "b": EmptyVolume(1)}), "-device")[:2]]
    assert [one.get("bootindex") for one in found] == [None, 1]


def test_ports_that_are_written_or_probed_are_found_on_the_node() -> None:
    card = {"name": "default", "ports": [{"port": 22}, {"port": 53, "protocol": "UDP"}, {"name": "web", "port": 8080}]}
    spec: dict[str, Any] = {"domain": {"devices": {"interfaces": [card]}}, "livenessProbe": {"tcpSocket": {"port": 9000}}}
    spec["readinessProbe"] = {"httpGet": {"port": "web"}}
    line = command(spec, address="127.99.1.2", ports={22: 40022, 53: 40053, 8080: 8080, 9000: 9000})
    forwarded = ["tcp:127.99.1.2:40022-:22", "udp:127.99.1.2:40053-:53", "tcp:127.99.1.2:8080-:8080", "tcp:127.99.1.2:9000-:9000"]
    assert values(line, "-netdev") == ["user,id=net0," + ",".join(f"hostfwd={one}" for one in forwarded)]


@pytest.mark.parametrize("probe", [{"guestAgentPing": {}}, {"exec": {"command": ["true"]}}])
def test_a_probe_of_the_agent_gets_a_serial_port_for_it_and_no_other(probe: dict[str, Any]) -> None:
    line = command({"domain": {}, "livenessProbe": probe}, guest_agent=9)
    assert "socket,id=agent,fd=9,server=on,wait=off" in values(line, "-chardev")
    assert values(line, "-device")[-1] == "virtserialport,bus=serial.0,chardev=agent,name=org.qemu.guest_agent.0"
    assert values(line, "-netdev") == ["user,id=net0"]
    assert draw(order({"domain": {}, "livenessProbe": probe}), FACTS).guest_agent
    assert not draw(order({"domain": {}, "livenessProbe": {"tcpSocket": {"port": 80}}}), FACTS).guest_agent


def test_a_guest_may_have_no_network_no_balloon_and_no_console() -> None:
    devices: dict[str, Any] = {
        "autoattachPodInterface": False,
        "autoattachMemBalloon": False,
        "rng": {},
        "watchdog": {"name": "dog", "action": "poweroff"},
    }
    line = command(domain(devices=devices))
    assert values(line, "-netdev") == []
    assert values(line, "-device") == ["pvpanic", "virtio-rng-pci,rng=random", "i6300esb"]
    assert values(line, "-action") == ["shutdown=pause,panic=pause,reboot=reset,watchdog=poweroff"]
    assert draw(order(domain(devices={"autoattachSerialConsole": False})), FACTS).console is False


def test_firmware_and_clock_are_what_is_written() -> None:
    firmware = {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223", "serial": "a,b", "bootloader": {"bios": {"useSerial": True}}}
    line = command(
        domain(firmware=firmware, clock={"utc": {"offsetSeconds": 3600}}, features={"acpi": {"enabled": False}}), now=0.0
    )
    assert values(line, "-uuid") == ["5d307ca9-b3ef-428c-8861-06e72d69f223"]
    assert values(line, "-smbios") == ["type=1,serial=a,,b"]
    assert values(line, "-rtc") == ["base=1970-01-01T01:00:00"]
    assert values(line, "-machine")[0].endswith(",acpi=off,graphics=off")
    assert values(command(domain(clock={"timezone": "Europe/Berlin"})), "-rtc") == ["base=localtime"]


def test_a_kernel_is_booted_from_a_volume() -> None:
    boot = {"volume": {"name": "root", "kernelPath": "vmlinuz", "initrdPath": "initrd"}, "kernelArgs": "console=ttyS0 a,b"}
    line = command(domain(firmware={"kernelBoot": boot}), EMPTY, kernel=30, initrd=31)
    assert (values(line, "-kernel"), values(line, "-initrd")) == (["/proc/self/fd/30"], ["/proc/self/fd/31"])
    assert values(line, "-append") == ["console=ttyS0 a,b"]


def test_uefi_is_two_flash_images() -> None:
    facts = msgspec.structs.replace(FACTS, efi=Firmware("/code", "/variables"))
    efi = (Image(descriptor=40, format="raw", read_only=True), Image(descriptor=41, format="raw"))
    line = command(domain(firmware={"bootloader": {"efi": {"secureBoot": False}}}), facts=facts, efi=efi)
    assert values(line, "-machine")[0].endswith(",pflash0=efi-code,pflash1=efi-variables")
    assert [json.loads(one)["node-name"] for one in values(line, "-blockdev")] == ["efi-code", "efi-variables"]


def test_a_guest_that_comes_in_waits_and_is_what_it_was() -> None:
    cpu = StartedCPU(model="Nehalem", features=(CPUFeature(name="aes", policy="require"),), sockets=1, cores=2, threads=1)
    was = Started(machine_type="pc-i440fx-10.0", accelerator="tcg", runtime="qemu", cpu=cpu, memory_bytes=96 << 20)
    blueprint = draw(order(domain(cpu={"model": "host-model", "cores": 4}), incoming=was), FACTS)
    assert blueprint.started == was
    line = command(incoming=True)
    assert values(line, "-incoming") == ["defer"]
    assert "-S" in line


def test_an_empty_disk_keeps_its_guest_where_it_is() -> None:
    assert draw(order(disk(), EMPTY), FACTS).not_migratable_because == "volume root is an emptyDisk, which is on this node only"

"""What the guest sees of what it was given, and how one speaks with it."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from herder.api.kinds.probes import Probe, TCPSocketAction
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Refused, Volume
from herder.nodes.runtimes.qemu.probes import NotWell
from tests.e2e.guest.linux import initramfs
from tests.e2e.guest.machine import PATIENCE, assert_unbroken
from tests.e2e.guest.test_linux import linux  # a fixture
from tests.e2e.qemu.moves import whole_lines
from tests.e2e.qemu.node import Node, order

__all__ = ["linux"]


def disks(*names: str, **about: Any) -> dict[str, Any]:
    return {"cpu": {"model": "qemu64"}, "devices": {"disks": [{"name": name, **about} for name in names]}}


async def test_disks_of_all_kinds_are_seen_with_their_sizes(node: Node, tmp_path: Path) -> None:
    raw, qcow2 = tmp_path / "raw, with a comma", tmp_path / "qcow2"
    raw.write_bytes(bytes(5 << 20))
    made = await asyncio.create_subprocess_exec("qemu-img", "create", "-q", "-f", "qcow2", str(qcow2), "7M")
    assert await made.wait() == 0
    volumes: dict[str, Volume] = {
        "raw": FileVolume(raw),
        "qcow2": FileVolume(qcow2, format="qcow2"),
        "empty": EmptyVolume(9 << 20),
        "files": FilesVolume({"a": bytes(3 << 20)}),
    }
    domain = disks(*volumes)
    guest = await node.start(volumes=volumes, domain={**domain, "firmware": _boot()})
    for size in ("5M", "7M", "9M", r"31\d\dK"):
        await node.says(guest, rf"disk virtio bus=0 slot=\d+ size={size}")


async def test_every_bus_and_every_device_starts(node: Node, tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    names = {"a": {"bus": "virtio"}, "b": {"bus": "sata"}, "c": {"bus": "scsi"}, "d": {"bus": "usb"}}
    written: list[dict[str, Any]] = [{"name": name, "disk": about, "serial": f"serial-{name}"} for name, about in names.items()]
    written += [{"name": f"cd-{bus}", "cdrom": {"bus": bus}} for bus in ("sata", "scsi", "usb")]
    written[0] |= {"cache": "writethrough", "bootOrder": 1}
    written[1] |= {"cache": "writeback", "io": "threads"}
    written[2] |= {"io": "native"}
    volumes: dict[str, Volume] = {one["name"]: EmptyVolume(1 << 20) for one in written}
    devices = {"disks": written, "rng": {}, "watchdog": {"name": "dog", "action": "poweroff"}, "autoattachGraphicsDevice": True}
    devices["interfaces"] = [{"name": "a", "model": model} for model in ("virtio", "e1000", "e1000e", "rtl8139")]
    clock = {"timezone": "Europe/Berlin"}
    for machine in ("q35", "pc"):
        domain = {"devices": devices, "machine": {"type": machine}, "clock": clock, "firmware": _boot(), "cpu": {"model": "qemu64"}}
        guest = await node.start(volumes=volumes, domain=domain)
        await node.ticked(guest, 2)


async def test_host_model_is_a_model_with_features_that_starts(node: Node) -> None:
    guest = await node.start(domain={"cpu": {"model": "host-model"}})
    await node.ticked(guest, 1)
    started = node.status(guest).started
    assert started is not None and started.cpu is not None
    assert started.cpu.model == (await node.runtime.host()).cpu.model
    assert {one.name for one in started.cpu.features or ()} == set((await node.runtime.host()).cpu.required_features)


async def test_several_read_along_and_each_may_type(node: Node) -> None:
    guest = await node.start("rate=1")
    first, second = await node.runtime.console(guest), await node.runtime.console(guest)
    await node.says(guest, "settings .*")
    await first.write(b"hello\n")
    for console in (first, second):
        assert await _hears(console, b"you said: hello")
    await first.close()
    await second.write(b"again\n")
    assert await _hears(second, b"you said: again")
    await second.close()
    third = await node.runtime.console(guest)
    await third.write(b"exit\n")
    await node.becomes(guest, "ShutDown")
    assert [part async for part in third.read()]
    with pytest.raises(Refused, match="has ended"):
        await node.runtime.console(guest)


async def test_whoever_listens_too_slowly_or_leaves_changes_nothing_in_the_log(node: Node) -> None:
    """A letter at a time fills a socket after some three hundred."""
    guest = await node.start("rate=100")
    lazy = await node.runtime.console(guest)
    for _ in range(20):
        console = await node.runtime.console(guest)
        await asyncio.sleep(0.1)
        await console.close()
        assert [part async for part in console.read()] == []
    await node.ticked(guest, len(await node.ticks(guest)) + 10)
    text = await whole_lines(node, guest)
    assert_unbroken(text)
    heard = (await anext(lazy.read())).decode().replace("\r", "")
    assert heard[:1000] in text and len(heard) > 1000
    await lazy.close()


async def test_whoever_stops_to_follow_leaves_nothing_behind(node: Node) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    guest = await node.start("rate=1")
    following = asyncio.create_task(_hears(await node.runtime.console(guest), b"never said"))
    await node.ticked(guest, 2)
    following.cancel()
    await asyncio.wait([following])
    del following
    gc.collect()  # which tells of tasks that nobody ended
    assert complaints == []


async def test_a_log_that_is_followed_ends_with_the_guest(node: Node) -> None:
    guest = await node.start("rate=50 exit-after=5")
    async with asyncio.timeout(PATIENCE):
        text = b"".join([part async for part in await node.runtime.log(guest, follow=True)])
    assert b"tick 5 " in text
    assert text == b"".join([part async for part in await node.runtime.log(guest)])


async def test_a_port_that_nobody_serves_does_not_pass_a_probe(node: Node) -> None:
    """QEMU itself takes the connection, so that only looking closer tells."""
    probe = Probe(tcp_socket=TCPSocketAction(port=8080))
    guest = await node.start(spec={"readinessProbe": {"tcpSocket": {"port": 8080}}})
    (address,) = node.status(guest).addresses
    assert address.startswith("127.")
    with pytest.raises((NotWell, TimeoutError)):
        await node.runtime.probe(guest, probe)
    await node.runtime.pause(guest)
    assert not await node.runtime.probe(guest, probe)


async def test_two_guests_have_the_same_port_at_addresses_of_their_own(node: Node) -> None:
    interface = {
        "cpu": {"model": "qemu64"},
        "firmware": _boot(),
        "devices": {"interfaces": [{"name": "a", "ports": [{"port": 8080}, {"port": 80}]}]},
    }
    first, second = await node.start(domain=interface), await node.start(domain=interface)
    assert node.status(first).addresses != node.status(second).addresses
    for guest in (first, second):
        _, writer = await asyncio.open_connection(node.status(guest).addresses[0], 8080)
        writer.close()


async def test_a_linux_boots_from_a_folder_with_kernel_and_initrd(node: Node, linux: Path, tmp_path: Path) -> None:
    folder = tmp_path / "claim"
    folder.mkdir()
    (folder / "vmlinuz").write_bytes((linux / "vmlinuz").read_bytes())
    script = "/bin/busybox mount -t proc proc /proc\necho hello from $(/bin/busybox nproc) CPUs\n/bin/busybox poweroff -f\n"
    (folder / "initrd").write_bytes(initramfs(linux / "busybox", script))
    boot = {"name": "linux", "kernelPath": "vmlinuz", "initrdPath": "initrd"}
    firmware = {"kernelBoot": {"volume": boot, "kernelArgs": "console=ttyS0 quiet panic=-1"}}
    guest = await node.start(
        memory="256Mi", domain={"firmware": firmware, "cpu": {"cores": 2}}, volumes={"linux": FileVolume(folder)}
    )
    await node.says(guest, ".*hello from 2 CPUs")
    await node.becomes(guest, "ShutDown")


async def test_a_kernel_outside_of_its_volume_is_refused(node: Node, guest: Path, tmp_path: Path) -> None:
    folder = tmp_path / "claim"
    folder.mkdir()
    os.symlink(guest, folder / "kernel")
    for inside in ("kernel", "../../etc/passwd", "nothing"):
        firmware = {"kernelBoot": {"volume": {"name": "linux", "kernelPath": inside}}}
        with pytest.raises(Refused, match="volume linux has no file"):
            await node.runtime.start(order(guest, domain={"firmware": firmware}, volumes={"linux": FileVolume(folder)}))
    assert list((node.folder / "guests").iterdir()) == []


async def _hears(console: Any, words: bytes) -> bool:
    heard = b""
    async with asyncio.timeout(PATIENCE):
        async for part in console.read():
            heard += part
            if words in heard:
                return True
    return False


def _boot(settings: str = "rate=50") -> dict[str, Any]:
    return {"kernelBoot": {"volume": {"name": "kernel"}, "kernelArgs": settings}}

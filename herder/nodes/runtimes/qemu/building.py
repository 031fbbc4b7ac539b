"""Makes real what a blueprint says: the guest's folder, its images and sockets, and then its process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

import msgspec

from herder.api import reasons
from herder.nodes.runtimes.base import EmptyVolume, FilesVolume, FileVolume, Order, Refused
from herder.nodes.runtimes.qemu import process, qmp
from herder.nodes.runtimes.qemu.blueprint import Blueprint, KernelPlan
from herder.nodes.runtimes.qemu.command import ConsoleFiles, Fittings, Image, command_line, shape_of
from herder.nodes.runtimes.qemu.facts import Facts, can_type
from herder.nodes.runtimes.qemu.files import write_whole, writing_whole
from herder.nodes.runtimes.qemu.images import open_image
from herder.nodes.runtimes.qemu.memory_file import files_of, paths_of
from herder.nodes.runtimes.qemu.process import RunAs
from herder.nodes.runtimes.qemu.record import (
    AGENT_SOCKET,
    CONSOLE_INPUT,
    CONSOLE_LOG,
    QEMU_LOG,
    QMP_SOCKET,
    Folder,
    ReadRecord,
    Record,
)

# Ports that an unprivileged user may not have are found this much further up.
MOVED_UP = 40000
# A kernel, or its initial RAM disk.
MOST_BOOTED = 1 << 30
_UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides about one start."""

    order: Order
    blueprint: Blueprint
    facts: Facts
    run_as: RunAs | None
    now: float
    incoming: bool = False
    memory: Path | None = None
    attempt: int = 0


class Built(msgspec.Struct, frozen=True, kw_only=True):
    child: subprocess.Popen[bytes]
    qmp: socket.socket
    record: Record


def build(plan: Plan, folder: Folder) -> Built:
    """In a thread: it waits for the disk. What it has written down before the process starts is found again, whatever happens."""
    folder.make()
    with contextlib.ExitStack() as opened:
        fittings = _fit(plan, folder, opened)
        command = command_line(plan.blueprint, fittings, plan.facts)
        record = _record(plan, fittings, shape_of(command))
        folder.write(record)
        connection = qmp.connect(folder / QMP_SOCKET)
        try:
            child = _start(plan, folder, command, fittings.descriptors(), opened)
        except BaseException:
            connection.close()
            raise
    try:
        if described := process.describe(child.pid):
            folder.write_process(described)
    except OSError:
        abandon(child, connection)
        raise
    return Built(child=child, qmp=connection, record=record)


def abandon(child: subprocess.Popen[bytes], connection: socket.socket) -> None:
    """A start that fails after its process has begun: nobody would know of it."""
    child.kill()
    child.wait()
    connection.close()


def _start(
    plan: Plan, folder: Folder, command: list[str], descriptors: tuple[int, ...], opened: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    log = _keep(os.open(folder / QEMU_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), opened)
    return process.start(command, folder.path, log, descriptors, plan.run_as, plan.blueprint.timezone)


def _record(plan: Plan, fittings: Fittings, shape: dict[str, str]) -> Record:
    return Record(
        definition=plan.order.definition,
        started=plan.blueprint.started,
        address=fittings.address if plan.blueprint.ports else "",
        ports=fittings.ports,
        started_at=None if plan.incoming or plan.memory is not None else plan.now,
        not_migratable_because=plan.blueprint.not_migratable_because,
        incoming=plan.incoming or plan.memory is not None,
        shape=shape,
        resumed=plan.memory is not None,
        not_resumed_because=plan.order.not_resumed_because,
        reads=_reads(plan, fittings),
        disks=paths_of(plan.order.volumes),
        files=files_of(plan.order.volumes),
    )


def _reads(plan: Plan, fittings: Fittings) -> ReadRecord | None:
    if plan.memory is None or fittings.memory is None:
        return None
    return ReadRecord(path=str(plan.memory), descriptor=fittings.memory)


def _fit(plan: Plan, folder: Folder, opened: contextlib.ExitStack) -> Fittings:
    blueprint, order = plan.blueprint, plan.order
    agent = opened.enter_context(qmp.listen(folder / AGENT_SOCKET)) if blueprint.guest_agent else None
    disks = {disk.volume: _kept(open_image(order.volumes[disk.volume], disk, folder), opened) for disk in blueprint.disks}
    kernel, initrd = (None, None) if blueprint.kernel is None else _kernel(blueprint.kernel, order, folder, plan.run_as, opened)
    return Fittings(
        qmp=opened.enter_context(qmp.listen(folder / QMP_SOCKET)).fileno(),
        console=_console(plan, folder, opened),
        guest_agent=agent.fileno() if agent else None,
        disks=disks,
        kernel=kernel,
        initrd=initrd,
        efi=_efi(plan, folder, opened) if blueprint.efi else None,
        memory=_keep(os.open(plan.memory, os.O_RDONLY | os.O_CLOEXEC), opened) if plan.memory else None,
        address=loopback_address(order.guest, plan.attempt),
        ports=reachable_ports(blueprint.ports, plan.run_as),
        incoming=plan.incoming,
        paused=order.definition.spec.start_strategy == "Paused",
        now=plan.now,
    )


def _console(plan: Plan, folder: Folder, opened: contextlib.ExitStack) -> ConsoleFiles | None:
    log = _keep(os.open(folder / CONSOLE_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), opened)
    if not plan.blueprint.console:
        return None
    if not can_type(plan.facts):
        return ConsoleFiles(log)
    pipe = folder / CONSOLE_INPUT
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe, 0o600)
    keys = _keep(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), opened)
    # QEMU holds the other end too: else it would find the end of its input whenever nobody types.
    return ConsoleFiles(log, keys, _keep(os.open(pipe, os.O_WRONLY | os.O_CLOEXEC), opened))


def loopback_address(guest: str, attempt: int = 0) -> str:
    """Each guest has one of its own on this machine, where its ports are found. Where two get the same, one tries again."""
    first, second, third = hashlib.sha256(f"{guest}/{attempt}".encode()).digest()[:3]
    return f"127.{64 + first % 64}.{second}.{1 + third % 254}"


def reachable_ports(ports: tuple[tuple[str, int], ...], run_as: RunAs | None) -> dict[int, int]:
    privileged = run_as is None and os.geteuid() == 0
    lowest = 0 if privileged else int(_UNPRIVILEGED.read_text())
    return {port: port if port >= lowest else port + MOVED_UP for _, port in ports}


def _kernel(
    plan: KernelPlan, order: Order, folder: Folder, run_as: RunAs | None, opened: contextlib.ExitStack
) -> tuple[int, int | None]:
    """Copies, as QEMU's user may read them and the volume may be another's."""
    volume = order.volumes[plan.volume]
    kernel = _copied(volume, plan.kernel, plan.volume, folder / "kernel", run_as, opened)
    initrd = _copied(volume, plan.initrd, plan.volume, folder / "initrd", run_as, opened) if plan.initrd else None
    return kernel, initrd


def _copied(
    volume: FileVolume | EmptyVolume | FilesVolume,
    inside: str,
    name: str,
    to: Path,
    run_as: RunAs | None,
    opened: contextlib.ExitStack,
) -> int:
    with _content(volume, inside, name) as source, writing_whole(to, durable=False) as file:
        if isinstance(source, bytes):
            file.write(source)
        else:
            _copy_bounded(source, file, name)
    if run_as is not None:
        os.chown(to, run_as.uid, run_as.gid)
    os.chmod(to, 0o400)
    return _keep(os.open(to, os.O_RDONLY | os.O_CLOEXEC), opened)


def _copy_bounded(source: Path, file: BinaryIO, name: str) -> None:
    """A volume is sparse and may be of any size: its copy would not be sparse."""
    with source.open("rb") as reading:
        if (size := os.fstat(reading.fileno()).st_size) > MOST_BOOTED:
            field = "domain.firmware.kernelBoot.volume"
            most = f"at most {MOST_BOOTED >> 20} MiB can be booted from"
            raise Refused(reasons.UNSUPPORTED, f"{field}: volume {name} has {size} bytes to boot from; {most}")
        shutil.copyfileobj(reading, file, 1 << 20)


@contextlib.contextmanager
def _content(volume: FileVolume | EmptyVolume | FilesVolume, inside: str, name: str) -> Generator[Path | bytes]:
    field = "domain.firmware.kernelBoot.volume"
    if isinstance(volume, FilesVolume):
        content = volume.files.get(inside.lstrip("/"))
        if content is None:
            raise Refused(reasons.UNSUPPORTED, f"{field}: volume {name} has no file {inside or '(kernelPath is empty)'}")
        yield content
    elif isinstance(volume, EmptyVolume):
        raise Refused(reasons.UNSUPPORTED, f"{field}: volume {name} is an empty disk")
    else:
        yield _file_in(volume.path, inside, name, field)


def _file_in(path: Path, inside: str, name: str, field: str) -> Path:
    """No link may lead out of the volume."""
    if not inside:
        found = path / "disk.img" if path.is_dir() else path
    elif not path.is_dir():
        raise Refused(reasons.UNSUPPORTED, f"{field}: volume {name} is one image, and no folder with a file {inside}")
    else:
        found = path / inside.lstrip("/")
    if not found.is_file() or not found.resolve().is_relative_to(path.resolve()):
        raise Refused(reasons.UNSUPPORTED, f"{field}: volume {name} has no file {inside or 'to boot'}")
    return found


def _efi(plan: Plan, folder: Folder, opened: contextlib.ExitStack) -> tuple[Image, Image]:
    assert plan.facts.efi is not None, "refused before"
    write_whole(folder / "efi-variables", Path(plan.facts.efi.variables).read_bytes(), durable=False)
    code = _keep(os.open(plan.facts.efi.code, os.O_RDONLY | os.O_CLOEXEC), opened)
    variables = _keep(os.open(folder / "efi-variables", os.O_RDWR | os.O_CLOEXEC), opened)
    return Image(descriptor=code, format="raw", read_only=True), Image(descriptor=variables, format="raw")


def _keep(descriptor: int, opened: contextlib.ExitStack) -> int:
    """Until QEMU has its own copy of it."""
    opened.callback(os.close, descriptor)
    return descriptor


def _kept(image: Image, opened: contextlib.ExitStack) -> Image:
    _keep(image.descriptor, opened)
    return image

"""The connection that a guest's memory goes through: opened by the agents, used by the two QEMUs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

from herder.api import reasons
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.progress import capabilities
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError
from herder.nodes.runtimes.qemu.record import MIGRATION_SOCKET

UNIX = "unix:"


async def connect(address: str) -> socket.socket:
    """To the target, by us: QEMU gets the open connection, and needs no right to open any."""
    try:
        if not address.startswith(UNIX):
            raise ValueError("an address begins with unix:")
        return await asyncio.to_thread(qmp.connect, Path(address.removeprefix(UNIX)))
    except (OSError, ValueError) as error:
        raise Refused(reasons.TARGET_POD_FAILED, f"nobody waits for a guest at {address}: {error}") from None


async def hand_over(control: QMP, connection: socket.socket) -> str:
    with connection:
        await control.do("getfd", descriptor=connection.fileno(), fdname="migration")
    return "fd:migration"


async def forget(control: QMP) -> None:
    """One that an agent handed over just before it ended, and that nobody will use: the other side must not wait for it."""
    with contextlib.suppress(QMPError):
        await control.do("closefd", fdname="migration")


async def listen(guest: Guest, settings: PolicySettings) -> str:
    """The target waits at a socket in the guest's folder: reachable by the agents of this machine, and by nobody else."""
    path = guest.folder / MIGRATION_SOCKET
    await forget(guest.control)
    await guest.control.do("migrate-set-capabilities", capabilities=capabilities(settings))
    guest.background(_accept(guest, qmp.listen(path)))
    return f"{UNIX}{path}"


async def _accept(guest: Guest, listener: socket.socket) -> None:
    """One source, once."""
    listener.setblocking(False)
    with listener:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
    connection.setblocking(True)
    with contextlib.suppress(QMPError):
        await guest.control.do("migrate-incoming", uri=await hand_over(guest.control, connection))

"""The connection that a guest's memory goes through: opened by the agents, used by the two QEMUs.

On one machine a socket in the target's folder; between machines TCP with TLS (wire.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import structlog

from herder.api import reasons
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import World
from herder.net.occasional import Occasional
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import qmp, wire
from herder.nodes.runtimes.qemu.admitting import first_with
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.post_copy import set_capabilities
from herder.nodes.runtimes.qemu.process import RunAs
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError
from herder.nodes.runtimes.qemu.record import MIGRATION_SOCKET
from herder.nodes.runtimes.qemu.wire import TCP, TCPAddress, Wire

log = structlog.get_logger()
UNIX = "unix:"
NAME = "migration"
# To reach the target.
PATIENCE = 5.0


class Channels:
    """Of one node."""

    def __init__(self, over: Wire | None, run_as: RunAs | None, world: World) -> None:
        self._wire = over
        self._world = world
        self._run_as = run_as
        self._sent_away = Occasional(log)

    async def connect(self, guest: Guest, address: str) -> socket.socket:
        """To the target, by us: QEMU gets the open connection, and needs no right to open any."""
        try:
            if address.startswith(UNIX):
                await wire.open_up(guest)
                return await asyncio.to_thread(qmp.connect, Path(address.removeprefix(UNIX)))
            return await self._dial(guest, wire.parse(address))
        except (OSError, ValueError, QMPError) as error:
            place = address.split("/", 1)[0] if address.startswith(TCP) else address
            raise Refused(reasons.TARGET_POD_FAILED, f"nobody waits for a guest at {place}: {error}") from None

    async def _dial(self, guest: Guest, address: TCPAddress) -> socket.socket:
        if self._wire is None:
            raise ValueError("this node has no certificate to send a guest over the network with")
        await wire.secure(guest, self._wire, "client", self._run_as, address.name)
        loop = asyncio.get_running_loop()
        connection = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
        connection.setblocking(False)
        try:
            async with asyncio.timeout(PATIENCE):
                await loop.sock_connect(connection, (address.host, address.port))
                await loop.sock_sendall(connection, address.token.encode())
        except BaseException:
            connection.close()
            raise
        return connection

    async def listen(self, guest: Guest, settings: PolicySettings) -> str:
        """The address is where its source finds it; one that did so already, before the agent was restarted, finds nobody else."""
        path = guest.folder / MIGRATION_SOCKET
        if (await guest.control.do("query-migrate")).get("status", "none") != "none":
            return f"{UNIX}{path}" if self._wire is None else str(TCPAddress(self._wire.address, 0, self._wire.name, ""))
        await forget(guest.control)
        guest.no_post_copy = await set_capabilities(guest.control, settings)
        if self._wire is None:
            # In the guest's folder: reachable by the agents of this machine, and by nobody else.
            guest.background(_accept(guest, qmp.listen(path), "", self._sent_away, path))
            return f"{UNIX}{path}"
        await wire.secure(guest, self._wire, "server", self._run_as)
        host, token = self._wire.address, self._world.uid()
        listener = self._listener(self._wire)
        guest.background(_accept(guest, listener, token, self._sent_away))
        return str(TCPAddress(host, listener.getsockname()[1], self._wire.name or host, token))

    def _listener(self, over: Wire) -> socket.socket:
        try:
            return wire.listen(over)
        except OSError as error:
            sentence = f"no guest can come to {over.address}: {error.strerror or error}"
            raise Refused(reasons.TARGET_POD_FAILED, sentence) from None


async def hand_over(control: QMP, connection: socket.socket) -> str:
    connection.setblocking(True)
    with connection:
        await control.do("getfd", descriptor=connection.fileno(), fdname=NAME)
    return f"fd:{NAME}"


async def forget(control: QMP) -> None:
    """One that an agent handed over just before it ended, and that nobody will use: the other side must not wait for it."""
    with contextlib.suppress(QMPError):
        await control.do("closefd", fdname=NAME)


async def _accept(guest: Guest, listener: socket.socket, token: str, sent_away: Occasional, path: Path | None = None) -> None:
    """One source, once: then nobody listens any more, and there is no name for it either. QEMU takes the first that it gets, and
    ends with it: strangers do not get so far."""
    connection = await first_with(token, listener, sent_away)
    if path is not None:
        path.unlink(missing_ok=True)
    with contextlib.suppress(QMPError):
        await guest.control.do("migrate-incoming", uri=await hand_over(guest.control, connection))

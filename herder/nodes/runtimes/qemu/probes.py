"""Asks a guest whether it lives: through the ports that are forwarded to it, or its agent. What is wrong is raised in words."""

from __future__ import annotations

import asyncio
import ssl
from weakref import WeakKeyDictionary

import aiohttp

from herder.api.kinds.probes import HTTPGetAction, Probe
from herder.nodes.runtimes.qemu.blueprint import port_of
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.guest_agent import GuestAgent
from herder.nodes.runtimes.qemu.record import AGENT_SOCKET

LOOK_EVERY = 0.05
# Two probes of one guest take turns with its agent.
_turns: WeakKeyDictionary[Guest, asyncio.Lock] = WeakKeyDictionary()


class NotWell(Exception):
    """The guest's answer was no answer, or not a good one."""


async def ask(guest: Guest, probe: Probe) -> bool:
    """Raises where it is not well, or cannot be asked."""
    async with asyncio.timeout(probe.timeout_seconds or 1):
        if probe.exec_ is not None or probe.guest_agent_ping is not None:
            await _agent(guest, probe)
            return True
        port = port_of(probe, guest.record.definition.spec)
        address = guest.record.address, guest.record.ports.get(port, port)
        await (_http(probe.http_get, *address) if probe.http_get is not None else _tcp(guest, *address))
        return True


async def _http(action: HTTPGetAction, host: str, port: int) -> None:
    """Any certificate will do, as with a kubelet: the question is whether it answers."""
    scheme = (action.scheme or "HTTP").lower()
    headers = {one.name: one.value for one in action.http_headers or ()}
    url = f"{scheme}://{host}:{port}/{(action.path or '/').removeprefix('/')}"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, ssl=context, allow_redirects=False) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, OSError) as error:
        raise NotWell(f"port {action.port} of the guest does not answer: {error}") from None
    if not 200 <= status < 400:
        raise NotWell(f"port {action.port} of the guest answered with HTTP status {status}")


async def _tcp(guest: Guest, host: str, port: int) -> None:
    """QEMU takes every connection and only then tries the guest. A guest that refuses has it closed; one that takes it is on QEMU's
    list, by the address at which QEMU listens for it; one that does neither is waited for."""
    reader, writer = await asyncio.open_connection(host, port)
    first = asyncio.create_task(reader.read(1))
    try:
        while not first.done():
            listing = await guest.control.do("human-monitor-command", command_line="info usernet")
            if any(_taken(" ".join(line.split()), f" {host} {port} ") for line in listing.splitlines()):
                return
            await asyncio.wait([first], timeout=LOOK_EVERY)
        if first.exception() is not None or not first.result():
            raise NotWell("the guest takes no connection there")
    finally:
        first.cancel()
        writer.close()


def _taken(line: str, place: str) -> bool:
    return line.startswith("TCP[ESTABLISHED] ") and place in line


async def _agent(guest: Guest, probe: Probe) -> None:
    async with _turns.setdefault(guest, asyncio.Lock()):
        agent = await GuestAgent.connect(guest.folder / AGENT_SOCKET)
        try:
            if probe.exec_ is None:
                await agent.ping()
            elif code := await agent.run(probe.exec_.command):
                raise NotWell(f"{probe.exec_.command[0]} ended with exit code {code}")
        finally:
            agent.close()

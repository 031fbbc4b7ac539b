"""Asks a guest whether it lives, through the ports that are forwarded to it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import aiohttp

from herder.api.kinds.probes import HTTPGetAction, Probe
from herder.nodes.runtimes.qemu.blueprint import port_of
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.qmp import QMPError

LOOK_EVERY = 0.05


async def ask(guest: Guest, probe: Probe) -> bool:
    port = port_of(probe, guest.record.definition.spec)
    address = guest.record.address, guest.record.ports.get(port, port)
    with contextlib.suppress(OSError, TimeoutError, aiohttp.ClientError, QMPError):
        async with asyncio.timeout(probe.timeout_seconds or 1):
            if probe.http_get is not None:
                return await _http(probe.http_get, *address)
            return await _tcp(guest, *address)
    return False


async def _http(action: HTTPGetAction, host: str, port: int) -> bool:
    """Any certificate will do, as with a kubelet: the question is whether it answers."""
    scheme = (action.scheme or "HTTP").lower()
    headers = {one.name: one.value for one in action.http_headers or ()}
    if action.host:
        headers.setdefault("Host", action.host)
    url = f"{scheme}://{host}:{port}/{(action.path or '/').removeprefix('/')}"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers=headers, ssl=context, allow_redirects=False) as answer,
    ):
        return 200 <= answer.status < 400


async def _tcp(guest: Guest, host: str, port: int) -> bool:
    """QEMU takes every connection and only then tries the guest: that one has answered, QEMU's list of them tells."""
    _, writer = await asyncio.open_connection(host, port)
    try:
        own = writer.get_extra_info("sockname")[1]
        while not writer.is_closing():
            listing = await guest.control.do("human-monitor-command", command_line="info usernet")
            states = [line.split()[0] for line in listing.splitlines() if f" {own} " in f" {line} "]
            if not states:
                return False
            if "TCP[ESTABLISHED]" in states:
                return True
            await asyncio.sleep(LOOK_EVERY)
        return False
    finally:
        writer.close()

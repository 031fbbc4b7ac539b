"""Moves between machines: TCP, and QEMU's own TLS with the certificates of both nodes. No memory goes over a wire in the clear."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Literal

import msgspec

from herder.api import reasons
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.process import RunAs
from herder.nodes.runtimes.qemu.qmp import QMPError

TCP = "tcp:"
CREDENTIALS = "migration-tls"
PEERS = "migration-peers"
Endpoint = Literal["client", "server"]


class KeyPair(msgspec.Struct, frozen=True):
    certificate: Path
    key: Path


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """How guests come to this node, and leave it, over the network."""

    # Where it listens and is reached; and which of the names in its server's certificate others are to look for.
    address: str
    name: str = ""
    # The first and the last port that guests may come to, each to one of its own; None for any that is free.
    ports: tuple[int, int] | None = None
    ca: Path
    # The node as those see it that it sends guests to, and those that it gets them from. They may be the same.
    client: KeyPair
    server: KeyPair
    # Whose certificates a guest is taken from, as QEMU matches their distinguished names: the same authority signs users' too.
    peers: tuple[str, ...] = ("O=system:nodes,CN=system:node:*", "CN=system:node:*,O=system:nodes")


class TCPAddress(msgspec.Struct, frozen=True):
    """`tcp:HOST:PORT/NAME/TOKEN`. Who does not know the token is turned away before QEMU hears of it."""

    host: str
    port: int
    name: str
    token: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{TCP}{host}:{self.port}/{self.name}/{self.token}"


def parse(address: str) -> TCPAddress:
    """Raises ValueError."""
    place, name, token = address.removeprefix(TCP).split("/")
    host, _, port = place.rpartition(":")
    return TCPAddress(host.strip("[]"), int(port), name, token)


def listen(wire: Wire) -> socket.socket:
    """Raises OSError where no port is free."""
    family = socket.AF_INET6 if ":" in wire.address else socket.AF_INET
    first, last = wire.ports or (0, 0)
    for port in range(first, last + 1):
        try:
            return socket.create_server((wire.address, port), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(f"as many guests are on their way as there are ports ({first} to {last})")


async def secure(guest: Guest, wire: Wire, endpoint: Endpoint, run_as: RunAs | None, peer: str = "") -> None:
    """From now on this QEMU speaks with nobody who has no certificate of the cluster. It has read the files when this returns."""
    control = guest.control
    await open_up(guest)
    try:
        with _staged(guest.folder / "tls", wire, endpoint, run_as) as folder:
            given = await control.do("add-fd", descriptor=folder)
            place = f"/proc/self/fd/{given['fd']}"
            try:
                await control.do(
                    "object-add", qom_type="tls-creds-x509", id=CREDENTIALS, endpoint=endpoint, verify_peer=True, dir=place
                )
            finally:
                await control.do("remove-fd", fdset_id=given["fdset-id"])
        if endpoint == "server":
            rules = [{"match": one, "policy": "allow", "format": "glob"} for one in wire.peers]
            await control.do("object-add", qom_type="authz-list", id=PEERS, policy="deny", rules=rules)
        authorized = PEERS if endpoint == "server" else ""
        await control.do("migrate-set-parameters", tls_creds=CREDENTIALS, tls_hostname=peer, tls_authz=authorized)
    except (OSError, QMPError) as error:
        raise Refused(reasons.NOT_LIVE_MIGRATABLE, f"the node's certificate cannot be used: {error}") from None


async def open_up(guest: Guest) -> None:
    """Without TLS: for sockets of this machine, and before other certificates are read."""
    await guest.control.do("migrate-set-parameters", tls_creds="", tls_hostname="", tls_authz="")
    for name in (CREDENTIALS, PEERS):
        with contextlib.suppress(QMPError):
            await guest.control.do("object-del", id=name)


@contextlib.contextmanager
def _staged(folder: Path, wire: Wire, endpoint: Endpoint, run_as: RunAs | None) -> Generator[int]:
    """Copies that QEMU's user may read, and nobody else, only for the moment in which it reads them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        own = wire.client if endpoint == "client" else wire.server
        names = {"ca-cert.pem": wire.ca, f"{endpoint}-cert.pem": own.certificate, f"{endpoint}-key.pem": own.key}
        for name, source in names.items():
            with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400), "wb") as file:
                file.write(source.read_bytes())
                _give(file.fileno(), run_as)
        with qmp.opened_folder(folder) as descriptor:
            if run_as is not None:
                os.chown(folder, run_as.uid, run_as.gid)
            yield descriptor
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _give(descriptor: int, run_as: RunAs | None) -> None:
    if run_as is not None:
        os.fchown(descriptor, run_as.uid, run_as.gid)

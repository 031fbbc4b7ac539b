"""How guests of `herder node` come from other machines and go there: TLS, with certificates that only nodes of the cluster have."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from herder.api.world import World
from herder.app.address import listen_on
from herder.app.node_papers import FromCluster, Given, Kept
from herder.app.node_serving import Serving
from herder.app.refusal import CANNOT_USE_FILE, Refusal
from herder.kube.trust import Material, Trust
from herder.nodes.local import MigrationNetwork
from herder.nodes.moving.papers import Lacking, Papers
from herder.nodes.moving.tls import TlsLink
from herder.nodes.runtimes.qemu import KeyPair, Wire
from herder.pki.files import write_private

log = structlog.get_logger()


class MigrationSettings(msgspec.Struct, frozen=True):
    node: str
    address: str
    # Where the files are kept that TLS needs.
    folder: Path
    # By which other nodes' certificates are known; nothing where nobody said.
    authority: Material
    # What the kubeconfig shows now.
    shown: Callable[[], Trust]
    # The first for the agent, the others for guests; None for any that are free.
    ports: tuple[int, int] | None = None
    certificate: Material = Material("--migration-cert")
    key: Material = Material("--migration-key")


def network_of(settings: MigrationSettings, serving: Serving | None, world: World) -> MigrationNetwork | None:
    """None where the node has nothing to show: then its guests move within this machine, over unix sockets."""
    kept = Kept(settings.node, settings.folder, settings.authority, world)
    papers = _papers(settings, serving, kept)
    if papers is None:
        return None
    _warn(papers)
    ports = (settings.ports[0] + 1, settings.ports[1]) if settings.ports else None
    wire = Wire(
        address=settings.address,
        name=settings.node,
        ports=ports,
        ca=kept.client.authority,
        client=KeyPair(kept.client.certificate, kept.client.key),
        server=KeyPair(kept.server.certificate, kept.server.key),
    )
    return MigrationNetwork(TlsLink(_listener(settings), papers), wire)


def _warn(papers: Papers) -> None:
    """Of what will not come by itself; a certificate that is yet to be approved is asked for where it is asked for."""
    try:
        papers.client()
    except Lacking as why:
        log.warning("no guest can leave for another machine", why=str(why))


def check(settings: MigrationSettings, world: World) -> None:
    """What was given by options, before anything starts. Raises Refusal."""
    kept = Kept(settings.node, settings.folder, settings.authority, world)
    try:
        if settings.certificate:
            Given(settings.certificate, settings.key, kept).check()
        elif settings.authority:
            kept.authorities()
    except Lacking as why:
        raise Refusal(str(why), CANNOT_USE_FILE) from None


def _papers(settings: MigrationSettings, serving: Serving | None, kept: Kept) -> Papers | None:
    if settings.certificate:
        return Given(settings.certificate, settings.key, kept)
    why = "the kubeconfig names no certificate-authority; give one with --migration-ca"
    if settings.authority:
        papers = FromCluster(settings.shown, serving, kept)
        if serving is not None:
            return papers
        try:
            papers.server()
        except Lacking as lacking:
            why = f"the cluster signs no certificates, and {lacking}"
        else:
            return papers
    log.info("guests are moved to nodes of this machine only", why=why)
    return None


def _listener(settings: MigrationSettings) -> socket.socket:
    """The same port as last time, where it is free: moves that were under way go on over it."""
    remembered = settings.folder / "port"
    listener = _bound(settings, remembered)
    listener.set_inheritable(False)
    settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(remembered, str(listener.getsockname()[1]).encode())
    return listener


def _bound(settings: MigrationSettings, remembered: Path) -> socket.socket:
    if settings.ports is not None:
        return listen_on("--migration-ports", settings.address, settings.ports[0])
    with contextlib.suppress(OSError, ValueError, Refusal):
        return listen_on("--migration-address", settings.address, int(remembered.read_text()))
    return listen_on("--migration-address", settings.address, 0)

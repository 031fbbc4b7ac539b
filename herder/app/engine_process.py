"""The engine's own process: the embedded API server on an inherited socket and on a unix socket."""

from __future__ import annotations

import functools
import os
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from herder.api.world import RealWorld
from herder.app import garbage
from herder.app.children import HOPELESS
from herder.app.data_directory import DataDirectory
from herder.app.file_shares import share_out
from herder.app.identities import doors
from herder.app.reloading import Reloading
from herder.app.scrape import Scraper, metrics_socket
from herder.app.stopping import Stop
from herder.kit.tasks import keep_running
from herder.net.crowd import limits_of
from herder.net.files import raise_file_limit
from herder.pki import reading
from herder.server.access.tokens import KEY_FILE, Signer
from herder.server.fairness import NodeWaits
from herder.server.housekeeping.own_nodes import OwnNodes
from herder.server.http import HttpServer, server_context
from herder.server.kubelets import Kubelets
from herder.server.node_identity import client_tls
from herder.server.resource_metrics.sampler import AT_ONCE, DOUBTED_AT_ONCE, Sampler
from herder.server.running import Running, open_store
from herder.server.store import DataError

log = structlog.get_logger()
# Of our own processes, on their unix sockets: in all, and for each node that has an agent of its own. A watch is a connection.
OWN_CONNECTIONS = 64
OF_A_NODE = 16
# Questions of what nodes use: of one node at a time. The half of them all is one user's, which the sampler is.
SAMPLED_AT_ONCE = (4, 2 * (AT_ONCE + DOUBTED_AT_ONCE))
# The disk did something that leaves open what is on it: end at once, and read the truth again.
DISK_FAILED = 70


async def run(
    directory: DataDirectory, listen_fd: int, ready_fd: int, nodes: OwnNodes | None = None, others: Sequence[str] = ()
) -> int:
    """`others` are the processes beside us, whose numbers are shown with ours."""
    nodes = nodes or OwnNodes()
    stop = Stop(supervised=True)
    stop.listen()
    try:
        store = open_store(directory.path)
    except DataError as error:
        print(f"herder: {error}", file=sys.stderr)
        return HOPELESS
    store.on_failure = _on_disk_failure
    pki = directory.pki
    try:
        signer = Signer.open(pki)
    except (ValueError, TypeError) as error:
        why = f"is not the key that tokens are signed with: {error}; put it back, or remove it and hand out new tokens"
        print(f"herder: {pki / KEY_FILE}: {why}", file=sys.stderr)
        return HOPELESS
    running = Running(store, RealWorld(), signer, own_nodes=nodes)
    scraper = Scraper({name: metrics_socket(directory, name) for name in others})
    running.router.information.other_processes = scraper.scrape
    tls = client_tls(pki / "kubelet-client.crt", pki / "kubelet-client.key", pki / "ca.crt")
    own = OWN_CONNECTIONS + len(nodes.with_doors) * OF_A_NODE + AT_ONCE + DOUBTED_AT_ONCE
    share = share_out(raise_file_limit(), own)
    kubelets = running.engine.kubelets = Kubelets(tls, NodeWaits(*share.node_waits))
    # Ways of its own: who reads logs takes nothing from it, nor it from them.
    sampled = Kubelets(tls, NodeWaits(*SAMPLED_AT_ONCE))
    sampler = Sampler(running.engine, sampled)
    server = HttpServer(running.router, limits=limits_of(share.clients))
    context = server_context(pki / "server.crt", pki / "server.key", pki / "ca.crt")
    await server.start(socket.socket(fileno=listen_fd), context, directory.socket, doors(directory, nodes.with_doors))
    shown = {"server": context, "kubelet-client": tls}
    reloading = [keep_running(one.keep(), "renewed certificates") for one in _reloading(running, pki, shown)]
    try:
        await running.start()
        reloading.append(keep_running(sampler.run(), "samples of what nodes use"))
        # What was loaded stays: the collector need not look at it again and again.
        garbage.look_seldom()
        os.write(ready_fd, b"r")
        os.close(ready_fd)
        await stop.wait()
    finally:
        for task in reloading:
            task.cancel()
        await server.stop()
        await kubelets.close()
        await sampled.close()
        await running.stop()
    return 0


def _reloading(running: Running, pki: Path, shown: Mapping[str, ssl.SSLContext]) -> list[Reloading]:
    ends = running.router.information.metrics.certificate_ends
    ends("ca", reading.ends((pki / "ca.crt").read_bytes()))
    return [Reloading(context, pki, name, functools.partial(ends, name)) for name, context in shown.items()]


def _on_disk_failure(error: BaseException) -> None:
    log.error("the disk failed, the engine stops and is started anew", error=str(error))
    os._exit(DISK_FAILED)

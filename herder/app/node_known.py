"""The endpoint of a node that has joined an embedded engine, which signs nothing on request: the node shows what it is known by.

`herder user add system:node:NAME --group system:nodes` gives a certificate that is good for both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from herder.api.world import World
from herder.app.kubeconfig import ENGINE_AT_NODES
from herder.app.node_papers import FromCluster, Kept
from herder.app.node_serving import LOOK_AGAIN, EndpointSettings, running
from herder.kube.trust import Material
from herder.nodes.endpoint import Endpoint, Named, server_tls
from herder.nodes.moving.papers import Lacking, Papers

log = structlog.get_logger()


@contextlib.asynccontextmanager
async def served(settings: EndpointSettings, world: World) -> AsyncGenerator[Endpoint | None]:
    """None where the node has nothing to show: then nobody can look in."""
    with TemporaryDirectory(prefix="herder-node-") as folder:
        authority = Material("the cluster's authority", data=settings.authority)
        papers = FromCluster(settings.shown, None, Kept(settings.node, Path(folder), authority, world))
        try:
            identity = papers.server()
        except Lacking as why:
            log.info("logs and consoles of this node cannot be asked for", why=str(why))
            yield None
            return
        tls = server_tls(identity.certificate, identity.key, identity.authority)
        endpoint = Endpoint(tls, Named((ENGINE_AT_NODES,)), world)
        async with running(endpoint, settings, _keep(papers, tls)):
            yield endpoint


async def _keep(papers: Papers, tls: ssl.SSLContext) -> None:
    """Who renews the kubeconfig has nothing to restart."""
    while True:
        await asyncio.sleep(LOOK_AGAIN)
        try:
            identity = papers.server()
            tls.load_cert_chain(identity.certificate, identity.key)
        except (Lacking, OSError) as why:
            log.warning("the certificate for logs and consoles is not renewed", why=str(why))

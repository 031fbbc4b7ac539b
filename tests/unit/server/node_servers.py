"""Something that answers as a node, over real TLS, with whatever certificate and in whatever way a test wants."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from aiohttp import web

from herder.pki.authority import Authority, Pair
from herder.server.fairness import NodeWaits
from herder.server.kubelets import Kubelets, NodePatience, Place
from herder.server.node_identity import client_tls

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOG = "/containerLogs/shop/web/compute"
QUICK = NodePatience(connect=5.0, head=0.3, piece=0.3)


def node_pair(authority: Authority, name: str) -> Pair:
    return authority.client(f"system:node:{name}", ("system:nodes",), hosts=(name,))


class Cluster:
    """An authority, and files of what it signs."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.make()
        self._folder = folder
        self._count = 0
        (folder / "ca.crt").write_bytes(self.authority.pair.certificate)

    def files(self, pair: Pair) -> tuple[Path, Path]:
        self._count += 1
        made = self._folder / f"{self._count}.crt", self._folder / f"{self._count}.key"
        for path, data in zip(made, pair, strict=True):
            path.write_bytes(data)
        return made

    @asynccontextmanager
    async def node(self, name: str, pair: Pair, handler: Handler) -> AsyncGenerator[Place]:
        """It says that it is node NAME, and is who the pair says."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.files(pair))
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        try:
            yield Place(name, "127.0.0.1", runner.addresses[0][1])
        finally:
            await runner.cleanup()

    def left(self, handler: Handler) -> AbstractAsyncContextManager[Place]:
        """A node that is who it says."""
        return self.node("left", node_pair(self.authority, "left"), handler)

    @asynccontextmanager
    async def engine(self, waits: NodeWaits | None = None, patience: NodePatience | None = None) -> AsyncGenerator[Kubelets]:
        tls = client_tls(*self.files(self.authority.client("kube-apiserver-kubelet-client", ())), self._folder / "ca.crt")
        kubelets = Kubelets(tls, waits or NodeWaits(20, 40), patience)
        try:
            yield kubelets
        finally:
            await kubelets.close()

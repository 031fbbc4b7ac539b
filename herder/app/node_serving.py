"""The endpoint of a node that has joined a cluster: where its API server asks for logs and consoles, and what we show it.

At first that is a certificate that we made ourselves, as a kubelet does: most API servers do not check it. At the same time the
cluster is asked to sign one (`kubernetes.io/kubelet-serving`), which a person has to approve; those that check need that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog

from herder.api.world import World
from herder.app.address import listen_on
from herder.app.refusal import Refusal
from herder.app.signing import Wish, ask, new_key, private, signed
from herder.kit import tasks
from herder.kube.client import Client
from herder.kube.errors import Forbidden, KubeError, NotFound
from herder.kube.trust import Trust
from herder.nodes.endpoint import Endpoint, Reviewed, Tokens, server_tls
from herder.pki import reading
from herder.pki.authority import Authority, Pair
from herder.pki.files import write_private

log = structlog.get_logger()
SIGNER = "kubernetes.io/kubelet-serving"
ASK_AGAIN = 10.0
LOOK_AGAIN = 3600.0
# Of its life: then the next one is asked for, and there is time to approve it.
RENEW_AFTER = 0.7
Say = Callable[[str], None]


class EndpointSettings(msgspec.Struct, frozen=True):
    node: str
    address: str
    port: int
    # By which certificates of API servers are known.
    authority: bytes
    # What the API server knows us by. The embedded engine signs nothing else, and takes that.
    shown: Callable[[], Trust]
    # Where the certificate is kept; None where it is made anew at each start.
    folder: Path | None = None
    # Whether a signed certificate may be asked for at all: only a node may, not a fleet.
    signable: bool = True


@contextlib.asynccontextmanager
async def served(client: Client, world: World, settings: EndpointSettings, say: Say) -> AsyncGenerator[tuple[Endpoint, Serving]]:
    with contextlib.ExitStack() as stack:
        folder = settings.folder or Path(stack.enter_context(TemporaryDirectory(prefix="herder-node-")))
        serving = Serving(folder, settings, world)
        callers = Reviewed(client)
        endpoint = Endpoint(serving.tls, callers, world, tokens=Tokens(client, callers))
        async with running(endpoint, settings, serving.keep(client, say)):
            yield endpoint, serving


@contextlib.asynccontextmanager
async def running(endpoint: Endpoint, settings: EndpointSettings, keep: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """`keep` sees to it meanwhile that what is shown stays good."""
    keeping = tasks.keep_running(keep, "renewal of the certificate for logs and consoles", may_return=True)
    try:
        await endpoint.start(listen_on("--address", settings.address, settings.port))
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await endpoint.stop()


class Serving:
    def __init__(self, folder: Path, settings: EndpointSettings, world: World) -> None:
        self._settings = settings
        self._world = world
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.certificate, self.key, self._authority = folder / "serving.crt", folder / "serving.key", folder / "clients.crt"
        # The request that somebody has yet to approve, if any.
        self.asked = ""
        write_private(self._authority, settings.authority)
        self._renew_at = self._due()
        if not self._renew_at:
            self._write(Authority.make().server((settings.address, settings.node)))
        self.tls: ssl.SSLContext = server_tls(self.certificate, self.key, self._authority, tokens=True)

    async def keep(self, client: Client, say: Say) -> None:
        """For as long as it is let. New connections see the new certificate; old ones do not notice."""
        while self._settings.signable:
            wait = self._renew_at - self._world.now()
            if wait > 0:
                await asyncio.sleep(min(wait, LOOK_AGAIN))
                continue
            try:
                await self._ask(client, say)
            except (NotFound, Forbidden) as error:
                log.info("no signed certificate for logs and consoles", why=str(error))
                return
            except (KubeError, Refusal, OSError) as error:
                log.warning("no signed certificate for logs and consoles, will ask again", error=str(error))
                await asyncio.sleep(LOOK_AGAIN if isinstance(error, Refusal) else ASK_AGAIN)

    async def _ask(self, client: Client, say: Say) -> None:
        key = new_key()
        hosts = (self._settings.address, self._settings.node)
        name = await ask(client.transport, Wish(self._settings.node, "herder-serving-", SIGNER, "server auth", hosts), key)
        self.asked = name
        say(f"for kubectl logs and for guests that come from other machines: kubectl certificate approve {name}")
        self._write(Pair(await signed(client.transport, name), private(key)))
        self.tls.load_cert_chain(self.certificate, self.key)
        self.asked = ""
        self._renew_at = self._due()
        log.info("the cluster has signed our certificate for logs and consoles")

    def _write(self, pair: Pair) -> None:
        write_private(self.key, pair.key)
        write_private(self.certificate, pair.certificate)

    def _due(self) -> float:
        """When to ask for the next one; 0 where the one that is kept is of no use: none, our own, or of another address."""
        try:
            certificate, key = self.certificate.read_bytes(), self.key.read_bytes()
            known = reading.chains_to(certificate, self._settings.authority) and reading.fits(certificate, key)
            if not known or self._settings.address not in reading.hosts(certificate):
                return 0.0
            begun, ends = reading.begins(certificate), reading.ends(certificate)
        except (OSError, ValueError):
            return 0.0
        due = begun + RENEW_AFTER * (ends - begun)
        return due if ends > self._world.now() else 0.0


def address_towards(server: str) -> str:
    """Ours, on the way to that server: it can reach us there, unless something in between changes addresses."""
    split = urlsplit(server)
    with contextlib.suppress(OSError):
        family, _, _, _, target = socket.getaddrinfo(split.hostname, split.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect(target)
            return asking.getsockname()[0]
    return "127.0.0.1"

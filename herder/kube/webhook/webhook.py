"""The part that every replica runs: it shows the shared certificate and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.webhook.certificates import Certificates
from herder.kube.webhook.keeping import Kept
from herder.kube.webhook.metrics import Metrics
from herder.kube.webhook.rules import Advice, Evictions, Rule
from herder.kube.webhook.server import ReviewServer
from herder.kube.webhook.settings import Settings
from herder.pki import reading
from herder.pki.authority import Pair

log = structlog.get_logger()
RETRY = 5.0


class Webhook:
    def __init__(
        self,
        client: Client,
        world: World,
        settings: Settings,
        registry: CollectorRegistry,
        rules: Sequence[Rule] = (),
        evictions: Evictions | None = None,
        advice: Sequence[Advice] = (),
    ) -> None:
        """`rules` and `advice` are those that look at other objects, too; the others are always asked."""
        self._settings = settings
        self._certificates = Certificates(client, world, settings)
        self._metrics = Metrics(registry)
        self._server = ReviewServer(rules, self._metrics, evictions, advice=advice)
        self._shown: Pair | None = None
        self.port = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """For ever; cancel ends it. OSError where the address cannot be listened on."""
        await self._first_look()
        self.port = await self._server.start(self._settings.host, self._settings.port)
        log.info("the webhook listens", host=self._settings.host, port=self.port)
        self.ready.set()
        try:
            while True:
                await asyncio.sleep(self._settings.look_again)
                await self.look()
        finally:
            await self._server.stop()

    async def _first_look(self) -> None:
        """Without a certificate there is nothing to listen with."""
        while True:
            if await self.look():
                return
            await asyncio.sleep(RETRY)

    async def look(self) -> bool:
        """Renews what is due and shows what is newest. False when it could not: what is shown then still is good for long."""
        try:
            self._show(await self._certificates.look())
        except KubeError as error:
            log.warning("the webhook's certificate could not be looked at; trying again", why=str(error))
            return False
        return True

    def _show(self, kept: Kept) -> None:
        self._server.know(kept.words)
        if kept.serving == self._shown:
            return
        self._server.show(kept.serving)
        self._shown = kept.serving
        self._metrics.shows(reading.ends(kept.serving.certificate))

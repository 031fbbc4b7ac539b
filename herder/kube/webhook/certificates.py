"""The Secret that all replicas share: made by whoever comes first, renewed by whoever notices first."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import structlog

from herder.api.core import Secret
from herder.api.crds import PART_OF, PRODUCT
from herder.api.world import World
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from herder.kube.resources import SECRETS, Key
from herder.kube.webhook import keeping
from herder.kube.webhook.keeping import Kept
from herder.kube.webhook.registered import trusts
from herder.kube.webhook.settings import SECRET, Settings

log = structlog.get_logger()
ATTEMPTS = 10


class Certificates:
    def __init__(self, client: Client, world: World, settings: Settings) -> None:
        self._client = client
        self._world = world
        self._settings = settings
        self._key = Key(settings.namespace, SECRET)

    async def look(self) -> Kept:
        """What is kept, once all that was due is done. Who loses a race takes what the winner wrote."""
        for _ in range(ATTEMPTS):
            secret = await self._client.find(SECRETS, self._key)
            kept = self._read(secret)
            trusted = kept is not None and kept.coming is not None and await trusts(self._client, kept.coming.certificate)
            wanted = keeping.plan(kept, self._world.now(), self._settings, trusted)
            if wanted is kept or await self._write(secret, wanted):
                return wanted
        raise KubeError(f"the Secret {self._key} changes faster than it can be written")

    async def remove(self) -> None:
        """For those who uninstall, and only after nobody is registered any more."""
        with contextlib.suppress(NotFound):
            await self._client.delete(SECRETS, self._key)

    def _read(self, secret: Secret | None) -> Kept | None:
        if secret is None:
            return None
        kept = keeping.read(secret.data)
        if kept is None:
            log.warning("the webhook's Secret holds no certificates of ours: they are made anew", secret=str(self._key))
        return kept

    async def _write(self, secret: Secret | None, wanted: Kept) -> bool:
        """False where somebody else was faster. Never over something that we have not read."""
        try:
            if secret is None:
                await self._create(wanted)
            else:
                metadata = {"resourceVersion": secret.metadata.resource_version, "uid": secret.metadata.uid}
                await self._client.patch(SECRETS, self._key, {"metadata": metadata, "data": _encoded(wanted)})
        except (AlreadyExists, Conflict):
            return False
        log.info("the webhook's certificates were renewed", secret=str(self._key))
        return True

    async def _create(self, wanted: Kept) -> None:
        data = {name: value for name, value in _encoded(wanted).items() if value is not None}
        metadata = {"name": self._key.name, "namespace": self._key.namespace, "labels": {PART_OF: PRODUCT}}
        document: dict[str, Any] = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
        try:
            await self._client.create(SECRETS, document)
        except NotFound as error:
            why = f"the webhook's certificate is for the namespace {self._key.namespace}, which is not there: run `herder install`"
            raise KubeError(why) from error


def _encoded(kept: Kept) -> dict[str, str | None]:
    """None is taken away by a merge patch."""
    return {name: None if value is None else base64.b64encode(value).decode() for name, value in kept.data().items()}

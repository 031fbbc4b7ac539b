"""Secrets and ConfigMaps that the pods of a node mount, as its agent reads them."""

from __future__ import annotations

from herder.kube.client import Client
from herder.kube.resources import CONFIG_MAPS, SECRETS, Key


class FromCluster:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def secret(self, namespace: str, name: str) -> dict[str, bytes] | None:
        found = await self._client.find(SECRETS, Key(namespace, name))
        return found.data if found is not None else None

    async def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        found = await self._client.find(CONFIG_MAPS, Key(namespace, name))
        return found.data if found is not None else None

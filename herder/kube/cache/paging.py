"""Lists in pages, for servers that cannot send them as the beginning of a watch."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

from herder.api.meta import Identified
from herder.kube.cache.collector import collector_off
from herder.kube.cache.fresh import Fresh
from herder.kube.cache.reading import version_of
from herder.kube.client import PAGE, Client, Page, Selection
from herder.kube.errors import Expired
from herder.kube.resources import Resource

V = TypeVar("V", bound=Identified)


async def list_in_pages(
    client: Client, resource: Resource[V], selection: Selection, version: str, fresh: Fresh[V], patience: float
) -> int:
    """The resourceVersion of the list. Where its pages end in the middle because the server gave up that state, everything is asked
    for at once: such an answer cannot end."""
    try:
        return await _read_all(client, resource, selection, version, fresh, patience, PAGE)
    except Expired:
        fresh.start_again()
    return await _read_all(client, resource, selection, version, fresh, patience, 0)


async def _read_all(
    client: Client, resource: Resource[V], selection: Selection, version: str, fresh: Fresh[V], patience: float, limit: int
) -> int:
    first: int | None = None
    pages = client.pages(resource, selection, resource_version=version, limit=limit)
    async with contextlib.aclosing(pages):
        while True:
            async with asyncio.timeout(patience):
                page = await anext(pages, None)
            if page is None:
                return first or 0
            if first is None:
                first = version_of(page.metadata.resource_version or "")
            _take(page, fresh)


def _take(page: Page, fresh: Fresh[V]) -> None:
    with collector_off():
        for item in page.items:
            fresh.add(bytes(item))

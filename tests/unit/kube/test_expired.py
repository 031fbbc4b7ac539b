"""Those who come back too late are told so, by name, through our own client."""

from __future__ import annotations

from pathlib import Path

import pytest

from herder.app.inside import InsideTransport
from herder.kube.client import Client, Selection
from herder.kube.errors import Expired
from herder.kube.resources import CONFIG_MAPS
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside


@pytest.mark.slow
async def test_a_watch_and_a_page_from_before_the_compaction_have_expired(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside, Client(InsideTransport(inside.router, "test", user=ENGINE), "test") as client:
        for name in ("a", "b", "c"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
        pages = client.pages(CONFIG_MAPS, Selection("default"), limit=1)
        await anext(pages)
        await client.create(CONFIG_MAPS, {"metadata": {"name": "d"}}, "default")
        assert inside.store.compact(inside.store.revision)
        with pytest.raises(Expired) as late:
            await anext(pages)
        assert (late.value.code, late.value.passing) == (410, True)
        with pytest.raises(Expired, match="too old resource version"):
            async for _ in client.watch(CONFIG_MAPS, "1", Selection("default")):
                pass

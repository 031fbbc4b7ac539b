"""Objects that stand in each other's way and come together: all are decided on before the first is durable, and one is let in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from herder.api.registry import INSTANCE, MIGRATION, POLICY, KindInfo
from tests.unit.server.inside import Inside, engine_inside

Json = dict[str, Any]


async def _create(engine: Inside, info: KindInfo, name: str, spec: Json) -> int:
    place = "/namespaces/default" if info.namespaced else ""
    body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": name}, "spec": spec}
    code, _ = await engine.ask("POST", f"/apis/{info.api_version}{place}/{info.plural}", body)
    return code


async def test_of_many_that_come_together_one_is_let_in(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(INSTANCE, MIGRATION, POLICY), writing_takes_time=True) as engine:
        assert await _create(engine, INSTANCE, "web", {"domain": {}}) == 201
        for info, spec in ((MIGRATION, {"vmiName": "web"}), (POLICY, {"selectors": {"namespaceSelector": {"a": "b"}}})):
            codes = await asyncio.gather(*(_create(engine, info, f"n-{number}", spec) for number in range(10)))
            assert sorted(codes) == [201] + [422] * 9, info.kind

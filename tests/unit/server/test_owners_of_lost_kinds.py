"""What is owned by objects of a kind that is taken away goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.crds import widgets_definition
from tests.engines.waiting import eventually
from tests.unit.server.inside import config_map, engine_inside

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/w.example.com/v1/namespaces/default/widgets"
COUNT = 20


@pytest.mark.slow
async def test_all_that_they_own_goes_though_the_kind_is_gone_before(tmp_path: Path) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        **widgets_definition("w.example.com"),
    }
    async with engine_inside(tmp_path) as inside:
        assert (await inside.ask("POST", CRDS, definition))[0] == 201

        async def served() -> bool:
            return (await inside.ask("GET", WIDGETS))[0] == 200

        await eventually(served)
        for number in range(COUNT):
            widget = {"apiVersion": "w.example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}}
            made = (await inside.ask("POST", WIDGETS, widget))[1]
            named = {"apiVersion": "w.example.com/v1", "kind": "Widget", "name": f"w{number}", "uid": made["metadata"]["uid"]}
            owned = {**config_map(f"m{number}"), "metadata": {"name": f"m{number}", "ownerReferences": [named]}}
            assert (await inside.ask("POST", MAPS, owned))[0] == 201
        assert (await inside.ask("DELETE", f"{CRDS}/widgets.w.example.com"))[0] == 200

        async def none_left() -> bool:
            gone = (await inside.ask("GET", f"{CRDS}/widgets.w.example.com"))[0] == 404
            left = [one["metadata"]["name"] for one in (await inside.ask("GET", MAPS))[1]["items"]]
            return gone and not [name for name in left if name.startswith("m")]

        await eventually(none_left)

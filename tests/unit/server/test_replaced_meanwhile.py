"""What was judged is what is deleted: another object that came under its name meanwhile stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from herder.server.verbs import eviction, writing
from tests.unit.server.inside import Inside, config_map, engine_inside
from tests.unit.server.test_budgets import PODS, becomes, budget, pod

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"


async def replace(inside: Inside, name: str) -> str:
    """Another pod in its place; its uid."""
    gone = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    assert (await inside.ask("DELETE", f"{PODS}/{name}", gone))[0] == 200
    await pod(inside, name, "web")
    return (await inside.ask("GET", f"{PODS}/{name}"))[1]["metadata"]["uid"]


def order(name: str, **options: Any) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options}


@pytest.mark.slow
@pytest.mark.parametrize("dry_run", [False, True])
async def test_an_eviction_leaves_a_pod_that_came_under_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    async with engine_inside(tmp_path) as inside:
        await pod(inside, "p", "web")
        await pod(inside, "q", "web")
        await budget(inside, "web", 1)
        await becomes(inside, "web", 1)
        spend, second = eviction._spend_budget, ""  # pyright: ignore[reportPrivateUsage]

        async def and_replaced(*words: Any) -> None:
            nonlocal second
            await spend(*words)
            second = await replace(inside, "p")

        monkeypatch.setattr(eviction, "_spend_budget", and_replaced)
        code, answer = await inside.ask("POST", f"{PODS}/p/eviction", order("p", **({"dryRun": ["All"]} if dry_run else {})))
        assert code in (404, 409), answer
        found = (await inside.ask("GET", f"{PODS}/p"))[1]
        assert found["metadata"]["uid"] == second
        assert "deletionTimestamp" not in found["metadata"]
        assert "DisruptionTarget" not in [one["type"] for one in found["status"]["conditions"]]


@pytest.mark.slow
async def test_a_deletion_of_many_leaves_what_came_after_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine_inside(tmp_path) as inside:
        for name in ("a", "b"):
            assert (await inside.ask("POST", MAPS, config_map(name, old="yes")))[0] == 201
        delete = writing.delete_one

        async def and_replaced(*words: Any) -> Any:
            done = await delete(*words)
            monkeypatch.undo()
            assert (await inside.ask("DELETE", f"{MAPS}/b"))[0] == 200
            assert (await inside.ask("POST", MAPS, config_map("b", new="yes")))[0] == 201
            return done

        monkeypatch.setattr(writing, "delete_one", and_replaced)
        assert (await inside.ask("DELETE", MAPS))[0] == 200
        listed = (await inside.ask("GET", MAPS))[1]["items"]
        assert {one["metadata"]["name"]: one["data"] for one in listed if one["metadata"]["name"] in "ab"} == {"b": {"new": "yes"}}

"""What time does to a disruption budget, and how its pods are found."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from herder.api.world import timestamp
from herder.server.budgets import BUDGETS
from herder.server.housekeeping.budgets import DELETION_SECONDS
from herder.server.housekeeping.disruptions import STALE_SECONDS
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, StillWorld, engine_inside

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"


async def pod(inside: Inside, name: str, app: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": spec}
    assert (await inside.ask("POST", PODS, body))[0] == 201
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert (await inside.ask("PATCH", f"{PODS}/{name}/status", status, content_type=MERGE))[0] == 200


async def budget(inside: Inside, app: str, least: int) -> None:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}
    assert (await inside.ask("POST", PDBS, body))[0] == 201


async def status_of(inside: Inside, name: str) -> Json:
    return (await inside.ask("GET", f"{PDBS}/{name}"))[1]["status"]


async def becomes(inside: Inside, name: str, allowed: int) -> Json:
    async def look() -> Json:
        status = await status_of(inside, name)
        assert (status["disruptionsAllowed"], status.get("observedGeneration")) == (allowed, 1)
        return status

    return await eventually(look)


async def evict(inside: Inside, name: str) -> tuple[int, Json]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return await inside.ask("POST", f"{PODS}/{name}/eviction", body)


@pytest.mark.slow
async def test_an_eviction_that_never_became_a_deletion_is_forgotten(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await pod(inside, "a", "x")
        await budget(inside, "x", 0)
        await becomes(inside, "x", 1)
        disrupted = {"status": {"disruptedPods": {"a": "2025-06-15T15:06:40Z"}}}
        assert (await inside.ask("PATCH", f"{PDBS}/x/status", disrupted, content_type=MERGE))[0] == 200
        assert (await becomes(inside, "x", 0))["disruptedPods"] == {"a": "2025-06-15T15:06:40Z"}
        world.seconds += DELETION_SECONDS + 1
        await inside.ask("PATCH", f"{PODS}/a", {"metadata": {"annotations": {"x": "y"}}}, content_type=MERGE)
        assert "disruptedPods" not in await becomes(inside, "x", 1)
        event = await told(inside, "NotDeleted")
        assert event["message"] == "Pod was expected by PDB default/x to be deleted but it wasn't"
        assert (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["type"]) == ("Pod", "a", "Warning")


async def told(inside: Inside, reason: str) -> Json:
    async def look() -> Json:
        events = (await inside.ask("GET", f"/api/v1/namespaces/default/events?fieldSelector=reason={reason}"))[1]["items"]
        return events[0] if events else {}

    return await eventually(look)


@pytest.mark.slow
async def test_what_is_told_of_one_budget_has_an_end(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await budget(inside, "x", 0)
        for number in range(60):
            change = {"metadata": {"annotations": {"number": str(number)}}}
            await inside.ask("PATCH", f"{PDBS}/x", change, content_type=MERGE)
            await asyncio.sleep(0)
        assert 1 < (await told(inside, "NoPods"))["count"] <= 25


async def disrupt(inside: Inside, since: float) -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": timestamp(since),
    }
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}, target]}}
    assert (await inside.ask("PATCH", f"{PODS}/a/status", status, content_type=MERGE))[0] == 200


async def said_to_go(inside: Inside) -> str:
    pod = (await inside.ask("GET", f"{PODS}/a"))[1]
    return next(one["status"] for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget")


async def touch(inside: Inside, value: str) -> None:
    await inside.ask("PATCH", f"{PODS}/a", {"metadata": {"annotations": {"x": value}}}, content_type=MERGE)
    # Those who keep house have had their turn when a later budget is counted.
    await budget(inside, value, 0)
    await becomes(inside, value, 0)


@pytest.mark.slow
async def test_a_pod_is_said_to_go_for_two_minutes_and_no_longer(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await pod(inside, "a", "x")
        await disrupt(inside, world.now())
        world.seconds += STALE_SECONDS - 1
        await touch(inside, "one")
        assert await said_to_go(inside) == "True"
        world.seconds += 1

        async def unsaid() -> bool:
            return await said_to_go(inside) == "False"

        await touch(inside, "two")
        await eventually(unsaid)


@pytest.mark.slow
async def test_also_one_whose_time_was_over_while_nobody_looked(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await pod(inside, "a", "x")
        await disrupt(inside, world.now())
    world.seconds += STALE_SECONDS
    async with engine_inside(tmp_path, world) as inside:

        async def unsaid() -> bool:
            return await said_to_go(inside) == "False"

        await eventually(unsaid)


@pytest.mark.slow
async def test_a_budget_that_nobody_has_counted_yet_refuses(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await pod(inside, "a", "x")
        await budget(inside, "x", 0)
        await becomes(inside, "x", 1)
        # From here to the eviction nobody else gets a turn: the store commits inline.
        served = inside.running.engine.served("policy", "v1", "poddisruptionbudgets")
        record = inside.store.latest(BUDGETS, "default/x")
        assert record is not None
        document = record.document()
        document["metadata"]["generation"] = 2
        await inside.running.engine.writes.amend(served, "default/x", lambda _: document, False)
        code, body = await evict(inside, "a")
        assert (code, body["details"]["retryAfterSeconds"]) == (429, 10)
        cause = {"reason": "DisruptionBudget", "message": "The disruption budget x is still being processed by the server."}
        assert body["details"]["causes"] == [cause]


@pytest.mark.slow
async def test_counting_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await pod(inside, "a", "x")
        await budget(inside, "x", 0)
        await becomes(inside, "x", 1)
    async with engine_inside(tmp_path) as inside:
        await pod(inside, "b", "x")
        await becomes(inside, "x", 2)


@pytest.mark.slow
async def test_thousands_of_budgets_do_not_slow_each_other_down(tmp_path: Path) -> None:
    """One budget per pod, as virtual machines have them: a change of one pod looks at one budget."""
    async with engine_inside(tmp_path) as inside:
        index = inside.running.engine.budgets
        for number in range(300):
            await budget(inside, f"vm-{number}", 1)
        await pod(inside, "a", "vm-7")
        record = inside.store.get("pods", "default/a")
        assert record is not None
        assert index.of_pod(record) == ["default/vm-7"]
        assert [one.name for one in index.pods_of("default/vm-7")] == ["a"]

        async def all_counted() -> bool:
            statuses = [one.document()["status"] for one in inside.store.scan(BUDGETS)]
            return all(one.get("observedGeneration") for one in statuses) and sum(one["currentHealthy"] for one in statuses) == 1

        await eventually(all_counted)
        looked: list[str] = []
        inside.store.listen(BUDGETS, lambda change: looked.append(change.record.name))
        await inside.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")

        async def counted() -> bool:
            return looked == ["vm-7"]

        await eventually(counted)

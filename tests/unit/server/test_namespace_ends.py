"""The end of a namespace where something is in its way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from herder.server import status
from herder.server.housekeeping import namespaces
from herder.server.housekeeping.namespace_conditions import LONGEST_MESSAGE, Remaining, said
from herder.server.housekeeping.recorder import About, Recorder, Told
from tests.behaviour.crds import widgets_definition
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, StillWorld, config_map, engine_inside

Json = dict[str, Any]
NAMESPACE = "/api/v1/namespaces/doomed"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOLD = "example.com/hold"
MERGE = "application/merge-patch+json"
RELEASED = {"metadata": {"finalizers": None}}


async def doomed(inside: Inside) -> None:
    await create(inside, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "doomed"}})


async def create(inside: Inside, path: str, body: Json) -> None:
    code, answer = await inside.ask("POST", path, body)
    assert code == 201, answer


def pod(name: str, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "registry.example.com/app:1"}]
    metadata = {"name": name, "finalizers": [HOLD]} if not spec else {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


async def condition(inside: Inside, kind: str) -> Json:
    found = (await inside.ask("GET", NAMESPACE))[1]["status"].get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


async def failed(inside: Inside) -> str:
    told = await condition(inside, "NamespaceDeletionContentFailure")
    return told["message"] if told.get("reason") == "ContentDeletionFailed" else ""


async def is_gone(inside: Inside, path: str = NAMESPACE) -> bool:
    return (await inside.ask("GET", path))[0] == 404


@pytest.mark.slow
async def test_it_goes_on_where_a_killed_engine_left_it(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await doomed(inside)
        await create(inside, f"{NAMESPACE}/pods", pod("held"))
        await create(inside, f"{NAMESPACE}/configmaps", config_map("later"))
        await inside.ask("DELETE", NAMESPACE)
        await eventually(lambda: condition(inside, "NamespaceContentRemaining"))
    async with engine_inside(tmp_path) as inside:
        assert not await is_gone(inside, f"{NAMESPACE}/configmaps/later")
        await inside.ask("PATCH", f"{NAMESPACE}/pods/held", RELEASED, content_type=MERGE)
        await eventually(lambda: is_gone(inside))
        assert await is_gone(inside, f"{NAMESPACE}/configmaps/later")


@pytest.mark.slow
async def test_one_object_that_cannot_be_deleted_keeps_none_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = namespaces.delete_one

    async def refused_once(engine: Any, served: Any, key: str, *rest: Any) -> Any:
        if key == "doomed/a":
            raise status.internal("the disk is full")
        return await delete(engine, served, key, *rest)

    monkeypatch.setattr(namespaces, "delete_one", refused_once)
    async with engine_inside(tmp_path) as inside:
        await doomed(inside)
        for name in ("a", "b"):
            await create(inside, f"{NAMESPACE}/configmaps", config_map(name))
        await inside.ask("DELETE", NAMESPACE)
        message = await eventually(lambda: failed(inside))
        assert message == "Failed to delete all resource types, 1 remaining: Internal error occurred: the disk is full"
        assert await is_gone(inside, f"{NAMESPACE}/configmaps/b")
        monkeypatch.undo()
        await eventually(lambda: is_gone(inside))


@pytest.mark.slow
async def test_a_pod_that_does_not_end_in_its_time_is_told_of(tmp_path: Path) -> None:
    world = StillWorld()
    async with engine_inside(tmp_path, world) as inside:
        await doomed(inside)
        await create(inside, f"{NAMESPACE}/pods", pod("stuck", nodeName="nowhere", terminationGracePeriodSeconds=7))
        await inside.ask("DELETE", NAMESPACE)
        await eventually(lambda: condition(inside, "NamespaceContentRemaining"))
        assert not await failed(inside)
        world.seconds += 8
        # Something that happens to the pod lets us look again before the clock of the loop does.
        await inside.ask("PATCH", f"{NAMESPACE}/pods/stuck", {"metadata": {"finalizers": [HOLD]}}, content_type=MERGE)
        await inside.ask("PATCH", f"{NAMESPACE}/pods/stuck", RELEASED, content_type=MERGE)
        unexpected = "unexpected items still remain in namespace: doomed for gvr: /v1, Resource=pods"
        assert await eventually(lambda: failed(inside)) == f"Failed to delete all resource types, 1 remaining: {unexpected}"


@pytest.mark.slow
async def test_a_kind_that_is_taken_away_with_its_objects_in_it_holds_nothing_up(tmp_path: Path) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        **widgets_definition("w.example.com"),
    }
    crd, widgets = f"{CRDS}/widgets.w.example.com", "/apis/w.example.com/v1/namespaces/doomed/widgets"
    async with engine_inside(tmp_path) as inside:
        await doomed(inside)
        await create(inside, CRDS, definition)

        async def served() -> bool:
            return (await inside.ask("GET", widgets))[0] == 200

        await eventually(served)
        widget = {"apiVersion": "w.example.com/v1", "kind": "Widget", "metadata": {"name": "held", "finalizers": [HOLD]}}
        await create(inside, widgets, widget)
        await inside.ask("DELETE", NAMESPACE)
        await inside.ask("DELETE", crd)
        await eventually(lambda: condition(inside, "NamespaceContentRemaining"))
        assert not await is_gone(inside)
        # By hand, as people do who are tired of waiting.
        await inside.ask("PATCH", crd, RELEASED, content_type=MERGE)
        await eventually(lambda: is_gone(inside))


@pytest.mark.slow
@pytest.mark.parametrize("gone", [False, True])
async def test_an_event_that_comes_late_leaves_nothing_in_it(tmp_path: Path, gone: bool) -> None:
    async with engine_inside(tmp_path) as inside:
        await doomed(inside)
        if not gone:
            await create(inside, f"{NAMESPACE}/pods", pod("held"))
        await inside.ask("DELETE", NAMESPACE)
        await eventually(lambda: is_gone(inside) if gone else condition(inside, "NamespaceContentRemaining"))
        recorder = Recorder(inside.running.engine)
        for namespace in ("doomed", "default"):
            recorder.tell(Told(About("policy/v1", "PodDisruptionBudget", namespace, "web", "u"), "Normal", "NoPods", "no pods"))
        telling = asyncio.create_task(recorder.worker.run())

        async def the_other_is_told() -> bool:
            return bool(list(inside.store.scan("events", "default/")))

        await eventually(the_other_is_told)
        telling.cancel()
        assert list(inside.store.scan("events", "doomed/")) == []


def test_finalizers_without_number_do_not_make_the_namespace_too_large() -> None:
    remaining = Remaining()
    remaining.add("secrets.", 5000, {f"{number}.example.com/{'x' * 200}": 1 for number in range(5000)})
    told = said([], remaining, "2025-06-15T15:06:40Z")
    assert len(told) == 5
    assert max(len(one["message"]) for one in told) <= LONGEST_MESSAGE + 1

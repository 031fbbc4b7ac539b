"""Every verb of our own client, and every way in which a server can say no, on both engines."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import structlog

from herder.api.core import ConfigMap
from herder.kube.client import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH, Client, Selection
from herder.kube.errors import (
    AlreadyExists,
    ApiStatusError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
)
from herder.kube.resources import BUDGETS, CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS, Key, Resource
from tests.behaviour.clients import admin_of, cluster_of, connected, write_kubeconfig
from tests.behaviour.crds import definition, install
from tests.behaviour.disruptions import NOBODY, budget, budget_status, eviction, running_pod
from tests.behaviour.manifests import absent_node, config_map, node, pod
from tests.engines.api import Api
from tests.engines.engine import Engine
from tests.engines.resources import CONFIG_MAPS as STORED_MAPS
from tests.engines.waiting import eventually


@pytest.fixture(scope="module")
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with connected(engine.kubeconfig) as made:
        yield made


async def test_what_was_created_is_read_and_found(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace)
    assert (made.name, made.namespace, made.data) == ("a", namespace, {"k": "v"})
    assert (await client.get(CONFIG_MAPS, Key(namespace, "a"))).uid == made.uid
    assert await client.find(CONFIG_MAPS, Key(namespace, "a")) is not None
    assert await client.find(CONFIG_MAPS, Key(namespace, "b")) is None


async def test_a_document_may_name_its_own_namespace(client: Client, namespace: str) -> None:
    assert (await client.create(CONFIG_MAPS, config_map("a", namespace=namespace))).namespace == namespace


async def test_a_list_is_all_pages_of_what_was_selected(client: Client, namespace: str) -> None:
    for number in range(5):
        await client.create(CONFIG_MAPS, config_map(f"m{number}", labels={"odd": str(number % 2)}), namespace)
    odd = await client.list(CONFIG_MAPS, Selection(namespace, labels="odd=1"))
    assert [one.name for one in odd.items] == ["m1", "m3"]
    assert int(odd.resource_version)
    named = await client.list(CONFIG_MAPS, Selection(namespace, fields="metadata.name=m4"))
    assert [one.name for one in named.items] == ["m4"]
    pages = [len(page.items) async for page in client.pages(CONFIG_MAPS, Selection(namespace, labels="odd"), limit=2)]
    assert pages == [2, 2, 1]


async def test_each_patch_does_what_its_type_says(client: Client, namespace: str) -> None:
    key = Key(namespace, "a")
    await client.create(CONFIG_MAPS, config_map("a", {"x": "1", "y": "2"}), namespace)
    assert (await client.patch(CONFIG_MAPS, key, {"data": {"x": None}})).data == {"y": "2"}
    added = [{"op": "add", "path": "/data/z", "value": "3"}]
    assert (await client.patch(CONFIG_MAPS, key, added, content_type=JSON_PATCH)).data == {"y": "2", "z": "3"}
    replaced = {"data": {"$patch": "replace", "only": "this"}}
    assert (await client.patch(CONFIG_MAPS, key, replaced, content_type=STRATEGIC_PATCH)).data == {"only": "this"}


async def test_a_status_is_patched_at_its_own_place(client: Client, api: Api, unique: Callable[..., str]) -> None:
    name = unique("node")
    await client.create(NODES, node(name))
    patched = await client.patch(NODES, Key("", name), {"status": {"capacity": {"cpu": "3"}}}, subresource="status")
    assert patched.status is not None and patched.status.capacity
    await client.delete(NODES, Key("", name))


async def test_an_apply_takes_away_what_it_no_longer_says(client: Client, api: Api, namespace: str) -> None:
    key = Key(namespace, "a")
    assert (await client.apply(CONFIG_MAPS, key, {"data": {"x": "1", "y": "2"}})).data == {"x": "1", "y": "2"}
    assert (await client.apply(CONFIG_MAPS, key, {"data": {"x": "1"}})).data == {"x": "1"}
    stored = (await api.get(STORED_MAPS, "a", namespace)).ok
    assert [(one["manager"], one["operation"]) for one in stored["metadata"]["managedFields"]] == [("herder-test", "Apply")]
    with pytest.raises(Conflict, match="herder-test"):
        await client.apply(CONFIG_MAPS, key, {"data": {"x": "2"}}, manager="another", force=False)
    assert APPLY_PATCH.endswith("yaml")


async def test_a_delete_hits_only_the_object_that_was_meant(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    key = Key(namespace, "a")
    with pytest.raises(Conflict, match="the UID in the precondition"):
        await client.delete(CONFIG_MAPS, key, uid="another")
    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        await client.delete(CONFIG_MAPS, key, uid=made.uid, resource_version="1")
    await client.delete(CONFIG_MAPS, key, uid=made.uid, propagation="Background")
    assert await client.find(CONFIG_MAPS, key) is None


async def test_a_pod_goes_at_once_when_no_grace_is_given(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", nodeName=absent_node(namespace)), namespace)
    await client.delete(PODS, Key(namespace, "p"), grace_period_seconds=0)
    assert await client.find(PODS, Key(namespace, "p")) is None


async def test_a_pod_is_bound_by_its_subresource(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("p", schedulerName=NOBODY), namespace)
    target = {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}
    await client.post(PODS, Key(namespace, "p"), "binding", binding)
    assert (await client.get(PODS, Key(namespace, "p"))).spec.node_name == "somewhere"


@pytest.mark.slow
async def test_a_watch_says_what_happened_and_ends_when_the_server_ends_it(client: Client, namespace: str) -> None:
    start = (await client.list(CONFIG_MAPS, Selection(namespace))).resource_version
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    await client.patch(CONFIG_MAPS, Key(namespace, "a"), {"data": {"k": "v"}})
    await client.delete(CONFIG_MAPS, Key(namespace, "a"))
    selection = Selection(namespace, fields="metadata.name=a")
    seen = [event.type async for event in client.watch(CONFIG_MAPS, start, selection, seconds=1)]
    assert [kind for kind in seen if kind != "BOOKMARK"] == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_can_be_left_and_the_client_used_on(client: Client, namespace: str) -> None:
    start = (await client.list(CONFIG_MAPS, Selection(namespace))).resource_version
    events = client.watch(CONFIG_MAPS, start, Selection(namespace))
    first = asyncio.ensure_future(anext(events))
    await client.create(CONFIG_MAPS, config_map("a"), namespace)
    assert (await asyncio.wait_for(first, 15)).type == "ADDED"
    await events.aclose()
    assert await client.find(CONFIG_MAPS, Key(namespace, "a")) is not None


async def test_each_refusal_is_an_error_of_its_own(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(AlreadyExists) as exists:
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
    assert (exists.value.code, exists.value.reason, exists.value.passing) == (409, "AlreadyExists", False)
    with pytest.raises(NotFound) as missing:
        await client.get(CONFIG_MAPS, Key(namespace, "b"))
    assert str(missing.value) == 'configmaps "b" not found'
    with pytest.raises(Conflict) as conflict:
        await client.patch(CONFIG_MAPS, Key(namespace, "a"), {"metadata": {"resourceVersion": "1", "uid": made.uid}})
    assert conflict.value.passing
    with pytest.raises(Invalid) as invalid:
        await client.create(CONFIG_MAPS, config_map("Not A Name"), namespace)
    assert invalid.value.details["causes"][0]["field"] == "metadata.name"
    with pytest.raises(ApiStatusError) as bad:
        await client.list(CONFIG_MAPS, Selection(namespace, labels="a=b=c"))
    assert (bad.value.code, bad.value.reason) == (400, "BadRequest")


async def test_somebody_without_rights_is_forbidden(engine: Engine, namespace: str, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", cluster_of(engine), admin_of(engine, **{"as": "nobody"}))
    async with connected(path) as nobody:
        with pytest.raises(Forbidden, match='User "nobody" cannot list resource "secrets"') as refused:
            await nobody.list(SECRETS, Selection(namespace))
        assert refused.value.passing
        with pytest.raises(Forbidden):
            async for _ in nobody.watch(SECRETS, "0", Selection(namespace)):
                pass


async def test_a_page_that_cannot_be_gone_on_with_is_no_list(client: Client, namespace: str) -> None:
    with pytest.raises(ApiStatusError):
        await client.watch(CONFIG_MAPS, "nonsense", Selection(namespace)).__anext__()


@pytest.mark.only_on("kubernetes", "the embedded engine remembers an hour; tests/unit/kube/test_expired.py moves its clock")
async def test_a_state_that_is_long_gone_has_expired(client: Client, api: Api, group: str) -> None:
    body = definition(group)
    await install(api, body)
    widgets = Resource(group=group, version="v1", plural="widgets", kind="Widget", namespaced=True, view=ConfigMap)
    with pytest.raises(Expired, match="too old resource version") as gone:
        async for _ in client.watch(widgets, "1", seconds=5):
            pass
    assert (gone.value.code, gone.value.passing) == (410, True)


async def test_a_disruption_budget_says_not_now(client: Client, api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "p", "app")
    await budget(api, namespace, "app", minAvailable=1)

    async def judged() -> bool:
        return (await budget_status(api, namespace, "app")).get("currentHealthy") == 1

    await eventually(judged)
    with pytest.raises(TooManyRequests, match="disruption budget"):
        await client.post(PODS, Key(namespace, "p"), "eviction", eviction("p"))
    await client.delete(BUDGETS, Key(namespace, "app"))


async def test_a_key_without_a_name_is_never_taken_for_all_objects(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("kept"), namespace)
    for verb in (client.get, client.delete):
        with pytest.raises(ValueError, match="without a name"):
            await verb(CONFIG_MAPS, Key(namespace, ""))
    assert await client.find(CONFIG_MAPS, Key(namespace, "kept")) is not None


async def test_names_that_need_quoting_reach_the_server_as_they_are(client: Client) -> None:
    for name in ("a b", "ä", "a?b", "a#b", "a+b&c=d"):
        with pytest.raises(NotFound) as missing:
            await client.get(NAMESPACES, Key("", name))
        assert f'"{name}"' in str(missing.value)


async def test_selectors_that_need_quoting_reach_the_server_as_they_are(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("a", labels={"x/y": "1"}), namespace)
    found = await client.list(CONFIG_MAPS, Selection(namespace, labels="x/y in (1, 2), !z"))
    assert [one.name for one in found.items] == ["a"]


async def test_a_warning_of_the_server_is_logged_once(client: Client, namespace: str) -> None:
    with structlog.testing.capture_logs() as logs:
        for name in ("a", "b"):
            await client.create(CONFIG_MAPS, {**config_map(name), "nonsense": 1}, namespace)
    told = [entry for entry in logs if "nonsense" in str(entry)]
    assert len(told) == 1
    assert told[0] == {"event": 'unknown field "nonsense"', "log_level": "warning", "by": "the API server"}

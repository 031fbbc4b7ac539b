"""The official Python client, used as its own documentation uses it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]


def _part(name: str) -> Any:
    """Untyped: what it says of its own types is not what it returns, and reading all of it takes the type checker a minute."""
    return import_module(f"kubernetes.{name}")


client, config, dynamic, watch, informers = map(_part, ("client", "config", "dynamic", "watch", "informer"))
aio, aio_config, aio_watch = map(_part, ("aio.client", "aio.config", "aio.watch"))
ApiException: type[Any] = client.ApiException
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATIENCE = 15


@pytest.fixture(scope="module")
def connected(kubeconfig: Path) -> Iterator[Any]:
    with config.new_client_from_config(config_file=str(kubeconfig)) as made:
        yield made


@pytest.fixture(scope="module")
def core(connected: Any) -> Any:
    return client.CoreV1Api(connected)


def config_map(name: str, data: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data or {"k": "v"})


def names(items: list[Any]) -> list[str]:
    return [item.metadata.name for item in items]


def test_an_object_lives_from_create_to_delete(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, config_map("a"))
    assert (made.data, made.metadata.namespace) == ({"k": "v"}, namespace)
    assert made.metadata.creation_timestamp is not None
    made.data["k"] = "w"
    replaced = core.replace_namespaced_config_map("a", namespace, made)
    assert replaced.data == {"k": "w"}
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("a", namespace, made)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "w"}
    core.delete_namespaced_config_map("a", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("a", namespace)
    assert gone.value.status == 404


def test_lists_are_selected_and_paged(core: Any, namespace: str) -> None:
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"c{number}", labels={"odd": str(number % 2)}))
    assert names(core.list_namespaced_config_map(namespace, label_selector="odd=1").items) == ["c1", "c3"]
    assert names(core.list_namespaced_config_map(namespace, field_selector="metadata.name=c2").items) == ["c2"]
    found: list[str] = []
    token = None
    while token != "":
        page = core.list_namespaced_config_map(namespace, label_selector="odd", limit=2, _continue=token)
        found += names(page.items)
        token = page.metadata._continue or ""
    assert found == [f"c{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"data": {"k": None, "new": "1"}}),
        ("application/json-patch+json", [{"op": "remove", "path": "/data/k"}, {"op": "add", "path": "/data/new", "value": "1"}]),
    ],
    ids=["merge", "json"],
)
def test_an_object_is_patched(core: Any, namespace: str, kind: str, patch: Any) -> None:
    core.create_namespaced_config_map(namespace, config_map("a", {"k": "v", "other": "x"}))
    patched = core.patch_namespaced_config_map("a", namespace, patch, _content_type=kind)
    assert patched.data == {"new": "1", "other": "x"}


def test_an_object_is_patched_strategically(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("a"))
    patched = core.patch_namespaced_config_map("a", namespace, {"data": {"new": "1"}}, _content_type=STRATEGIC)
    assert patched.data == {"k": "v", "new": "1"}


def test_a_watch_goes_on_from_a_list(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("before"))
    start = core.list_namespaced_config_map(namespace, label_selector="mine").metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a", labels={"mine": "1"}))
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}}, _content_type=MERGE)
    core.delete_namespaced_config_map("a", namespace)
    seen: list[tuple[str, str]] = []
    watching = watch.Watch()
    for event in watching.stream(
        core.list_namespaced_config_map,
        namespace,
        label_selector="mine",
        resource_version=start,
        timeout_seconds=PATIENCE,
    ):
        seen.append((event["type"], event["object"].data["k"]))
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == [("ADDED", "v"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_a_watch_ends_when_its_time_is_over(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("a", labels={"mine": "1"}))
    stream = watch.Watch().stream(core.list_namespaced_config_map, namespace, label_selector="mine", timeout_seconds=1)
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [("ADDED", "a")]


def test_an_informer_keeps_up(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("before", labels={"mine": "1"}))
    informer = informers.SharedInformer(core.list_namespaced_config_map, namespace=namespace, label_selector="mine")
    told = {kind: threading.Event() for kind in ("ADDED", "MODIFIED", "DELETED")}
    for kind, event in told.items():
        informer.add_event_handler(kind, _when_named("a", event))
    informer.start()
    try:
        core.create_namespaced_config_map(namespace, config_map("a", labels={"mine": "1"}))
        assert told["ADDED"].wait(PATIENCE)
        assert sorted(names(informer.cache.list())) == ["a", "before"]
        core.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}}, _content_type=MERGE)
        assert told["MODIFIED"].wait(PATIENCE)
        core.delete_namespaced_config_map("a", namespace)
        assert told["DELETED"].wait(PATIENCE)
        assert names(informer.cache.list()) == ["before"]
    finally:
        informer.stop()


def _when_named(name: str, event: threading.Event) -> Any:
    return lambda obj: event.set() if obj.metadata.name == name else None


def test_other_groups_have_their_own_api(connected: Any, namespace: str) -> None:
    apps = client.AppsV1Api(connected)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.example.com/app:1"}]}}
    body: Json = {"metadata": {"name": "web"}, "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}}
    made = apps.create_namespaced_deployment(namespace, body)
    assert (made.spec.replicas, made.spec.strategy.type) == (0, "RollingUpdate")
    scale = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 2}}, _content_type=MERGE)
    assert scale.spec.replicas == 2
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 2


def test_what_is_wrong_is_an_exception_with_its_reason(core: Any, namespace: str) -> None:
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_config_map(namespace, config_map("Wrong_Name"))
    assert refused.value.status == 422
    assert "metadata.name" in str(refused.value.body)


def test_a_definition_is_used_through_the_api_of_custom_objects(connected: Any, namespace: str, definition: Json) -> None:
    _install(connected, definition)
    custom, group = client.CustomObjectsApi(connected), definition["spec"]["group"]
    where = (group, "v1", namespace, "sheep")
    body: Json = {"apiVersion": f"{group}/v1", "kind": "Sheep", "metadata": {"name": "dolly"}, "spec": {"wool": 1}}
    made = custom.create_namespaced_custom_object(*where, body)
    assert made["metadata"]["generation"] == 1
    changed = custom.patch_namespaced_custom_object(*where, "dolly", {"spec": {"wool": 2}}, _content_type=MERGE)
    assert changed["metadata"]["generation"] == 2
    status = custom.patch_namespaced_custom_object_status(*where, "dolly", {"status": {"shorn": True}}, _content_type=MERGE)
    assert (status["status"], status["metadata"]["generation"]) == ({"shorn": True}, 2)
    assert [item["metadata"]["name"] for item in custom.list_namespaced_custom_object(*where)["items"]] == ["dolly"]
    custom.delete_namespaced_custom_object(*where, "dolly")
    assert custom.list_namespaced_custom_object(*where)["items"] == []


def test_the_dynamic_client_finds_kinds_by_itself(connected: Any, namespace: str, definition: Json) -> None:
    _install(connected, definition)
    finder = dynamic.DynamicClient(connected)
    sheep = finder.resources.get(api_version=f"{definition['spec']['group']}/v1", kind="Sheep")
    body = {"apiVersion": sheep.group_version, "kind": "Sheep", "metadata": {"name": "dolly"}, "spec": {"wool": 1}}
    made = sheep.create(body=body, namespace=namespace)
    assert made.spec.wool == 1
    sheep.patch(body={"metadata": {"name": "dolly"}, "spec": {"wool": 2}}, namespace=namespace, content_type=MERGE)
    assert sheep.get(name="dolly", namespace=namespace).spec.wool == 2
    assert names(sheep.get(namespace=namespace).items) == ["dolly"]
    seen = next(iter(sheep.watch(namespace=namespace, timeout=PATIENCE)))
    assert (seen["type"], seen["object"].metadata.name) == ("ADDED", "dolly")
    sheep.delete(name="dolly", namespace=namespace)
    assert sheep.get(namespace=namespace).items == []
    maps = finder.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, namespace=namespace)
    assert maps.get(name="a", namespace=namespace).metadata.name == "a"


def test_the_dynamic_client_applies(connected: Any, namespace: str) -> None:
    maps = dynamic.DynamicClient(connected).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    applied = maps.server_side_apply(body=body, namespace=namespace, field_manager="tests")
    assert applied.metadata.managedFields[0].operation == "Apply"


async def test_the_asynchronous_client_reads_writes_and_watches(kubeconfig: Path, namespace: str) -> None:
    async with await aio_config.new_client_from_config(config_file=str(kubeconfig)) as connected:
        core = aio.CoreV1Api(connected)
        start = (await core.list_namespaced_config_map(namespace, label_selector="mine")).metadata.resource_version
        await core.create_namespaced_config_map(namespace, {"metadata": {"name": "a", "labels": {"mine": "1"}}})
        await core.delete_namespaced_config_map("a", namespace)
        seen: list[str] = []
        where = {"namespace": namespace, "label_selector": "mine", "resource_version": start, "timeout_seconds": PATIENCE}
        async with aio_watch.Watch().stream(core.list_namespaced_config_map, **where) as stream:
            async for event in stream:
                seen.append(event["type"])
                if event["type"] == "DELETED":
                    break
        assert seen == ["ADDED", "DELETED"]


def _install(connected: Any, definition: Json) -> None:
    """Made, and waited for as the client would: by its condition."""
    extensions = client.ApiextensionsV1Api(connected)
    extensions.create_custom_resource_definition(definition)
    watching = watch.Watch()
    only = f"metadata.name={definition['metadata']['name']}"
    for event in watching.stream(extensions.list_custom_resource_definition, field_selector=only, timeout_seconds=PATIENCE):
        conditions = event["object"].status.conditions or []
        if any(one.type == "Established" and one.status == "True" for one in conditions):
            watching.stop()
            return
    raise AssertionError("the definition was never established")

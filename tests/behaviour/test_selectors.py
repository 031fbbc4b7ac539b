"""Label and field selectors choose what a list holds."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import absent_node, config_map, pod
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SECRETS

OBJECTS = {"a": {"t": "web", "n": "1"}, "b": {"t": "db", "n": "2"}, "c": {"t": "web", "n": "10"}, "d": {"x": ""}}


async def fill(api: Api, namespace: str) -> None:
    for name, labels in OBJECTS.items():
        await api.create(SECRETS, config_map(name, labels=labels), namespace)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("t=web", "ac"),
        ("t==web", "ac"),
        ("t!=web", "bd"),
        ("t in (web,db)", "abc"),
        ("t in (web, other),n=10", "c"),
        ("t notin (web)", "bd"),
        ("t", "abc"),
        ("!t", "d"),
        ("x=", "d"),
        ("n>1", "bc"),
        ("n<10", "ab"),
        ("t=web,n!=1", "c"),
        ("", "abcd"),
        ("t=none", ""),
    ],
)
async def test_a_label_selector_chooses(api: Api, namespace: str, selector: str, names: str) -> None:
    await fill(api, namespace)
    assert (await api.list(SECRETS, namespace, labelSelector=selector)).names == list(names)


@pytest.mark.parametrize("selector", ["a=b=c", "a in", "a in (", "a=b/c", "!a=b", "a>b"])
async def test_a_label_selector_that_cannot_be_read_is_a_bad_request(api: Api, namespace: str, selector: str) -> None:
    (await api.list(SECRETS, namespace, labelSelector=selector)).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=b", "b"),
        ("metadata.name==b", "b"),
        ("metadata.name!=b", "acd"),
        ("metadata.name=b,metadata.name=c", ""),
        ("metadata.namespace=elsewhere", ""),
        ("type=Opaque,metadata.name!=a", "bcd"),
    ],
)
async def test_a_field_selector_chooses(api: Api, namespace: str, selector: str, names: str) -> None:
    await fill(api, namespace)
    assert (await api.list(SECRETS, namespace, fieldSelector=selector)).names == list(names)


async def test_label_and_field_selectors_must_both_hold(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    assert (await api.list(SECRETS, namespace, labelSelector="t=web", fieldSelector="metadata.name!=a")).names == ["c"]


async def test_pods_are_chosen_by_node_and_phase(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("free"), namespace)
    await api.create(PODS, pod("placed", nodeName=absent_node(namespace), restartPolicy="Never", schedulerName="mine"), namespace)
    await api.patch(PODS, "placed", {"status": {"phase": "Running"}}, namespace, "status")

    async def chosen(selector: str) -> list[str]:
        return (await api.list(PODS, namespace, fieldSelector=selector)).names

    assert await chosen(f"spec.nodeName={absent_node(namespace)}") == ["placed"]
    assert await chosen("spec.nodeName=") == ["free"]
    assert await chosen("spec.nodeName!=") == ["placed"]
    assert await chosen("status.phase=Running") == ["placed"]
    assert await chosen("status.phase!=Running") == ["free"]
    assert await chosen("spec.restartPolicy=Never,spec.schedulerName=mine") == ["placed"]


async def test_events_are_chosen_by_what_they_are_about(api: Api, namespace: str) -> None:
    about = {"kind": "Pod", "namespace": namespace, "name": "p", "uid": "u1"}
    for name, reason in {"a": "Started", "b": "Killed"}.items():
        event = {**config_map(name), "involvedObject": about, "reason": reason, "type": "Normal"}
        assert (await api.create(EVENTS, event, namespace)).code == 201
    found = await api.list(EVENTS, namespace, fieldSelector="involvedObject.kind=Pod,involvedObject.uid=u1,reason=Killed")
    assert found.names == ["b"]


async def test_namespaces_are_chosen_by_phase(api: Api, namespace: str) -> None:
    assert namespace in (await api.list(NAMESPACES, fieldSelector="status.phase=Active")).names
    assert namespace not in (await api.list(NAMESPACES, fieldSelector="status.phase=Terminating")).names


@pytest.mark.parametrize("selector", ["data.k=v", "spec.nodeName=a", "nonsense"])
async def test_a_field_that_cannot_be_selected_is_a_bad_request(api: Api, namespace: str, selector: str) -> None:
    (await api.list(CONFIG_MAPS, namespace, fieldSelector=selector)).refused(400, "BadRequest")


async def test_a_list_over_all_namespaces_is_selected_too(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    mark = unique()
    await api.create(CONFIG_MAPS, config_map("a", labels={"mark": mark}), namespace)
    found = (await api.list(CONFIG_MAPS, labelSelector=f"mark={mark}")).items
    assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found] == [(namespace, "a")]
    inside = await api.list(CONFIG_MAPS, fieldSelector=f"metadata.namespace={namespace},metadata.name=a")
    assert inside.names == ["a"]

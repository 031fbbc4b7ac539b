"""A definition says which of its fields can be selected by, and may say so later than its objects are there."""

from collections.abc import Callable

from tests.behaviour.crds import definition, install, version, widget
from tests.engines.api import Api
from tests.engines.resources import CRDS, Resource
from tests.engines.waiting import eventually


async def make_selectable(api: Api, name: str, *paths: str) -> None:
    patch = [{"op": "add", "path": "/spec/versions/0/selectableFields", "value": [{"jsonPath": path} for path in paths]}]
    (await api.patch(CRDS, name, patch, kind="json")).ok  # noqa: B018


async def until_selectable(api: Api, resource: Resource, namespace: str, field: str) -> None:
    async def answers() -> bool:
        return (await api.list(resource, namespace, fieldSelector=f"{field}=x")).code == 200

    await eventually(answers)


async def test_a_field_that_becomes_selectable_selects_among_the_objects_that_are_there(
    api: Api, namespace: str, unique: Callable[..., str]
) -> None:
    body = definition(f"{unique('late')}.example.com", [version(selectableFields=[{"jsonPath": ".spec.colour"}])])
    resource = await install(api, body)
    for name, colour, code in (("a", "red", "x"), ("b", "red", "y"), ("c", "green", "x")):
        (await api.create(resource, widget(name, {"colour": colour, "code": code}), namespace)).ok  # noqa: B018
    assert (await api.list(resource, namespace, fieldSelector="spec.colour=red")).names == ["a", "b"]

    await make_selectable(api, body["metadata"]["name"], ".spec.colour", ".spec.code")
    await until_selectable(api, resource, namespace, "spec.code")
    assert (await api.list(resource, namespace, fieldSelector="spec.code=x")).names == ["a", "c"]
    assert (await api.list(resource, namespace, fieldSelector="spec.code=x,spec.colour=red")).names == ["a"]


async def test_a_watch_by_a_field_that_becomes_selectable_sees_what_was_there_and_what_leaves_it(
    api: Api, namespace: str, unique: Callable[..., str]
) -> None:
    body = definition(f"{unique('late')}.example.com", [version(selectableFields=[{"jsonPath": ".spec.colour"}])])
    resource = await install(api, body)
    for name, code in (("a", "x"), ("b", "y")):
        (await api.create(resource, widget(name, {"code": code}), namespace)).ok  # noqa: B018
    assert (await api.list(resource, namespace, fieldSelector="spec.colour=red")).names == ["a", "b"]

    await make_selectable(api, body["metadata"]["name"], ".spec.colour", ".spec.code")
    await until_selectable(api, resource, namespace, "spec.code")
    async with api.watch(resource, namespace, fieldSelector="spec.code=x") as watch:
        assert (await watch.next()).brief == ("ADDED", "a")
        await api.patch(resource, "a", {"spec": {"code": "z"}}, namespace)
        assert (await watch.next()).brief == ("DELETED", "a")
        await api.patch(resource, "b", {"spec": {"code": "x"}}, namespace)
        assert (await watch.next()).brief == ("ADDED", "b")

"""How a namespace begins and ends."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import config_map, pod
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, PODS, SECRETS
from tests.engines.waiting import eventually

HOLD = "example.com/hold"
DELETED = "All content successfully deleted, may be waiting on finalization"
ALL_WELL = [
    ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "False", "ContentDeleted", DELETED),
    ("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
]


async def doomed(api: Api, unique: Callable[..., str]) -> str:
    """A namespace that is going, and cannot: it holds a secret with a finalizer."""
    name = unique()
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(SECRETS, config_map("held", finalizers=[HOLD]), name)
    await api.create(SECRETS, config_map("free"), name)
    (await api.delete(NAMESPACES, name)).ok  # noqa: B018
    return name


async def release(api: Api, name: str) -> None:
    await api.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, name)


async def test_a_new_namespace_is_active(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    created = (await api.create(NAMESPACES, {"metadata": {"name": name, "labels": {"x": "y"}}})).ok
    assert created["status"] == {"phase": "Active"}
    assert created["spec"] == {"finalizers": ["kubernetes"]}
    assert created["metadata"]["labels"] == {"x": "y", "kubernetes.io/metadata.name": name}
    await api.delete(NAMESPACES, name)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_the_namespaces_that_everybody_expects_exist(api: Api, name: str) -> None:
    assert (await api.get(NAMESPACES, name)).ok["status"]["phase"] == "Active"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_they_cannot_be_deleted(api: Api, name: str) -> None:
    reply = await api.delete(NAMESPACES, name)
    assert reply.refused(403, "Forbidden") == {"name": name, "kind": "namespaces"}
    assert reply.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_an_empty_namespace_goes(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    answer = (await api.delete(NAMESPACES, name)).ok
    assert answer["kind"] == "Namespace"
    assert answer["status"]["phase"] == "Terminating"
    assert answer["metadata"]["deletionTimestamp"]
    await eventually(lambda: gone(api, name), patience=30)


async def gone(api: Api, name: str) -> bool:
    return (await api.get(NAMESPACES, name)).code == 404


async def test_its_contents_go_first_and_what_a_finalizer_holds_holds_it(api: Api, unique: Callable[..., str]) -> None:
    name = await doomed(api, unique)
    await api.create(PODS, pod("a"), name)

    async def only_the_held_is_left() -> bool:
        return (await api.list(SECRETS, name)).names == ["held"]

    async def the_held_is_going() -> bool:
        return "deletionTimestamp" in (await api.get(SECRETS, "held", name)).ok["metadata"]

    await eventually(only_the_held_is_left, patience=30)
    await eventually(the_held_is_going, patience=30)
    assert (await api.get(NAMESPACES, name)).ok["status"]["phase"] == "Terminating"
    remaining = "Some resources are remaining: secrets. has 1 resource instances"
    held = f"Some content in the namespace has finalizers remaining: {HOLD} in 1 resource instances"
    changed = [
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", remaining),
        ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", held),
    ]
    await says(api, name, [*ALL_WELL[:3], *changed])
    await release(api, name)
    await eventually(lambda: gone(api, name), patience=40)


async def test_its_pods_go_before_everything_else(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    await api.create(PODS, pod("held", {"finalizers": [HOLD]}), name)
    await api.create(CONFIG_MAPS, config_map("later"), name)
    await api.delete(NAMESPACES, name)

    async def looked_at() -> bool:
        return bool((await api.get(NAMESPACES, name)).ok["status"].get("conditions"))

    await eventually(looked_at, patience=30)
    assert "deletionTimestamp" in (await api.get(PODS, "held", name)).ok["metadata"]
    assert "deletionTimestamp" not in (await api.get(CONFIG_MAPS, "later", name)).ok["metadata"]
    await api.patch(PODS, "held", {"metadata": {"finalizers": None}}, name)
    await eventually(lambda: gone(api, name), patience=40)


async def test_an_empty_one_that_somebody_else_holds_says_that_all_is_done(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    created = (await api.create(NAMESPACES, {"metadata": {"name": name}})).ok
    await api.update(NAMESPACES, {**created, "spec": {"finalizers": ["kubernetes", HOLD]}}, "", "finalize")
    await api.delete(NAMESPACES, name)

    async def only_the_other_holds() -> bool:
        return (await api.get(NAMESPACES, name)).ok["spec"]["finalizers"] == [HOLD]

    await eventually(only_the_other_holds, patience=30)
    await says(api, name, ALL_WELL)
    last = (await api.get(NAMESPACES, name)).ok
    assert (await api.update(NAMESPACES, {**last, "spec": {}}, "", "finalize")).code == 200
    await eventually(lambda: gone(api, name), patience=30)


async def says(api: Api, name: str, wanted: list[tuple[str, str, str, str]]) -> None:
    """Waits until its conditions are these, in this order."""

    async def said() -> bool:
        conditions = (await api.get(NAMESPACES, name)).ok["status"].get("conditions", [])
        found = [(one["type"], one["status"], one["reason"], one["message"]) for one in conditions]
        assert found == wanted
        return True

    await eventually(said, patience=30)


async def test_nothing_can_be_created_in_a_namespace_that_is_going(api: Api, unique: Callable[..., str]) -> None:
    name = await doomed(api, unique)

    async def refused() -> Json:
        reply = await api.create(SECRETS, config_map("late"), name, dryRun="All")
        return reply.body if reply.code == 403 else {}

    body = await eventually(refused)
    assert body["reason"] == "Forbidden"
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated", "field": "metadata.namespace"}
    assert body["details"] == {"name": "late", "kind": "secrets", "causes": [cause]}
    assert body["message"].endswith(f"unable to create new content in namespace {name} because it is being terminated")
    await release(api, name)


async def test_what_is_still_there_can_be_changed(api: Api, unique: Callable[..., str]) -> None:
    name = await doomed(api, unique)
    assert (await api.patch(SECRETS, "held", {"metadata": {"labels": {"x": "y"}}}, name)).ok["metadata"]["labels"] == {"x": "y"}
    await release(api, name)


async def test_deleting_it_again_changes_nothing(api: Api, unique: Callable[..., str]) -> None:
    name = await doomed(api, unique)
    marked = (await api.get(NAMESPACES, name)).ok["metadata"]["deletionTimestamp"]
    again = await api.delete(NAMESPACES, name)
    assert again.ok["metadata"]["deletionTimestamp"] == marked
    await release(api, name)


async def test_its_finalizers_are_written_at_an_address_of_their_own(api: Api, namespace: str) -> None:
    found = (await api.get(NAMESPACES, namespace)).ok
    ignored = await api.patch(NAMESPACES, namespace, {"spec": {"finalizers": []}})
    assert ignored.ok["spec"] == {"finalizers": ["kubernetes"]}
    wanted = {**found, "spec": {"finalizers": ["kubernetes", HOLD]}}
    assert (await api.update(NAMESPACES, wanted, "", "finalize")).ok["spec"] == {"finalizers": ["kubernetes", HOLD]}
    again = (await api.get(NAMESPACES, namespace)).ok
    assert (await api.update(NAMESPACES, {**again, "spec": found["spec"]}, "", "finalize")).code == 200


async def test_what_lives_in_one_namespace_is_not_in_another(api: Api, namespace: str) -> None:
    await api.create(SECRETS, config_map("mine"), namespace)
    assert (await api.get(SECRETS, "mine", "default")).code == 404
    assert "mine" not in (await api.list(SECRETS, "default")).names

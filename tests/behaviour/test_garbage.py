"""What becomes of objects whose owners go."""

from collections.abc import Callable
from typing import Any

from tests.behaviour.manifests import config_map, owner
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, PRIORITY_CLASSES, SECRETS
from tests.engines.waiting import eventually

HOLD = "example.com/hold"
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-4000-8000-000000000001"}


async def parent(api: Api, namespace: str, name: str = "parent") -> Json:
    return (await api.create(CONFIG_MAPS, config_map(name), namespace)).ok


async def child(api: Api, namespace: str, owners: list[Json], name: str = "child", **metadata: Any) -> Json:
    return (await api.create(SECRETS, config_map(name, ownerReferences=owners, **metadata), namespace)).ok


async def settle(api: Api, namespace: str) -> None:
    """Waits until the collector has had its turn: it has removed something that it certainly must."""
    await child(api, namespace, [NOBODY], "canary")
    await eventually(lambda: absent(api, namespace, "canary"))


async def absent(api: Api, namespace: str, name: str) -> bool:
    return (await api.get(SECRETS, name, namespace)).code == 404


async def test_in_the_background_the_owner_goes_at_once_and_what_it_owns_follows(api: Api, namespace: str) -> None:
    await child(api, namespace, [owner(await parent(api, namespace))])
    await api.delete(CONFIG_MAPS, "parent", namespace, {"propagationPolicy": "Background"})
    assert (await api.get(CONFIG_MAPS, "parent", namespace)).code == 404
    await eventually(lambda: absent(api, namespace, "child"))


async def test_background_is_the_default(api: Api, namespace: str) -> None:
    middle = await child(api, namespace, [owner(await parent(api, namespace))], "middle")
    await child(api, namespace, [owner(middle)], "last")
    await api.delete(CONFIG_MAPS, "parent", namespace)
    await eventually(lambda: absent(api, namespace, "last"))
    assert await absent(api, namespace, "middle")


async def test_in_the_foreground_the_owner_waits_for_those_that_block(api: Api, namespace: str) -> None:
    await child(api, namespace, [owner(await parent(api, namespace), block=True)], finalizers=[HOLD])
    reply = await api.delete(CONFIG_MAPS, "parent", namespace, {"propagationPolicy": "Foreground"})
    assert reply.ok["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert reply.ok["metadata"]["deletionTimestamp"]

    async def marked() -> bool:
        return "deletionTimestamp" in (await api.get(SECRETS, "child", namespace)).ok["metadata"]

    await eventually(marked)
    await settle(api, namespace)
    assert (await api.get(CONFIG_MAPS, "parent", namespace)).code == 200
    await api.patch(SECRETS, "child", {"metadata": {"finalizers": None}}, namespace)

    async def parent_is_gone() -> bool:
        return (await api.get(CONFIG_MAPS, "parent", namespace)).code == 404

    await eventually(parent_is_gone)


async def test_in_the_foreground_the_owner_does_not_wait_for_those_that_do_not_block(api: Api, namespace: str) -> None:
    await child(api, namespace, [owner(await parent(api, namespace), block=False)], finalizers=[HOLD])
    await api.delete(CONFIG_MAPS, "parent", namespace, {"propagationPolicy": "Foreground"})

    async def parent_is_gone() -> bool:
        return (await api.get(CONFIG_MAPS, "parent", namespace)).code == 404

    await eventually(parent_is_gone)
    await api.patch(SECRETS, "child", {"metadata": {"finalizers": None}}, namespace)
    await eventually(lambda: absent(api, namespace, "child"))


async def test_orphans_stay_and_forget_their_owner(api: Api, namespace: str) -> None:
    await child(api, namespace, [owner(await parent(api, namespace))])
    reply = await api.delete(CONFIG_MAPS, "parent", namespace, {"propagationPolicy": "Orphan"})
    assert reply.code == 200

    async def parent_is_gone() -> bool:
        return (await api.get(CONFIG_MAPS, "parent", namespace)).code == 404

    await eventually(parent_is_gone)
    await settle(api, namespace)
    assert "ownerReferences" not in (await api.get(SECRETS, "child", namespace)).ok["metadata"]


async def test_an_object_whose_owner_never_was_is_collected(api: Api, namespace: str) -> None:
    await child(api, namespace, [NOBODY])
    await eventually(lambda: absent(api, namespace, "child"))


async def test_an_owner_of_the_same_name_but_another_uid_does_not_count(api: Api, namespace: str) -> None:
    await parent(api, namespace)
    await child(api, namespace, [{**NOBODY, "name": "parent"}])
    await eventually(lambda: absent(api, namespace, "child"))


async def test_an_object_stays_as_long_as_one_owner_does(api: Api, namespace: str) -> None:
    first, second = await parent(api, namespace, "first"), await parent(api, namespace, "second")
    await child(api, namespace, [owner(first), owner(second)])
    await api.delete(CONFIG_MAPS, "first", namespace)

    async def only_the_second_is_left() -> bool:
        references = (await api.get(SECRETS, "child", namespace)).ok["metadata"]["ownerReferences"]
        return [one["name"] for one in references] == ["second"]

    await eventually(only_the_second_is_left)
    await api.delete(CONFIG_MAPS, "second", namespace)
    await eventually(lambda: absent(api, namespace, "child"))


async def test_an_owner_in_another_namespace_does_not_count(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    elsewhere = unique()
    await api.create(NAMESPACES, {"metadata": {"name": elsewhere}})
    await child(api, namespace, [owner(await parent(api, elsewhere))])
    await eventually(lambda: absent(api, namespace, "child"))
    assert (await api.get(CONFIG_MAPS, "parent", elsewhere)).code == 200
    await api.delete(NAMESPACES, elsewhere)


async def test_a_cluster_wide_owner_counts_everywhere(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    name = unique()
    boss = (await api.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1})).ok
    await child(api, namespace, [owner(boss)])
    await settle(api, namespace)
    assert not await absent(api, namespace, "child")
    await api.delete(PRIORITY_CLASSES, name)
    await eventually(lambda: absent(api, namespace, "child"))

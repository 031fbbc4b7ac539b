"""Objects that own each other in a circle, deleted in the foreground: each would wait for the other."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import config_map, owner
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from tests.engines.waiting import eventually

FOREGROUND = {"propagationPolicy": "Foreground"}


async def circle(api: Api, namespace: str, *names: str) -> list[Json]:
    """Each owned by the one before it, the first by the last, and all of them block their owner's deletion."""
    made: list[Json] = []
    for name in names:
        owners = [owner(made[-1], block=True)] if made else []
        made.append((await api.create(SECRETS, config_map(name, ownerReferences=owners), namespace)).ok)
    closing = {"metadata": {"ownerReferences": [owner(made[-1], block=True)]}}
    made[0] = (await api.patch(SECRETS, names[0], closing, namespace)).ok
    return made


async def none_left(api: Api, namespace: str) -> bool:
    return not (await api.list(SECRETS, namespace)).names


@pytest.mark.parametrize("length", [2, 3, 5])
async def test_a_circle_of_owners_deleted_in_the_foreground_goes(api: Api, namespace: str, length: int) -> None:
    await circle(api, namespace, *(f"s{number}" for number in range(length)))
    assert (await api.delete(SECRETS, "s0", namespace, FOREGROUND)).code == 200
    await eventually(lambda: none_left(api, namespace), patience=30)


async def test_what_hangs_on_the_circle_goes_with_it(api: Api, namespace: str) -> None:
    _, second = await circle(api, namespace, "a", "b")
    leaf = config_map("leaf", ownerReferences=[owner(second, block=True)])
    await api.create(SECRETS, leaf, namespace)
    await api.delete(SECRETS, "a", namespace, FOREGROUND)
    await eventually(lambda: none_left(api, namespace), patience=30)


async def test_one_of_the_circle_that_somebody_else_owns_as_well_stays_with_them(api: Api, namespace: str) -> None:
    first, _ = await circle(api, namespace, "a", "b")
    outside = (await api.create(CONFIG_MAPS, config_map("outside"), namespace)).ok
    both = [owner(first, block=True), owner(outside, block=True)]
    await api.patch(SECRETS, "b", {"metadata": {"ownerReferences": both}}, namespace)
    await api.delete(SECRETS, "a", namespace, FOREGROUND)

    async def only_the_other_is_left() -> bool:
        return (await api.list(SECRETS, namespace)).names == ["b"]

    await eventually(only_the_other_is_left, patience=30)
    kept = (await api.get(SECRETS, "b", namespace)).ok["metadata"]
    assert [one["name"] for one in kept["ownerReferences"]] == ["outside"]
    assert "deletionTimestamp" not in kept


async def test_a_namespace_goes_though_what_is_in_it_waits_for_itself(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    made = (await api.create(SECRETS, config_map("self"), name)).ok
    await api.patch(SECRETS, "self", {"metadata": {"ownerReferences": [owner(made, block=True)]}}, name)
    await api.delete(SECRETS, "self", name, FOREGROUND)
    await api.delete(NAMESPACES, name)

    async def gone() -> bool:
        return (await api.get(NAMESPACES, name)).code == 404

    await eventually(gone, patience=40)

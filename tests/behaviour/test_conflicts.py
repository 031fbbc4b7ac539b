"""Two writers of one object: who was later is told, and nothing is lost."""

import asyncio

from tests.behaviour.manifests import config_map, workload
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, DEPLOYMENTS


async def test_an_update_of_a_version_that_is_no_longer_the_latest_is_a_conflict(api: Api, namespace: str) -> None:
    first = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace)).ok
    await api.update(CONFIG_MAPS, {**first, "data": {"k": "2"}}, namespace)
    late = await api.update(CONFIG_MAPS, {**first, "data": {"k": "3"}}, namespace)
    assert late.refused(409, "Conflict") == {"name": "a", "kind": "configmaps"}
    assert late.message.startswith('Operation cannot be fulfilled on configmaps "a": the object has been modified')
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok["data"] == {"k": "2"}


async def test_a_conflict_names_the_group_of_the_resource(api: Api, namespace: str) -> None:
    first = (await api.create(DEPLOYMENTS, workload("a"), namespace)).ok
    await api.patch(DEPLOYMENTS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    late = await api.update(DEPLOYMENTS, first, namespace)
    assert late.refused(409, "Conflict") == {"name": "a", "group": "apps", "kind": "deployments"}
    assert 'on deployments.apps "a"' in late.message


async def test_an_update_without_a_version_overwrites(api: Api, namespace: str) -> None:
    first = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}, labels={"x": "y"}), namespace)).ok
    second = (await api.update(CONFIG_MAPS, config_map("a", {"k": "2"}), namespace)).ok
    assert second["data"] == {"k": "2"}
    assert "labels" not in second["metadata"]
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_a_patch_conflicts_only_when_it_names_a_stale_version(api: Api, namespace: str) -> None:
    first = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace)).ok
    assert (await api.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace)).code == 200
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"k": "3"}}
    assert (await api.patch(CONFIG_MAPS, "a", stale, namespace)).refused(409, "Conflict") == {"name": "a", "kind": "configmaps"}
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok["data"] == {"k": "2"}


async def test_an_update_for_another_incarnation_is_a_conflict(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    other = await api.update(CONFIG_MAPS, config_map("a", uid="2f4e8a8c-0000-4000-8000-000000000000"), namespace)
    assert other.refused(409, "Conflict") == {"name": "a", "kind": "configmaps"}
    assert "Precondition failed: UID in precondition: 2f4e8a8c-0000-4000-8000-000000000000" in other.message


async def test_a_patch_cannot_change_the_uid(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.patch(CONFIG_MAPS, "a", {"metadata": {"uid": "other"}}, namespace)
    reply.refused(422, "Invalid")
    assert ("FieldValueInvalid", "metadata.uid") in reply.causes


async def test_of_many_writers_that_read_the_same_version_one_wins(api: Api, namespace: str) -> None:
    first = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok
    replies = await asyncio.gather(*[api.update(CONFIG_MAPS, {**first, "data": {"k": str(i)}}, namespace) for i in range(8)])
    assert sorted(reply.code for reply in replies) == [200] + [409] * 7
    winner = next(reply.body for reply in replies if reply.code == 200)
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == winner


async def test_patches_of_different_keys_at_once_all_hold(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    replies = await asyncio.gather(*[api.patch(CONFIG_MAPS, "a", {"data": {f"k{i}": "v"}}, namespace) for i in range(5)])
    assert [reply.code for reply in replies] == [200] * 5
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok["data"] == {f"k{i}": "v" for i in range(5)}


async def test_a_write_that_changes_nothing_keeps_the_version(api: Api, namespace: str) -> None:
    first = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace)).ok
    assert (await api.update(CONFIG_MAPS, first, namespace)).ok == first
    assert (await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1"}}, namespace)).ok == first


async def test_an_update_of_what_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    assert (await api.update(CONFIG_MAPS, config_map("a"), namespace)).refused(404, "NotFound") == {
        "name": "a",
        "kind": "configmaps",
    }
    with_version = await api.update(CONFIG_MAPS, config_map("a", resourceVersion="5"), namespace)
    with_version.refused(404, "NotFound")

"""Two who want different things of one field."""

from typing import Any

from tests.behaviour.applying import apply, conflicts, owned
from tests.behaviour.manifests import config_map, workload
from tests.engines.api import Api, Reply
from tests.engines.resources import CONFIG_MAPS, REPLICA_SETS, ROLES


async def test_another_value_of_a_held_field_is_a_conflict(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)
    reply = await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace, manager="other")
    assert conflicts(reply) == [('conflict with "me"', ".data.k")]
    assert reply.message == 'Apply failed with 1 conflict: conflict with "me": .data.k'
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok["data"] == {"k": "v"}


async def test_all_conflicts_are_told_by_manager(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace, manager="alice")
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "w", "m": "w"}}, namespace, fieldManager="bob")
    reply = await apply(api, CONFIG_MAPS, "a", {"data": {"k": "x", "l": "x", "m": "x"}}, namespace)
    assert conflicts(reply) == [
        ('conflict with "alice"', ".data.l"),
        ('conflict with "bob" using v1', ".data.k"),
        ('conflict with "bob" using v1', ".data.m"),
    ]
    assert reply.message == (
        'Apply failed with 3 conflicts: conflicts with "alice":\n- .data.l\nconflicts with "bob" using v1:\n- .data.k\n- .data.m'
    )


async def test_force_takes_the_field_over(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace)
    after = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace, manager="other", force=True)).ok
    assert after["data"] == {"k": "w", "l": "v"}
    assert owned(after, "me") == {"f:data": {"f:l": {}}}
    assert owned(after, "other") == {"f:data": {"f:k": {}}}


async def test_one_who_lost_everything_is_forgotten(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)
    after = (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace, manager="other", force=True)).ok
    assert [one["manager"] for one in after["metadata"]["managedFields"]] == ["other"]


async def test_an_update_takes_over_from_an_applier_without_asking(api: Api, namespace: str) -> None:
    await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace)
    after = (await api.patch(CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace, fieldManager="bob")).ok
    assert owned(after, "me") == {"f:data": {"f:l": {}}}
    assert conflicts(await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v", "l": "v"}}, namespace)) == [
        ('conflict with "bob" using v1', ".data.k")
    ]


async def test_applying_and_updating_are_two_managers_though_of_one_name(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace, fieldManager="me")
    reply = await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace)
    assert conflicts(reply) == [('conflict with "me" using v1', ".data.k")]
    after = (await apply(api, CONFIG_MAPS, "a", {"data": {"l": "w"}}, namespace)).ok
    assert owned(after, "me", "Update") == {"f:data": {".": {}, "f:k": {}}}
    assert owned(after, "me") == {"f:data": {"f:l": {}}}


async def test_the_same_value_is_no_conflict(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace, fieldManager="maker")
    assert (await apply(api, CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).code == 200


async def test_a_list_or_map_of_one_piece_conflicts_as_a_whole(api: Api, namespace: str) -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    await apply(api, ROLES, "a", {"rules": [rule]}, namespace)
    reply = await apply(api, ROLES, "a", {"rules": [{**rule, "verbs": ["list"]}]}, namespace, manager="other")
    assert conflicts(reply) == [('conflict with "me"', ".rules")]


async def test_items_are_named_by_their_keys(api: Api, namespace: str) -> None:
    await apply(api, REPLICA_SETS, "a", workload("a"), namespace)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example.com/app:2"}]}}}}
    reply = await apply(api, REPLICA_SETS, "a", image, namespace, manager="other")
    assert conflicts(reply) == [('conflict with "me"', '.spec.template.spec.containers[name="main"].image')]


async def test_an_object_whose_managers_were_forgotten_belongs_to_whoever_was_before(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "v"}), namespace)
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"managedFields": [{}]}}, namespace)
    reply = await apply(api, CONFIG_MAPS, "a", {"data": {"k": "w"}}, namespace)
    assert conflicts(reply) == [('conflict with "before-first-apply" using v1', ".data.k")]
    after = (await apply(api, CONFIG_MAPS, "a", {"data": {"l": "w"}}, namespace)).ok
    assert owned(after, "before-first-apply", "Update") == {"f:data": {".": {}, "f:k": {}}}


async def test_a_scale_is_applied_and_held_apart(api: Api, namespace: str) -> None:
    async def scale(replicas: int, **params: Any) -> Reply:
        body = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": replicas}}
        return await api.patch(REPLICA_SETS, "a", body, namespace, "scale", kind="apply", fieldManager="scaler", **params)

    await apply(api, REPLICA_SETS, "a", workload("a", 0), namespace)
    assert conflicts(await scale(2)) == [('conflict with "me"', ".spec.replicas")]
    assert (await scale(2, force=True)).ok["spec"] == {"replicas": 2}
    after = (await api.get(REPLICA_SETS, "a", namespace)).ok
    assert owned(after, "scaler", "Apply", "scale") == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owned(after, "me")["f:spec"]

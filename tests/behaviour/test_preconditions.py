"""A delete may say which object it means."""

import pytest

from tests.behaviour.manifests import config_map
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS


async def test_a_delete_for_another_uid_is_a_conflict(api: Api, namespace: str) -> None:
    uid = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]["uid"]
    reply = await api.delete(CONFIG_MAPS, "a", namespace, {"preconditions": {"uid": "other"}})
    assert reply.refused(409, "Conflict")["name"] == "a"
    assert f"the UID in the precondition (other) does not match the UID in record ({uid})" in reply.message
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 200


async def test_a_delete_of_a_version_that_is_no_longer_the_latest_is_a_conflict(api: Api, namespace: str) -> None:
    old = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]["resourceVersion"]
    new = (await api.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).ok["metadata"]["resourceVersion"]
    reply = await api.delete(CONFIG_MAPS, "a", namespace, {"preconditions": {"resourceVersion": old}})
    assert reply.refused(409, "Conflict")["name"] == "a"
    assert f"the ResourceVersion in the precondition ({old}) does not match the ResourceVersion in record ({new})" in reply.message
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 200


async def test_a_delete_whose_preconditions_hold_deletes(api: Api, namespace: str) -> None:
    found = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]
    wanted = {"uid": found["uid"], "resourceVersion": found["resourceVersion"]}
    assert (await api.delete(CONFIG_MAPS, "a", namespace, {"preconditions": wanted})).code == 200
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404


async def test_a_delete_answers_with_what_was_deleted(api: Api, namespace: str) -> None:
    uid = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]["uid"]
    reply = (await api.delete(CONFIG_MAPS, "a", namespace)).ok
    assert (reply["kind"], reply["status"]) == ("Status", "Success")
    assert reply["details"] == {"name": "a", "kind": "configmaps", "uid": uid}


async def test_a_delete_of_what_is_not_there_is_not_found(api: Api, namespace: str) -> None:
    reply = await api.delete(CONFIG_MAPS, "a", namespace)
    assert reply.refused(404, "NotFound") == {"name": "a", "kind": "configmaps"}
    assert reply.message == 'configmaps "a" not found'


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"propagationPolicy": "Sideways"}, "FieldValueNotSupported"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "FieldValueInvalid"),
    ],
    ids=["unknown", "said twice"],
)
async def test_a_delete_with_a_propagation_that_makes_no_sense_is_invalid(
    api: Api, namespace: str, options: dict[str, object], reason: str
) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.delete(CONFIG_MAPS, "a", namespace, options)
    details = reply.refused(422, "Invalid")
    assert (details["group"], details["kind"]) == ("meta.k8s.io", "DeleteOptions")
    assert reply.causes == [(reason, "propagationPolicy")]


async def test_delete_options_that_cannot_be_read_are_a_bad_request(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    (await api.delete(CONFIG_MAPS, "a", namespace, {"preconditions": []})).refused(400, "BadRequest")
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 200


async def test_delete_options_may_come_in_the_query(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    reply = await api.delete(CONFIG_MAPS, "a", namespace, propagationPolicy="Sideways")
    reply.refused(422, "Invalid")
    assert (await api.delete(CONFIG_MAPS, "a", namespace, propagationPolicy="Background", gracePeriodSeconds=0)).code == 200

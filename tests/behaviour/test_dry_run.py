"""A dry run goes all the way except into the store."""

import pytest

from tests.behaviour.manifests import config_map, pod, workload
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, SECRETS


async def test_a_dry_create_answers_as_a_create_and_stores_nothing(api: Api, namespace: str) -> None:
    reply = await api.create(PODS, pod("a"), namespace, dryRun="All")
    assert reply.code == 201
    assert reply.body["spec"]["restartPolicy"] == "Always"
    assert reply.body["metadata"]["uid"]
    assert "resourceVersion" not in reply.body["metadata"]
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_a_dry_create_validates_and_knows_what_exists(api: Api, namespace: str) -> None:
    (await api.create(PODS, pod("a", containers=[]), namespace, dryRun="All")).refused(422, "Invalid")
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    (await api.create(CONFIG_MAPS, config_map("a"), namespace, dryRun="All")).refused(409, "AlreadyExists")


async def test_a_dry_update_and_a_dry_patch_change_nothing(api: Api, namespace: str) -> None:
    before = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace)).ok
    updated = await api.update(CONFIG_MAPS, {**before, "data": {"k": "2"}}, namespace, dryRun="All")
    assert updated.ok["data"] == {"k": "2"}
    patched = await api.patch(CONFIG_MAPS, "a", {"data": {"k": "3"}}, namespace, dryRun="All")
    assert patched.ok["data"] == {"k": "3"}
    assert patched.ok["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == before


async def test_a_dry_update_of_a_stale_version_is_a_conflict(api: Api, namespace: str) -> None:
    before = (await api.create(CONFIG_MAPS, config_map("a", {"k": "1"}), namespace)).ok
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace)
    (await api.update(CONFIG_MAPS, {**before, "data": {"k": "3"}}, namespace, dryRun="All")).refused(409, "Conflict")


async def test_a_dry_delete_deletes_nothing(api: Api, namespace: str) -> None:
    before = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok
    assert (await api.delete(CONFIG_MAPS, "a", namespace, dryRun="All")).ok["status"] == "Success"
    assert (await api.delete(CONFIG_MAPS, "a", namespace, {"dryRun": ["All"]})).ok["status"] == "Success"
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == before
    (await api.delete(CONFIG_MAPS, "absent", namespace, dryRun="All")).refused(404, "NotFound")


async def test_a_dry_delete_leaves_no_mark_on_what_a_finalizer_holds(api: Api, namespace: str) -> None:
    before = (await api.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/hold"]), namespace)).ok
    assert (await api.delete(CONFIG_MAPS, "a", namespace, dryRun="All")).code == 200
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == before


async def test_a_dry_delete_of_a_collection_deletes_nothing(api: Api, namespace: str) -> None:
    for name in "ab":
        await api.create(SECRETS, config_map(name), namespace)
    assert (await api.delete_collection(SECRETS, namespace, dryRun="All")).names == ["a", "b"]
    assert (await api.list(SECRETS, namespace)).names == ["a", "b"]


async def test_a_dry_write_of_status_or_scale_changes_nothing(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    scaled = await api.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 3}}, namespace, "scale", dryRun="All")
    assert scaled.ok["spec"]["replicas"] == 3
    assert (await api.get(DEPLOYMENTS, "a", namespace)).ok["spec"]["replicas"] == 0
    await api.create(PODS, pod("a"), namespace)
    dry = await api.patch(PODS, "a", {"status": {"phase": "Running"}}, namespace, "status", dryRun="All")
    assert dry.ok["status"]["phase"] == "Running"
    assert (await api.get(PODS, "a", namespace)).ok["status"]["phase"] == "Pending"


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
async def test_any_other_kind_of_dry_run_is_invalid(api: Api, namespace: str, verb: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a"), namespace)
    replies = {
        "create": lambda: api.create(CONFIG_MAPS, config_map("b"), namespace, dryRun="Some"),
        "update": lambda: api.update(CONFIG_MAPS, config_map("a"), namespace, dryRun="Some"),
        "patch": lambda: api.patch(CONFIG_MAPS, "a", {}, namespace, dryRun="Some"),
        "delete": lambda: api.delete(CONFIG_MAPS, "a", namespace, dryRun="Some"),
    }
    reply = await replies[verb]()
    details = reply.refused(422, "Invalid")
    assert (details["group"], details["kind"]) == ("meta.k8s.io", f"{verb.capitalize()}Options")
    assert reply.causes == [("FieldValueNotSupported", "dryRun")]

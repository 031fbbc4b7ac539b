"""Finalizers hold an object; grace gives a node the time to stop a pod."""

from typing import Any

from tests.behaviour.manifests import absent_node, config_map, pod
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, PODS

HOLD = "example.com/hold"


async def held(api: Api, namespace: str, *finalizers: str) -> dict[str, Any]:
    return (await api.create(CONFIG_MAPS, config_map("a", finalizers=list(finalizers or [HOLD])), namespace)).ok


async def test_an_object_with_a_finalizer_stays_and_is_marked(api: Api, namespace: str) -> None:
    created = await held(api, namespace)
    reply = await api.delete(CONFIG_MAPS, "a", namespace)
    assert reply.code == 200
    assert reply.body["kind"] == "ConfigMap"
    metadata = reply.body["metadata"]
    assert metadata["deletionTimestamp"].endswith("Z")
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert int(metadata["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert (await api.get(CONFIG_MAPS, "a", namespace)).ok == reply.body


async def test_a_second_delete_changes_nothing(api: Api, namespace: str) -> None:
    await held(api, namespace)
    first = (await api.delete(CONFIG_MAPS, "a", namespace)).ok
    assert (await api.delete(CONFIG_MAPS, "a", namespace)).ok == first


async def test_the_object_goes_with_its_last_finalizer(api: Api, namespace: str) -> None:
    await held(api, namespace, "example.com/one", "example.com/two")
    await api.delete(CONFIG_MAPS, "a", namespace)
    still = await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": ["example.com/two"]}}, namespace)
    assert still.ok["metadata"]["finalizers"] == ["example.com/two"]
    last = await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, namespace)
    assert last.code == 200
    assert "finalizers" not in last.body["metadata"]
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404


async def test_a_finalizer_removed_before_the_delete_does_not_hold(api: Api, namespace: str) -> None:
    await held(api, namespace)
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": []}}, namespace)
    await api.delete(CONFIG_MAPS, "a", namespace)
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 404


async def test_no_finalizer_can_be_added_once_the_object_is_going(api: Api, namespace: str) -> None:
    await held(api, namespace)
    await api.delete(CONFIG_MAPS, "a", namespace)
    reply = await api.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": [HOLD, "example.com/more"]}}, namespace)
    assert reply.refused(422, "Invalid")["name"] == "a"
    assert set(reply.causes) == {("FieldValueForbidden", "metadata.finalizers")}
    assert "no new finalizers can be added if the object is being deleted" in reply.message


async def test_an_object_that_is_going_can_still_be_changed(api: Api, namespace: str) -> None:
    await held(api, namespace)
    await api.delete(CONFIG_MAPS, "a", namespace)
    assert (await api.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace)).ok["data"] == {"k": "v"}


async def test_the_marks_of_deletion_cannot_be_written_or_taken_back(api: Api, namespace: str) -> None:
    mark: dict[str, Any] = {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    created = (await api.create(CONFIG_MAPS, config_map("free", **mark), namespace)).ok
    assert "deletionTimestamp" not in created["metadata"]
    await held(api, namespace)
    marked = (await api.delete(CONFIG_MAPS, "a", namespace)).ok["metadata"]["deletionTimestamp"]
    after = (await api.update(CONFIG_MAPS, config_map("a", finalizers=[HOLD]), namespace)).ok
    assert after["metadata"]["deletionTimestamp"] == marked


async def test_a_finalizer_without_a_domain_is_invalid(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", finalizers=["hold"]), namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "metadata.finalizers[0]")]


async def test_a_pod_that_no_node_runs_goes_at_once(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", schedulerName="nobody"), namespace)
    reply = await api.delete(PODS, "a", namespace)
    assert reply.ok["kind"] == "Pod"
    assert reply.ok["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_a_pod_on_a_node_stays_for_its_grace_period(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    metadata = (await api.delete(PODS, "a", namespace)).ok["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"] > metadata["creationTimestamp"]
    assert metadata["generation"] == 2
    assert (await api.get(PODS, "a", namespace)).code == 200


async def test_the_grace_period_is_the_pods_own_unless_the_delete_says_another(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("own", nodeName=absent_node(namespace), terminationGracePeriodSeconds=7), namespace)
    await api.create(PODS, pod("said", nodeName=absent_node(namespace)), namespace)
    assert (await api.delete(PODS, "own", namespace)).ok["metadata"]["deletionGracePeriodSeconds"] == 7
    said = await api.delete(PODS, "said", namespace, {"gracePeriodSeconds": 3})
    assert said.ok["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_a_grace_period_can_be_shortened_but_not_stretched(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    first = (await api.delete(PODS, "a", namespace)).ok["metadata"]
    longer = (await api.delete(PODS, "a", namespace, {"gracePeriodSeconds": 60})).ok["metadata"]
    assert (longer["deletionGracePeriodSeconds"], longer["deletionTimestamp"]) == (30, first["deletionTimestamp"])
    shorter = (await api.delete(PODS, "a", namespace, {"gracePeriodSeconds": 5})).ok["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    assert shorter["deletionTimestamp"] < first["deletionTimestamp"]


async def test_a_delete_without_grace_ends_the_pod(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    await api.delete(PODS, "a", namespace)
    assert (await api.delete(PODS, "a", namespace, {"gracePeriodSeconds": 0})).code == 200
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_a_pod_that_has_ended_needs_no_grace(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    await api.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, namespace, "status")
    await api.delete(PODS, "a", namespace)
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_a_finalizer_holds_a_pod_whose_grace_is_over(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", {"finalizers": [HOLD]}, nodeName=absent_node(namespace)), namespace)
    await api.delete(PODS, "a", namespace, {"gracePeriodSeconds": 0})
    assert (await api.get(PODS, "a", namespace)).ok["metadata"]["deletionGracePeriodSeconds"] == 0
    await api.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace)
    assert (await api.get(PODS, "a", namespace)).code == 404


async def test_the_body_of_a_deletion_is_not_the_object(api: Api, namespace: str) -> None:
    made = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok
    (await api.delete(CONFIG_MAPS, "a", namespace, made)).refused(400, "BadRequest")
    assert (await api.get(CONFIG_MAPS, "a", namespace)).code == 200
    said = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (await api.delete(CONFIG_MAPS, "a", namespace, said)).code == 200

"""Deleting what a selector chooses."""

from tests.behaviour.manifests import absent_node, config_map, pod
from tests.engines.api import Api
from tests.engines.resources import PODS, SECRETS


async def fill(api: Api, namespace: str) -> None:
    for name in ("a1", "a2", "b1"):
        await api.create(SECRETS, config_map(name, labels={"letter": name[0]}), namespace)


async def test_everything_goes_and_is_listed_in_the_answer(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    reply = await api.delete_collection(SECRETS, namespace)
    assert reply.ok["kind"] == "SecretList"
    assert reply.names == ["a1", "a2", "b1"]
    assert (await api.list(SECRETS, namespace)).items == []


async def test_a_label_selector_chooses_what_goes(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    assert (await api.delete_collection(SECRETS, namespace, labelSelector="letter=a")).names == ["a1", "a2"]
    assert (await api.list(SECRETS, namespace)).names == ["b1"]


async def test_a_field_selector_chooses_what_goes(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    await api.delete_collection(SECRETS, namespace, fieldSelector="metadata.name=a2")
    assert (await api.list(SECRETS, namespace)).names == ["a1", "b1"]


async def test_nothing_chosen_is_nothing_wrong(api: Api, namespace: str) -> None:
    reply = await api.delete_collection(SECRETS, namespace, labelSelector="letter=z")
    assert reply.code == 200
    assert reply.items == []


async def test_other_namespaces_are_not_touched(api: Api, namespace: str) -> None:
    before = (await api.list(SECRETS, "kube-system")).names
    await fill(api, namespace)
    await api.delete_collection(SECRETS, namespace)
    assert set(before) <= set((await api.list(SECRETS, "kube-system")).names)


async def test_finalizers_and_grace_hold_as_in_a_single_delete(api: Api, namespace: str) -> None:
    await api.create(SECRETS, config_map("held", finalizers=["example.com/hold"]), namespace)
    await api.create(SECRETS, config_map("free"), namespace)
    await api.delete_collection(SECRETS, namespace)
    (left,) = (await api.list(SECRETS, namespace)).items
    assert left["metadata"]["name"] == "held"
    assert left["metadata"]["deletionTimestamp"]
    await api.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, namespace)
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    await api.delete_collection(PODS, namespace, {"gracePeriodSeconds": 9})
    assert (await api.get(PODS, "a", namespace)).ok["metadata"]["deletionGracePeriodSeconds"] == 9
    await api.delete_collection(PODS, namespace, {"gracePeriodSeconds": 0})
    assert (await api.list(PODS, namespace)).items == []


async def test_a_selector_that_cannot_be_read_deletes_nothing(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    (await api.delete_collection(SECRETS, namespace, labelSelector="a in")).refused(400, "BadRequest")
    (await api.delete_collection(SECRETS, namespace, fieldSelector="data.k=v")).refused(400, "BadRequest")
    assert len((await api.list(SECRETS, namespace)).items) == 3

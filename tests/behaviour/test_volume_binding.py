"""Claims and volumes find each other, part, and are not taken away under those who use them."""

from collections.abc import Callable

from herder.api.labels import STORAGE_CLASS
from tests.behaviour.volumes import becomes, bound_pair, claim, is_gone, user_of_claim, volume_for
from tests.engines.api import Api
from tests.engines.resources import CLAIMS, PODS, VOLUMES
from tests.engines.waiting import eventually

COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


async def test_a_claim_without_a_class_gets_the_default_one(api: Api, namespace: str) -> None:
    made = (await api.create(CLAIMS, claim(), namespace)).ok
    assert made["spec"]["storageClassName"] == STORAGE_CLASS


async def test_a_claim_that_wants_no_class_gets_none(api: Api, namespace: str) -> None:
    made = (await api.create(CLAIMS, claim(storageClassName=""), namespace)).ok
    assert made["spec"]["storageClassName"] == ""


async def test_an_unbound_claim_asks_its_provisioner(api: Api, namespace: str) -> None:
    await api.create(CLAIMS, claim(), namespace)

    async def asked() -> bool:
        annotations = (await api.get(CLAIMS, "disk", namespace)).ok["metadata"].get("annotations", {})
        return annotations.get("volume.kubernetes.io/storage-provisioner") == "herder.dev/local"

    await eventually(asked, patience=30)
    assert (await api.get(CLAIMS, "disk", namespace)).ok["status"] == {"phase": "Pending"}


async def test_a_volume_made_for_a_claim_is_bound_to_it(api: Api, namespace: str) -> None:
    bound, volume = await bound_pair(api, namespace)
    assert bound["spec"]["volumeName"] == volume["metadata"]["name"]
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    assert bound["status"]["accessModes"] == ["ReadWriteOnce"]
    annotations = bound["metadata"]["annotations"]
    assert (annotations[COMPLETED], annotations[BY_CONTROLLER]) == ("yes", "yes")
    assert BY_CONTROLLER not in volume["metadata"]["annotations"]


async def test_a_volume_that_names_a_claim_without_its_uid_gets_the_uid(api: Api, namespace: str) -> None:
    bound, volume = await bound_pair(api, namespace, with_uid=False)
    assert volume["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]


async def test_a_volume_waits_for_the_claim_that_it_names(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    expected = {"metadata": {"namespace": namespace, "name": "disk", "uid": ""}, "spec": {"storageClassName": STORAGE_CLASS}}
    name = unique("volume")
    await api.create(VOLUMES, volume_for(expected, name, with_uid=False))
    await becomes(api, VOLUMES, name, "Available")
    await api.create(CLAIMS, claim(), namespace)
    assert (await becomes(api, CLAIMS, "disk", "Bound", namespace))["spec"]["volumeName"] == name


async def test_a_claim_may_name_a_free_volume(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    name = unique("volume")
    free = volume_for({"metadata": {"namespace": namespace, "name": "x"}, "spec": {"storageClassName": ""}}, name, with_uid=False)
    del free["spec"]["claimRef"]
    await api.create(VOLUMES, free)
    await becomes(api, VOLUMES, name, "Available")
    made = (await api.create(CLAIMS, claim(volumeName=name, storageClassName=""), namespace)).ok
    bound = await becomes(api, CLAIMS, "disk", "Bound", namespace)
    volume = await becomes(api, VOLUMES, name, "Bound")
    assert volume["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
    assert volume["metadata"]["annotations"][BY_CONTROLLER] == "yes"
    assert BY_CONTROLLER not in bound["metadata"]["annotations"]


async def test_a_volume_is_released_when_its_claim_goes_and_never_given_to_the_next(api: Api, namespace: str) -> None:
    _, volume = await bound_pair(api, namespace)
    name = volume["metadata"]["name"]
    await api.delete(CLAIMS, "disk", namespace)
    await is_gone(api, CLAIMS, "disk", namespace)
    await becomes(api, VOLUMES, name, "Released")
    await api.create(CLAIMS, claim(), namespace)

    async def asked() -> bool:
        return "annotations" in (await api.get(CLAIMS, "disk", namespace)).ok["metadata"]

    await eventually(asked, patience=30)
    assert (await api.get(CLAIMS, "disk", namespace)).ok["status"]["phase"] == "Pending"
    assert (await api.get(VOLUMES, name)).ok["status"]["phase"] == "Released"


async def test_a_claim_whose_volume_is_gone_is_lost(api: Api, namespace: str) -> None:
    _, volume = await bound_pair(api, namespace)
    name = volume["metadata"]["name"]
    await api.delete(VOLUMES, name)
    await api.patch(VOLUMES, name, {"metadata": {"finalizers": None}})
    await is_gone(api, VOLUMES, name)
    await becomes(api, CLAIMS, "disk", "Lost", namespace)


async def test_new_claims_and_volumes_are_protected(api: Api, namespace: str) -> None:
    made = (await api.create(CLAIMS, claim(), namespace)).ok
    volume = (await api.create(VOLUMES, volume_for(made, finalizers=["example.com/mine"]))).ok
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert volume["metadata"]["finalizers"] == ["example.com/mine", "kubernetes.io/pv-protection"]
    await api.patch(VOLUMES, volume["metadata"]["name"], {"metadata": {"finalizers": None}})


async def test_a_claim_stays_until_the_pod_that_uses_it_is_gone(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    await bound_pair(api, namespace)
    pod = await user_of_claim(api, namespace, unique)
    await api.delete(CLAIMS, "disk", namespace)
    await api.patch(PODS, pod, {"status": {"phase": "Succeeded"}}, namespace, "status")
    # One that comes later and goes: by then whoever protects has looked at the first one.
    await api.create(CLAIMS, claim("marker"), namespace)
    await api.delete(CLAIMS, "marker", namespace)
    await is_gone(api, CLAIMS, "marker", namespace)
    assert "deletionTimestamp" in (await api.get(CLAIMS, "disk", namespace)).ok["metadata"]
    await api.delete(PODS, pod, namespace, {"gracePeriodSeconds": 0})
    await is_gone(api, CLAIMS, "disk", namespace)


async def test_a_pod_without_a_node_does_not_hold_a_claim(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    await api.create(CLAIMS, claim(), namespace)
    await user_of_claim(api, namespace, unique, bound=False)
    await api.delete(CLAIMS, "disk", namespace)
    await is_gone(api, CLAIMS, "disk", namespace)


async def test_a_bound_volume_stays_until_its_claim_is_gone(api: Api, namespace: str) -> None:
    _, volume = await bound_pair(api, namespace)
    name = volume["metadata"]["name"]
    assert "deletionTimestamp" in (await api.delete(VOLUMES, name)).ok["metadata"]
    await api.delete(CLAIMS, "disk", namespace)
    await is_gone(api, VOLUMES, name)

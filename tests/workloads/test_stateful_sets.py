"""A StatefulSet has pods of lasting names: made, ended and updated one after the other, each with its own claims."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.behaviour.manifests import IMAGE, pod
from tests.behaviour.volumes import claim
from tests.engines.api import Json
from tests.engines.engine import Engine
from tests.engines.resources import CLAIMS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from tests.workloads.place import Place, is_ready, workload

HASH = "controller-revision-hash"
HOLD = "example.com/hold"
PARALLEL = {"podManagementPolicy": "Parallel"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


async def made(place: Place, replicas: int, **spec: Any) -> Json:
    document = workload("web", replicas, serviceName="peers", **spec)
    return (await place.api.create(STATEFUL_SETS, document, place.namespace)).ok


def names(*ordinals: int) -> list[str]:
    return [f"web-{ordinal}" for ordinal in ordinals]


async def has(place: Place, *ordinals: int) -> list[Json]:
    """Pods of these ordinals, and no others."""

    async def look() -> list[Json]:
        found = (await place.api.list(PODS, place.namespace)).items
        assert sorted(one["metadata"]["name"] for one in found) == sorted(names(*ordinals))
        return sorted(found, key=lambda one: one["metadata"]["name"]) or [{}]

    return [one for one in await place.eventually(look) if one]


async def settled(place: Place, replicas: int) -> Json:
    """With every pod made ready that comes, until all are of the newest template; or of the partition's."""

    async def look() -> Json:
        await place.all_ready()
        one = (await place.api.get(STATEFUL_SETS, "web", place.namespace)).ok
        status, rolling = one["status"], one["spec"]["updateStrategy"].get("rollingUpdate", {})
        assert status.get("observedGeneration") == one["metadata"]["generation"], status
        assert (status["replicas"], status.get("readyReplicas", 0), status["availableReplicas"]) == (replicas,) * 3, status
        assert status.get("updatedReplicas", 0) >= replicas - rolling.get("partition", 0), status
        return one

    return await place.eventually(look)


async def changed(place: Place, patch: Json) -> Json:
    """As soon as the controller has seen it."""
    one = await place.change(patch, resource=STATEFUL_SETS)
    generation = one["metadata"]["generation"]
    return await place.shows(lambda it: it["status"].get("observedGeneration") == generation, resource=STATEFUL_SETS)


async def imaged(place: Place, image: str) -> Json:
    return await changed(place, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})


async def becomes(place: Place, test: Callable[[], Awaitable[bool]]) -> None:
    await place.eventually(test)


def uids(pods: list[Json]) -> list[str]:
    return [one["metadata"]["uid"] for one in pods]


def images(pods: list[Json]) -> list[str]:
    return [one["spec"]["containers"][0]["image"] for one in pods]


async def revisions(place: Place) -> list[Json]:
    found = (await place.api.list(CONTROLLER_REVISIONS, place.namespace)).items
    return sorted(found, key=lambda one: one["revision"])


async def test_pods_come_in_order_and_go_from_the_last(place: Place) -> None:
    one = await made(place, 3)
    (first,) = await has(place, 0)
    (revision,) = await revisions(place)
    assert revision["metadata"]["name"].startswith("web-")
    metadata, spec = first["metadata"], first["spec"]
    assert metadata["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-0",
        "apps.kubernetes.io/pod-index": "0",
        HASH: revision["metadata"]["name"],
    }
    assert (metadata["generateName"], spec["hostname"], spec["subdomain"]) == ("web-", "web-0", "peers")
    assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in metadata["ownerReferences"]] == [
        ("StatefulSet", one["metadata"]["uid"], True)
    ]
    await place.ready(first)
    _, second = await has(place, 0, 1)
    await place.ready(second)
    await has(place, 0, 1, 2)
    # The last one is not ready, and goes all the same: nobody before it is unwell.
    await place.scale(2, STATEFUL_SETS)
    await has(place, 0, 1)
    await place.ready(first, is_ready=False)
    await place.shows(lambda it: it["status"].get("readyReplicas") == 1, resource=STATEFUL_SETS)
    await place.scale(1, STATEFUL_SETS)
    await place.shows(lambda it: it["status"].get("observedGeneration") == 3, resource=STATEFUL_SETS)
    # One that stays is unwell: whoever is well may not go now.
    await has(place, 0, 1)
    await place.ready(first)
    await has(place, 0)
    after = await settled(place, 1)
    name = revision["metadata"]["name"]
    assert after["status"] == {
        "observedGeneration": 3,
        "replicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": name,
        "updateRevision": name,
        "collisionCount": 0,
    }
    await place.tells("web", "SuccessfulCreate", 3)
    await place.tells("web", "SuccessfulDelete", 2)


async def test_in_parallel_all_come_and_go_at_once_from_whichever_ordinal(place: Place) -> None:
    await made(place, 3, ordinals={"start": 5}, **PARALLEL)
    await has(place, 5, 6, 7)
    await place.scale(1, STATEFUL_SETS)
    (before,) = await has(place, 5)
    # A better template replaces even what never got ready.
    await imaged(place, "web:2")

    async def replaced() -> bool:
        (after,) = await has(place, 5)
        return images([after]) == ["web:2"] and uids([after]) != uids([before])

    await becomes(place, replaced)


async def test_a_pod_comes_back_under_its_name_when_the_one_before_is_gone(place: Place) -> None:
    template = workload("web", 1)["spec"]["template"]
    template["metadata"]["finalizers"] = [HOLD]
    await made(place, 2, template=template, **PARALLEL)
    before = await has(place, 0, 1)
    await place.ready(*before)
    await place.tell(before[0], {"phase": "Failed"})
    await place.api.delete(PODS, "web-1", place.namespace)

    async def both_end() -> bool:
        return all("deletionTimestamp" in one["metadata"] for one in await has(place, 0, 1))

    await becomes(place, both_end)
    assert uids(await has(place, 0, 1)) == uids(before)
    for name in names(0, 1):
        await place.api.patch(PODS, name, {"metadata": {"finalizers": None}}, place.namespace)

    async def both_new() -> bool:
        after = await has(place, 0, 1)
        return not set(uids(after)) & set(uids(before)) and all(one["status"]["phase"] == "Pending" for one in after)

    await becomes(place, both_new)
    for name in names(0, 1):
        await place.api.patch(PODS, name, {"metadata": {"finalizers": None}}, place.namespace)


async def test_an_update_goes_from_the_last_to_the_partition_and_is_undone(place: Place) -> None:
    await made(place, 3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    before = await settled(place, 3)
    one = await imaged(place, "web:2")
    assert one["status"]["updateRevision"] != one["status"]["currentRevision"] == before["status"]["currentRevision"]
    await settled(place, 3)
    pods = await has(place, 0, 1, 2)
    assert images(pods) == [IMAGE, IMAGE, "web:2"]
    # Below the partition a pod comes back as it was.
    await place.api.delete(PODS, "web-0", place.namespace)

    async def back() -> bool:
        after = await has(place, 0, 1, 2)
        return uids(after)[0] != uids(pods)[0] and images(after) == [IMAGE, IMAGE, "web:2"]

    await becomes(place, back)
    await settled(place, 3)
    await changed(place, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})

    async def one_by_one() -> bool:
        """The highest of the old ones, which is waited for."""
        found = await has(place, 0, 1, 2)
        return images(found) == [IMAGE, "web:2", "web:2"] and not is_ready(found[1])

    await becomes(place, one_by_one)
    done = await settled(place, 3)
    assert done["status"]["currentRevision"] == done["status"]["updateRevision"] == one["status"]["updateRevision"]
    first, second = await revisions(place)
    assert (first["revision"], second["revision"]) == (1, 2)
    # As `kubectl rollout undo` does it.
    (await place.api.patch(STATEFUL_SETS, "web", first["data"], place.namespace, kind="strategic")).ok  # noqa: B018

    async def undone() -> bool:
        after = await settled(place, 3)
        return after["status"]["currentRevision"] == first["metadata"]["name"]

    await becomes(place, undone)
    assert images(await has(place, 0, 1, 2)) == [IMAGE, IMAGE, IMAGE]
    assert [(one["metadata"]["name"], one["revision"]) for one in await revisions(place)] == [
        (second["metadata"]["name"], 2),
        (first["metadata"]["name"], 3),
    ]


async def test_a_broken_update_is_mended_by_hand_and_old_templates_are_forgotten(place: Place) -> None:
    await made(place, 2, revisionHistoryLimit=0)
    await settled(place, 2)
    await imaged(place, "broken")

    async def stuck() -> bool:
        return images(await has(place, 0, 1)) == [IMAGE, "broken"]

    await becomes(place, stuck)
    before = await has(place, 0, 1)
    await imaged(place, "mended")
    assert uids(await has(place, 0, 1)) == uids(before)
    await place.api.delete(PODS, "web-1", place.namespace)
    await settled(place, 2)

    async def only_the_latest() -> bool:
        left = [one["data"]["spec"]["template"]["spec"]["containers"][0]["image"] for one in await revisions(place)]
        return left == ["mended"] and images(await has(place, 0, 1)) == ["mended", "mended"]

    await becomes(place, only_the_latest)


async def test_pods_are_updated_when_they_are_deleted_where_people_want_it_so(place: Place) -> None:
    await made(place, 1, minReadySeconds=1, **ON_DELETE)
    await settled(place, 1)
    one = await imaged(place, "web:2")
    assert (one["status"].get("updatedReplicas"), images(await has(place, 0))) == (None, [IMAGE])
    await place.api.delete(PODS, "web-0", place.namespace)

    async def new() -> bool:
        return images(await has(place, 0)) == ["web:2"]

    await becomes(place, new)


async def test_claims_outlive_their_pods_and_go_with_them_where_people_want_it_so(place: Place) -> None:
    data = claim("data", storageClassName="none")
    data["metadata"]["labels"] = {"tier": "disk"}
    await made(place, 2, volumeClaimTemplates=[data], **PARALLEL)
    first, _ = await has(place, 0, 1)
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}} in first["spec"]["volumes"]

    async def claims() -> dict[str, str]:
        found = (await place.api.list(CLAIMS, place.namespace)).items
        assert all(one["metadata"]["labels"] == {"app": "web", "tier": "disk"} for one in found)
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    before = await claims()
    assert sorted(before) == ["data-web-0", "data-web-1"]
    await place.scale(1, STATEFUL_SETS)
    await has(place, 0)
    await place.scale(2, STATEFUL_SETS)
    await has(place, 0, 1)
    assert await claims() == before
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    await changed(place, {"spec": {"persistentVolumeClaimRetentionPolicy": policy}})
    await place.scale(1, STATEFUL_SETS)

    async def last_is_gone() -> bool:
        return await claims() == {"data-web-0": before["data-web-0"]}

    await becomes(place, last_is_gone)
    await has(place, 0)
    await place.scale(2, STATEFUL_SETS)
    await has(place, 0, 1)
    assert (await claims())["data-web-1"] != before["data-web-1"]
    await place.api.delete(STATEFUL_SETS, "web", place.namespace, {"propagationPolicy": "Background"})

    async def nothing_left() -> bool:
        return not await claims() and not (await place.api.list(PODS, place.namespace)).items

    await becomes(place, nothing_left)


async def test_pods_and_revisions_that_are_left_behind_belong_to_the_next(place: Place) -> None:
    await made(place, 2, **PARALLEL)
    await settled(place, 2)
    before = await has(place, 0, 1)
    await place.api.delete(STATEFUL_SETS, "web", place.namespace, {"propagationPolicy": "Orphan"})

    async def gone() -> bool:
        return (await place.api.get(STATEFUL_SETS, "web", place.namespace)).code == 404

    await becomes(place, gone)
    # Of its labels, and with another name.
    stray = pod("stray", {"labels": {"app": "web"}}, nodeSelector={"no": "where"})
    (await place.api.create(PODS, stray, place.namespace)).ok  # noqa: B018
    again = await made(place, 2, **PARALLEL)

    async def taken_in() -> bool:
        found = [*(await revisions(place)), *(await place.api.list(PODS, place.namespace)).items]
        owners = {one["metadata"]["name"]: owner["uid"] for one in found for owner in one["metadata"].get("ownerReferences", ())}
        return list(owners.values()) == [again["metadata"]["uid"]] * 3 and "stray" not in owners

    await becomes(place, taken_in)
    await place.api.delete(PODS, "stray", place.namespace)
    assert (await settled(place, 2))["status"]["updatedReplicas"] == 2
    assert uids(await has(place, 0, 1)) == uids(before)


async def test_what_is_in_the_way_is_left_alone_and_waited_for(place: Place, engine: Engine) -> None:
    other = (await place.api.create(PODS, pod("web-0", nodeSelector={"no": "where"}), place.namespace)).ok
    held = claim("data-web-0", storageClassName="none")
    held["metadata"]["finalizers"] = [HOLD]
    (await place.api.create(CLAIMS, held, place.namespace)).ok  # noqa: B018
    await place.api.delete(CLAIMS, "data-web-0", place.namespace)
    await made(place, 1, volumeClaimTemplates=[claim("data", storageClassName="none")])
    await place.shows(lambda it: it["status"].get("observedGeneration") == 1, resource=STATEFUL_SETS)
    assert uids(await has(place, 0)) == [other["metadata"]["uid"]]
    if engine.name == "embedded":
        # Kubernetes tries again in silence.
        await place.tells("web", "FailedCreate", 1)
        (told,) = await place.told("web", "FailedCreate")
        assert told.endswith("failed error: Pod web-0 exists and belongs to nobody")
    await place.api.delete(PODS, "web-0", place.namespace)

    async def told_of_the_claim() -> bool:
        return any(text.endswith(" data-web-0 is being deleted") for text in await place.told("web", "FailedCreate"))

    await becomes(place, told_of_the_claim)
    await has(place)
    await place.api.patch(CLAIMS, "data-web-0", {"metadata": {"finalizers": None}}, place.namespace)

    async def ours() -> bool:
        (one,) = await has(place, 0)
        return "ownerReferences" in one["metadata"]

    await becomes(place, ours)


async def test_why_pods_cannot_be_made_is_told(place: Place) -> None:
    template = workload("web", 1)["spec"]["template"]
    template["spec"]["priorityClassName"] = "no-such-class"
    await made(place, 1, template=template)

    async def told() -> bool:
        return any(
            text.startswith("Create Pod web-0 in StatefulSet web failed") for text in await place.told("web", "FailedCreate")
        )

    await becomes(place, told)
    await changed(place, {"spec": {"template": {"spec": {"priorityClassName": None}}}})
    await has(place, 0)

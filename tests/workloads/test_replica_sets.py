"""A ReplicaSet has as many pods as it wants: those that it made, and those that it found."""

from typing import Any

from tests.behaviour.manifests import pod
from tests.engines.api import Json
from tests.engines.resources import PODS, REPLICA_SETS
from tests.workloads.place import Place, words


async def kept(place: Place, replicas: int, **spec: Any) -> list[Json]:
    """As many pods, all of them ready."""
    await place.keep(replicas, **spec)
    await place.ready(*await place.has_pods(replicas))
    await place.shows(lambda one: one["status"].get("readyReplicas") == replicas, resource=REPLICA_SETS)
    return await place.pods()


def named(pods: list[Json]) -> list[str]:
    return sorted(one["metadata"]["name"] for one in pods)


def owners(thing: Json) -> list[str]:
    return [one["uid"] for one in thing["metadata"].get("ownerReferences", ())]


async def test_its_status_counts_its_pods(place: Place) -> None:
    await kept(place, 2)
    one = await place.replica_set()
    assert one["status"] == {
        "observedGeneration": 1,
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }


async def test_a_pod_that_goes_or_ends_is_made_up_for(place: Place) -> None:
    first, second, third = await kept(place, 3)
    await place.api.delete(PODS, first["metadata"]["name"], place.namespace)
    await place.tell(second, {"phase": "Failed"})

    async def two_new() -> bool:
        now = {one["metadata"]["uid"] for one in await place.pods()}
        return len(now) == 3 and third["metadata"]["uid"] in now and second["metadata"]["uid"] not in now

    await place.eventually(two_new)


async def test_those_that_are_missed_least_go_first(place: Place) -> None:
    pods = await kept(place, 4)
    costly, cheap, unready, other = pods
    cost = "controller.kubernetes.io/pod-deletion-cost"
    for one, value in ((costly, "10"), (cheap, "-10")):
        patch = {"metadata": {"annotations": {cost: value}}}
        (await place.api.patch(PODS, one["metadata"]["name"], patch, place.namespace)).ok  # noqa: B018
    await place.ready(unready, is_ready=False)
    await place.shows(lambda one: one["status"].get("readyReplicas") == 3, resource=REPLICA_SETS)
    await place.scale(3, REPLICA_SETS)
    assert named(await place.has_pods(3)) == named([costly, cheap, other])
    await place.scale(2, REPLICA_SETS)
    assert named(await place.has_pods(2)) == named([costly, other])
    await place.scale(1, REPLICA_SETS)
    assert named(await place.has_pods(1)) == named([costly])
    await place.scale(0, REPLICA_SETS)
    await place.has_pods(0)
    await place.tells("web", "SuccessfulDelete", 4)


async def test_a_pod_that_nobody_manages_is_taken_in(place: Place) -> None:
    found = pod("stray", {"labels": {"app": "web"}}, nodeSelector={"no": "where"})
    stray = (await place.api.create(PODS, found, place.namespace)).ok
    made = await place.keep(2)

    async def taken_in() -> bool:
        return owners((await place.api.get(PODS, "stray", place.namespace)).ok) == [made["metadata"]["uid"]]

    await place.eventually(taken_in)
    assert stray["metadata"]["uid"] in [one["metadata"]["uid"] for one in await place.has_pods(2)]


async def test_a_pod_that_is_no_longer_selected_is_let_go(place: Place) -> None:
    first, second = await kept(place, 2)
    patch = {"metadata": {"labels": {"app": "other"}}}
    (await place.api.patch(PODS, first["metadata"]["name"], patch, place.namespace)).ok  # noqa: B018

    async def let_go() -> bool:
        one = (await place.api.get(PODS, first["metadata"]["name"], place.namespace)).ok
        return not owners(one)

    await place.eventually(let_go)
    assert second["metadata"]["uid"] in [one["metadata"]["uid"] for one in await place.has_pods(3)]


async def test_pods_that_are_left_behind_belong_to_the_next(place: Place) -> None:
    before = await kept(place, 2)
    await place.api.delete(REPLICA_SETS, "web", place.namespace, {"propagationPolicy": "Orphan"})

    async def gone() -> bool:
        return (await place.api.get(REPLICA_SETS, "web", place.namespace)).code == 404

    await place.eventually(gone)
    made = await place.keep(2, name="next", selector={"matchLabels": {"app": "web"}}, template=template_of(before[0]))

    async def taken_in() -> bool:
        return all(owners(one) == [made["metadata"]["uid"]] for one in await place.pods())

    await place.eventually(taken_in)
    assert named(await place.pods()) == named(before)


def template_of(one: Json) -> Json:
    return {"metadata": {"labels": one["metadata"]["labels"]}, "spec": {"containers": [{"name": "main", "image": "x"}]}}


async def test_pods_that_others_manage_are_left_alone(place: Place) -> None:
    await kept(place, 1, selector={"matchLabels": {"app": "web"}})
    await place.keep(1, name="rival", selector={"matchLabels": {"app": "web"}}, template=template_of((await place.pods())[0]))
    pods = await place.has_pods(2)
    assert len({owners(one)[0] for one in pods}) == 2


async def test_why_pods_cannot_be_made_is_said_until_they_can(place: Place) -> None:
    spec = {"containers": [{"name": "main", "image": "x"}], "priorityClassName": "no-such-class"}
    await place.keep(1, template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    await place.shows(lambda one: words(one, "ReplicaFailure") == ("True", "FailedCreate"), resource=REPLICA_SETS)
    await place.change({"spec": {"template": {"spec": {"priorityClassName": None}}}}, resource=REPLICA_SETS)
    await place.has_pods(1)
    await place.shows(lambda one: words(one, "ReplicaFailure") == ("", ""), resource=REPLICA_SETS)

"""A Deployment rolls from one template to the next, and back."""

import pytest

from tests.engines.api import Json
from tests.engines.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from tests.workloads.place import HASH, REVISION, Place, condition, counts, is_ready, is_rolled_out, rolling, words


async def test_a_new_deployment_makes_a_set_which_makes_pods(place: Place) -> None:
    made = await place.deploy(3, metadata={"annotations": {"team": "herd"}}, strategy=rolling(1, 1))
    await place.has_pods(3)
    deployment = await place.rolled_out()
    (one,) = await place.sets()
    ending = one["metadata"]["labels"][HASH]
    assert one["metadata"]["name"] == f"web-{ending}"
    assert one["spec"]["selector"] == {"matchLabels": {"app": "web", HASH: ending}}
    (owner,) = one["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    annotations = {name.rpartition("/")[2]: value for name, value in one["metadata"]["annotations"].items()}
    assert annotations == {"revision": "1", "desired-replicas": "3", "max-replicas": "4", "team": "herd"}
    for pod in await place.pods():
        assert pod["metadata"]["labels"] == {"app": "web", HASH: ending}
        assert (
            pod["metadata"]["name"].startswith(pod["metadata"]["generateName"])
            and pod["metadata"]["generateName"] == f"web-{ending}-"
        )
        assert [(owner["kind"], owner["uid"]) for owner in pod["metadata"]["ownerReferences"]] == [
            ("ReplicaSet", one["metadata"]["uid"])
        ]
    assert deployment["metadata"]["annotations"] == {"team": "herd", REVISION: "1"}
    assert deployment["metadata"]["generation"] == 1
    numbers = {name: value for name, value in deployment["status"].items() if name != "conditions"}
    assert numbers == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert words(deployment, "Available") == ("True", "MinimumReplicasAvailable")
    progress = condition(deployment, "Progressing")
    assert (progress["status"], progress["reason"]) == ("True", "NewReplicaSetAvailable")
    assert progress["message"] == f'ReplicaSet "{one["metadata"]["name"]}" has successfully progressed.'
    await place.tells("web", "ScalingReplicaSet", 1)
    assert await place.told("web", "ScalingReplicaSet") == [f"Scaled up replica set {one['metadata']['name']} from 0 to 3"]
    await place.tells(one["metadata"]["name"], "SuccessfulCreate", 3)


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 1), ("50%", "25%")])
async def test_a_rollout_keeps_within_its_limits(place: Place, surge: int | str, unavailable: int | str) -> None:
    most = {1: 5, 0: 4, 2: 6, "50%": 6}[surge]
    fewest = {0: 4, 1: 3, "25%": 3}[unavailable]
    await place.deploy(4, strategy=rolling(surge, unavailable))
    await place.rolled_out()
    await place.image("registry.example.com/app:2")
    for _ in range(40):
        pods = await place.pods()
        assert sum(map(is_ready, pods)) >= fewest, "too few are available"
        assert sum(await place.sizes()) <= most, "there are too many"
        waiting = [pod for pod in pods if not is_ready(pod)]
        if not waiting and is_rolled_out(await place.deployment()):
            break
        # One at a time, and nobody else is in a hurry.
        await place.ready(*waiting[:1])
    await place.rolled_out()
    await place.has_sizes(0, 4)


async def test_pods_that_never_get_ready_stop_a_rollout(place: Place) -> None:
    await place.deploy(4, strategy=rolling(1, 1))
    await place.rolled_out()
    await place.image("registry.example.com/app:broken")
    await place.has_sizes(3, 2)
    deployment = await place.shows(lambda one: one["status"].get("replicas") == 5 and one["status"].get("updatedReplicas") == 2)
    assert deployment["status"]["availableReplicas"] == 3
    assert deployment["status"]["unavailableReplicas"] == 2
    assert words(deployment, "Available") == ("True", "MinimumReplicasAvailable")


async def test_what_was_rolled_out_before_is_rolled_out_again(place: Place) -> None:
    await place.deploy(2)
    await place.rolled_out()
    (first,) = await place.sets()
    await place.image("registry.example.com/app:2")
    assert (await place.rolled_out())["metadata"]["annotations"][REVISION] == "2"
    await place.image("registry.example.com/app:1")
    deployment = await place.rolled_out()
    assert deployment["metadata"]["annotations"][REVISION] == "3"
    second, again = await place.has_sizes(0, 2)
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert again["metadata"]["annotations"][REVISION] == "3"
    assert again["metadata"]["annotations"][f"{REVISION}-history"] == "1"
    assert second["metadata"]["annotations"][REVISION] == "2"


async def test_only_so_much_of_the_past_is_kept(place: Place) -> None:
    await place.deploy(1, revisionHistoryLimit=1)
    for number in range(1, 5):
        await place.image(f"registry.example.com/app:{number}")
        await place.rolled_out()

    async def two_left() -> bool:
        return [one["metadata"]["annotations"][REVISION] for one in await place.sets()] == ["3", "4"]

    await place.eventually(two_left)


async def test_recreated_pods_never_meet(place: Place) -> None:
    await place.deploy(2, strategy={"type": "Recreate"})
    await place.rolled_out()
    (old,) = await place.sets()
    # One that takes its time to end.
    (slow, _) = await place.pods()
    held = {"metadata": {"finalizers": ["example.com/slow"]}}
    (await place.api.patch(PODS, slow["metadata"]["name"], held, place.namespace)).ok  # noqa: B018
    await place.image("registry.example.com/app:2")
    await place.shows(lambda one: one["status"]["observedGeneration"] == 2 and "replicas" not in one["status"])
    left = (await place.api.list(PODS, place.namespace)).items
    assert [one["metadata"]["name"] for one in left] == [slow["metadata"]["name"]]
    assert [one["metadata"]["uid"] for one in await place.sets()] == [old["metadata"]["uid"]]
    await place.api.patch(PODS, slow["metadata"]["name"], {"metadata": {"finalizers": None}}, place.namespace)
    await place.rolled_out()
    await place.has_sizes(0, 2)


async def test_a_paused_deployment_is_scaled_and_not_rolled_out(place: Place) -> None:
    await place.deploy(2)
    await place.rolled_out()
    await place.change({"spec": {"paused": True}})
    await place.shows(lambda one: words(one, "Progressing") == ("Unknown", "DeploymentPaused"))
    await place.image("registry.example.com/app:2")
    await place.scale(3)
    await place.has_sizes(3)
    await place.shows(lambda one: one["status"]["observedGeneration"] == one["metadata"]["generation"])
    assert len(await place.sets()) == 1
    await place.change({"spec": {"paused": None}})
    await place.rolled_out()
    await place.has_sizes(0, 3)


async def test_a_deployment_scaled_in_the_middle_of_a_rollout_is_as_far_as_it_was(place: Place) -> None:
    await place.deploy(10, strategy=rolling(3, 2))
    await place.rolled_out()
    await place.image("registry.example.com/app:broken")
    await place.has_sizes(8, 5)
    await place.scale(15)
    await place.has_sizes(11, 7)
    await place.scale(5)
    sizes = [one["spec"]["replicas"] for one in await place.sets()]

    async def smaller() -> list[int]:
        now = await place.sizes()
        assert now != sizes and sum(now) <= 8
        return now

    await place.eventually(smaller)


async def test_a_rollout_that_takes_too_long_says_so(place: Place) -> None:
    await place.deploy(1, progressDeadlineSeconds=2)
    late = await place.shows(lambda one: words(one, "Progressing") == ("False", "ProgressDeadlineExceeded"))
    assert condition(late, "Progressing")["message"].endswith("has timed out progressing.")
    assert words(late, "Available") == ("False", "MinimumReplicasUnavailable")
    await place.rolled_out()


async def test_pods_count_once_they_have_been_ready_for_long_enough(place: Place) -> None:
    await place.deploy(1, minReadySeconds=4)
    await place.ready(*await place.has_pods(1))
    soon = await place.shows(lambda one: one["status"].get("readyReplicas") == 1)
    assert "availableReplicas" not in soon["status"]
    await place.rolled_out()


async def test_a_deployment_takes_its_sets_and_pods_along(place: Place) -> None:
    await place.deploy(2)
    await place.rolled_out()
    await place.api.delete(DEPLOYMENTS, "web", place.namespace)

    async def nothing() -> bool:
        return not await place.sets() and not [one for one in (await place.api.list(PODS, place.namespace)).items if counts(one)]

    await place.eventually(nothing)


async def test_a_set_that_nobody_manages_is_taken_in(place: Place) -> None:
    await place.deploy(2)
    await place.rolled_out()
    await place.api.delete(DEPLOYMENTS, "web", place.namespace, {"propagationPolicy": "Orphan"})

    async def orphaned() -> Json | None:
        (one,) = await place.sets()
        return None if one["metadata"].get("ownerReferences") else one

    async def gone() -> bool:
        return (await place.api.get(DEPLOYMENTS, "web", place.namespace)).code == 404

    orphan = await place.eventually(orphaned)
    await place.eventually(gone)
    before = {one["metadata"]["uid"] for one in await place.pods()}
    made = await place.deploy(2)
    await place.rolled_out()
    (one,) = await place.sets()
    assert one["metadata"]["uid"] == orphan["metadata"]["uid"]
    assert one["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert {one["metadata"]["uid"] for one in await place.pods()} == before


async def test_why_pods_cannot_be_made_is_said(place: Place) -> None:
    spec = {"containers": [{"name": "main", "image": "x"}], "priorityClassName": "no-such-class"}
    await place.deploy(1, template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    failed = await place.shows(lambda one: words(one, "ReplicaFailure") == ("True", "FailedCreate"))
    assert "no-such-class" in condition(failed, "ReplicaFailure")["message"]
    (one,) = await place.sets()
    assert words(one, "ReplicaFailure") == ("True", "FailedCreate")

    async def told() -> list[str]:
        return await place.told(one["metadata"]["name"], "FailedCreate")

    assert "no-such-class" in (await place.eventually(told))[0]
    await place.change({"spec": {"template": {"spec": {"priorityClassName": None}}}})
    await place.rolled_out()
    await place.shows(lambda one: condition(one, "ReplicaFailure") == {})


async def test_annotations_may_be_written_with_a_status_and_are_no_new_generation(place: Place) -> None:
    await place.deploy(0)
    await place.shows(lambda one: one["status"].get("observedGeneration") == 1)
    patch = {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}
    changed = (await place.api.patch(DEPLOYMENTS, "web", patch, place.namespace, "status")).ok
    assert changed["metadata"]["annotations"]["a"] == "b"
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1
    (one,) = await place.has_sizes(0)
    changed = (await place.api.patch(REPLICA_SETS, one["metadata"]["name"], patch, place.namespace, "status")).ok
    assert changed["metadata"]["labels"]["c"] == "d"

"""The controller of pools while what it knows of machines is late: what it deletes, and which names are free, it asks for first."""

import asyncio

import pytest

from herder.controllers.configuration import WHERE
from herder.kube.resources import CONFIG_MAPS, INSTANCES, MACHINES, POOLS, Key
from tests.unit.controllers.pool_cluster import INSTANCE_SPEC, MACHINE_SPEC, Cluster, Json, play


@pytest.mark.parametrize("number", [1, 2, 3])
def test_label_then_scale_with_the_machines_cache_behind_that_of_pools(number: int) -> None:
    async def story(cluster: Cluster) -> None:
        marked = {"orderedPolicies": [{"labelSelector": {"matchLabels": {"drop": "yes"}}}]}
        await cluster.make(3, scaleInStrategy={"proactive": {"selectionPolicy": marked}})
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]
        cluster.late.open.clear()
        await cluster.person.patch(MACHINES, Key("default", f"web-{number}"), {"metadata": {"labels": {"drop": "yes"}}})
        await cluster.scale(2)
        assert await cluster.staying() == [f"web-{one}" for one in (1, 2, 3) if one != number]

    play(story)


def test_a_machine_that_a_person_has_just_made_is_not_taken_over() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        cluster.late.open.clear()
        await cluster.person.create(MACHINES, {"metadata": {"name": "web-2", "namespace": "default"}, "spec": MACHINE_SPEC})
        await cluster.scale(2)
        theirs = await cluster.person.get(MACHINES, Key("default", "web-2"))
        assert (theirs.metadata.owner_references, theirs.labels) == (None, {})
        cluster.late.open.set()
        await asyncio.sleep(5)
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]
        # Its number is free again once it is gone.
        await cluster.person.delete(MACHINES, Key("default", "web-2"))
        await asyncio.sleep(5)
        assert await cluster.staying() == ["web-1", "web-3"]
        await cluster.scale(3)
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]

    play(story)


@pytest.mark.parametrize("spec", [MACHINE_SPEC, {**MACHINE_SPEC, "running": True}], ids=["like ours", "another"])
def test_a_machine_that_a_person_makes_between_our_look_and_our_write_stays_theirs(spec: Json) -> None:
    """Also where it says nothing else than ours: then no two managers disagree about a field."""

    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        body = {"metadata": {"name": "web-2", "namespace": "default"}, "spec": spec}
        cluster.late.before_write = lambda: cluster.person.create(MACHINES, body)
        await cluster.scale(2)
        assert cluster.late.before_write is None
        theirs = await cluster.person.get(MACHINES, Key("default", "web-2"))
        assert (theirs.metadata.owner_references, theirs.labels, theirs.spec.running) == (None, {}, spec["running"])
        assert await cluster.staying() == ["web-1", "web-2", "web-3"]

    play(story)


def test_counts_are_written_at_most_once_a_second() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        before = cluster.late.statuses
        for replicas in range(2, 22):
            await cluster.person.patch(POOLS, Key("default", "web"), {"spec": {"replicas": replicas}})
            await asyncio.sleep(0.2)
        await asyncio.sleep(2)
        status = (await cluster.person.get(POOLS, Key("default", "web"))).status
        assert status is not None and status.replicas == 21
        assert 2 <= cluster.late.statuses - before <= 6

    play(story)


def test_a_machine_that_was_detached_a_moment_ago_is_not_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(2, scaleInStrategy={"proactive": {"selectionPolicy": {"basePolicy": "Newest"}}})
        cluster.late.open.clear()
        await cluster.person.patch(MACHINES, Key("default", "web-2"), {"metadata": {"ownerReferences": None}})
        await cluster.scale(0)
        assert await cluster.staying() == ["web-2"]

    play(story)


@pytest.mark.parametrize("by_now", [False, True], ids=["it does not", "it does"])
def test_whether_a_machine_runs_by_now_is_asked_before_it_is_wiped(by_now: bool) -> None:
    """Its own controller has not yet written that it does, and the cache of instances is behind as well."""
    always = {"runStrategy": "Always", "template": {"spec": INSTANCE_SPEC}}
    sick = {"startFailure": {"consecutiveFailCount": 3, "firstFailureTimestamp": "2020-01-01T00:00:00Z"}}
    key = Key("default", "web-1")

    async def story(cluster: Cluster) -> None:
        await cluster.make(1, autohealing={}, template={"spec": always})
        machine = await cluster.person.get(MACHINES, key)
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": key.name, "uid": machine.uid, "controller": True}
        metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner], "labels": machine.labels}
        await cluster.person.create(INSTANCES, {"metadata": metadata, "spec": INSTANCE_SPEC})
        await asyncio.sleep(5)
        cluster.late.instances.clear()
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        status = {"phase": "Running", "conditions": [ready]} if by_now else {"phase": "Scheduled"}
        await cluster.person.patch(INSTANCES, key, {"status": status}, subresource="status")
        await cluster.person.patch(MACHINES, key, {"status": sick}, subresource="status")
        await asyncio.sleep(5)
        assert await cluster.is_as_it_was(key, machine.uid) == by_now
        found = (await cluster.person.get(POOLS, Key("default", "web"))).status
        assert found is not None and bool(found.healing) != by_now, "nor is it written that it was"

    play(story)


def test_no_more_machines_are_on_their_way_than_herder_config_allows_and_a_change_of_it_counts_at_once() -> None:
    always = {"runStrategy": "Always", "template": {"spec": INSTANCE_SPEC}}

    async def story(cluster: Cluster) -> None:
        metadata = {"name": WHERE.name, "namespace": WHERE.namespace}
        await cluster.person.create(CONFIG_MAPS, {"metadata": metadata, "data": {"pools.yaml": "burst: 3"}})
        await asyncio.sleep(1)
        # Nobody starts them: all stay on their way.
        await cluster.make(9, template={"spec": always})
        assert len(await cluster.staying()) == 3
        await cluster.person.patch(CONFIG_MAPS, WHERE, {"data": {"pools.yaml": "burst: 5"}})
        await asyncio.sleep(5)
        assert len(await cluster.staying()) == 5
        await cluster.person.delete(CONFIG_MAPS, WHERE)
        await asyncio.sleep(5)
        assert len(await cluster.staying()) == 9

    play(story)

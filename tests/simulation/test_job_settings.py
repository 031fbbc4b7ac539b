"""What jobs.yaml says, each setting where it decides: in a cluster of its own, under virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest

from herder.kube.resources import BUDGETS, JOBS, PODS, RESERVATIONS, Key
from tests.simulation.cluster import CONTROLLERS, node
from tests.simulation.jobs.cluster import Cluster, in_cluster


def test_a_dry_run_decides_everything_and_does_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.settings("dryRun: true")
        pods = await cluster.deploy("web", 2)
        before = await cluster.pods()
        for number, mode in enumerate(("ReservationFirst", "EvictDirectly")):
            await cluster.file(f"job-{number}", pods[number], mode=mode)
            await asyncio.sleep(10)
        assert set((await cluster.statuses()).values()) == {("Succeed", "DryRun")}
        assert await cluster.pods() == before
        assert (await cluster.client.list(RESERVATIONS)).items == []
        jobs = (await cluster.client.list(JOBS)).items
        assert all(not job.metadata.finalizers for job in jobs)
        assert all(job.spec.reservation_options is None for job in jobs)
        # What was only tried is over: the pod can be moved now.
        await cluster.settings("")
        await cluster.file("really", pods[0])
        await asyncio.sleep(60)
        assert (await cluster.statuses())["really"] == ("Succeed", "")
        assert await cluster.pods() != before

    in_cluster(story)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("maxMigratingGlobally: 1", "WaitingForGlobalLimit"),
        ("maxMigratingPerNamespace: 1", "WaitingForNamespaceLimit"),
        ("maxMigratingPerNode: 1", "WaitingForNodeLimit"),
        ("maxMigratingGlobally: 0", "WaitingForGlobalLimit"),
    ],
)
def test_a_limit_holds_all_but_so_many_and_lets_them_go_when_it_is_raised(setting: str, reason: str) -> None:
    """There is one node, so that those that run find no room, and stay."""
    others = "" if "PerNode" in setting else "maxMigratingPerNode: 9\n"

    async def story(cluster: Cluster) -> None:
        await cluster.settings(f"{others}{setting}")
        pods = [(await cluster.deploy(name, 1))[0] for name in ("a", "b", "c")]
        for number, pod in enumerate(pods):
            await cluster.file(f"job-{number}", pod)
        await asyncio.sleep(10)
        allowed = int(setting[-1])
        held = sorted((await cluster.statuses()).values())
        assert held == [("Pending", reason)] * (3 - allowed) + [("Running", "Unschedulable")] * allowed
        await cluster.settings(f"{others}{setting[:-1]}3")
        await asyncio.sleep(10)
        assert sorted((await cluster.statuses()).values()) == [("Running", "Unschedulable")] * 3
        # Lowered below what runs: those that run go on, and nobody new begins.
        await cluster.settings(f"{others}{setting[:-1]}1")
        await cluster.client.delete(JOBS, Key("", "job-0"))
        await asyncio.sleep(5)
        await cluster.file("late", pods[0])
        await asyncio.sleep(10)
        assert sorted((await cluster.statuses()).values()) == [("Pending", reason), *[("Running", "Unschedulable")] * 2]

    in_cluster(story, nodes=1)


def test_switched_off_nobody_begins_and_who_runs_goes_on() -> None:
    async def story(cluster: Cluster) -> None:
        pods = [(await cluster.deploy(name, 1))[0] for name in ("a", "b")]
        await cluster.file("first", pods[0])
        await asyncio.sleep(10)
        await cluster.settings("enabled: false")
        await cluster.file("second", pods[1])
        await asyncio.sleep(10)
        assert await cluster.statuses() == {"first": ("Running", "Unschedulable"), "second": ("Pending", "Disabled")}
        cluster.simulation.machines["node-2"].start()
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"first": ("Succeed", ""), "second": ("Pending", "Disabled")}

    async def with_a_node_to_come(cluster: Cluster) -> None:
        node(cluster.simulation, "node-2")
        await story(cluster)

    in_cluster(with_a_node_to_come, nodes=1)


def test_what_waits_or_is_kept_for_too_long_goes() -> None:
    async def story(cluster: Cluster) -> None:
        pods = await cluster.deploy("web", 1)
        await cluster.settings("maxMigratingGlobally: 0\npendingTTL: 1m\nfinishedJobTTL: 10m")
        await cluster.file("stale", pods[0])
        await asyncio.sleep(30)
        assert await cluster.statuses() == {"stale": ("Pending", "WaitingForGlobalLimit")}
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"stale": ("Failed", "Timeout")}
        await asyncio.sleep(660)
        assert await cluster.statuses() == {}

    in_cluster(story, nodes=1)


def test_a_bare_pod_that_failed_is_evicted_where_the_settings_say_so() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.settings("evictFailedBarePods: true")
        spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": "nowhere"}
        await cluster.client.create(PODS, {"metadata": {"name": "bare", "namespace": "default"}, "spec": spec})
        await cluster.client.patch(PODS, Key("default", "bare"), {"status": {"phase": "Failed"}}, subresource="status")
        await cluster.file("job", "bare")
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"job": ("Succeed", "")}
        assert await cluster.pods() == set()

    in_cluster(story, nodes=1)


def test_evictions_come_no_faster_than_the_settings_say() -> None:
    """Also after the leader has changed: the bucket is empty at the start of each term."""

    async def story(cluster: Cluster) -> None:
        await cluster.settings('evictQPS: "0.1"\nevictBurst: 1\nmaxMigratingPerNode: 100')
        pods = [(await cluster.deploy(name, 1))[0] for name in ("a", "b", "c", "d")]
        went = _ends_of_pods(cluster)
        for number, pod in enumerate(pods):
            await cluster.file(f"job-{number}", pod, mode="EvictDirectly")
        await asyncio.sleep(15)
        assert len(went) == 1
        told = [status for status in (await cluster.statuses()).values() if status != ("Succeed", "")]
        assert set(told) == {("Running", "WaitingForFlowControl")}
        cluster.simulation.machines[f"{CONTROLLERS}-a"].crash("killed", 1.0)
        await asyncio.sleep(120)
        assert len(went) == 4
        assert all(later - earlier > 9.9 for earlier, later in itertools.pairwise(went)), went

    in_cluster(story)


def test_evictions_that_budgets_held_back_do_not_come_all_at_once() -> None:
    """A turn that could not be used is over: whoever waited has no claim to go together with all the others."""

    async def story(cluster: Cluster) -> None:
        await cluster.settings('evictQPS: "0.1"\nevictBurst: 1\nmaxMigratingPerNode: 100')
        names = ("a", "b", "c", "d")
        pods = [(await cluster.deploy(name, 1))[0] for name in names]
        for name, pod in zip(names, pods, strict=True):
            await cluster.file(name, pod, mode="EvictDirectly")
        await asyncio.sleep(5)
        for name in names:
            budget = {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": 0}
            await cluster.client.create(BUDGETS, {"metadata": {"name": name, "namespace": "default"}, "spec": budget})
        went = _ends_of_pods(cluster)
        await asyncio.sleep(60)
        assert (await cluster.statuses(), went) == (dict.fromkeys(names, ("Running", "WaitingForDisruptionBudget")), [])
        for name in names:
            await cluster.client.patch(BUDGETS, Key("default", name), {"spec": {"maxUnavailable": 1}})
        await asyncio.sleep(120)
        assert len(went) == 4
        assert all(later - earlier > 9.9 for earlier, later in itertools.pairwise(went)), went

    in_cluster(story)


def _ends_of_pods(cluster: Cluster) -> list[float]:
    """When pods are gone, from now on."""
    went: list[float] = []
    clock = cluster.simulation.loop.time
    cluster.simulation.server.listeners.append(
        lambda change: went.append(clock()) if change.table == "pods" and change.kind == "DELETED" else None
    )
    return went


@pytest.mark.parametrize("policy", ["Eviction", "Delete"])
def test_a_pods_end_is_by_the_settings_unless_the_job_says_otherwise(policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.settings(
            f"evictionPolicy: {policy}\ndefaultDeleteOptions: {{gracePeriodSeconds: 7}}\ndefaultJobMode: EvictDirectly"
        )
        pods = await cluster.deploy("web", 4, terminationGracePeriodSeconds=20)
        graces: list[int] = []

        def note(change: Any) -> None:
            if change.table == "pods" and change.kind == "MODIFIED":
                grace = msgspec.json.decode(change.record.raw)["metadata"].get("deletionGracePeriodSeconds")
                graces.extend([grace] if grace is not None and grace not in graces else [])

        cluster.simulation.server.listeners.append(note)
        await cluster.file("by-setting", pods[0])
        await asyncio.sleep(30)
        assert (graces[:1], await cluster.statuses()) == ([7], {"by-setting": ("Succeed", "")})
        await cluster.file("by-job", pods[1], deleteOptions={"gracePeriodSeconds": 3})
        await asyncio.sleep(30)
        assert (graces[-1] in (3, 0), 3 in graces) == (True, True)
        jobs = {job.name: job.status for job in (await cluster.client.list(JOBS)).items}
        assert {status.mode for status in jobs.values() if status} == {"EvictDirectly"}

    in_cluster(story)

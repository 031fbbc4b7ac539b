"""What commands read live is what the controller keeps from caches: else a plan would be another one than the deed."""

from __future__ import annotations

import asyncio
from typing import Any

from herder.api.labels import SURGE
from herder.cli.job.cluster import read_cluster
from herder.cli.job.reading import read_jobs
from herder.kube.resources import DEPLOYMENTS, INSTANCES, JOBS, MACHINES, PODS, POOLS, REPLICA_SETS, STATEFUL_SETS, Key
from herder.rules.jobs.arbitration import ArbitrationSnapshot, arbitrate
from herder.rules.jobs.gather import arbitration_snapshot
from herder.rules.workloads.templates import TEMPLATE_HASH
from tests.unit.controllers.arbitration import Stage, on_stage
from tests.unit.controllers.test_workloads import DOMAIN, LABELS, MACHINE, SELECTING

Json = dict[str, Any]


async def live(stage: Stage) -> ArbitrationSnapshot:
    seen = await read_cluster(stage.person, await read_jobs(stage.person))
    assert seen.limits_known and seen.unknown == ()
    return arbitration_snapshot(seen.cluster, seen.config)


def kept(stage: Stage) -> ArbitrationSnapshot:
    return stage.arbitrator._candidates.standing.snapshot()  # pyright: ignore[reportPrivateUsage]


def by_name(candidates: Any) -> list[Any]:
    return sorted(candidates, key=lambda one: one.name)


async def agreed(stage: Stage) -> ArbitrationSnapshot:
    await asyncio.sleep(60)
    read, cached = await live(stage), kept(stage)
    assert by_name(read.pending) == by_name(cached.pending)
    assert sorted(read.migrating, key=lambda one: one.job) == sorted(cached.migrating, key=lambda one: one.job)
    waiting = {one.pod.workload for one in read.pending if one.pod is not None and one.pod.workload is not None}
    assert {name: read.workloads[name] for name in waiting} == {name: cached.workloads[name] for name in waiting}
    uids = {one.pod.uid for one in read.pending if one.pod is not None} | {one.uid for one in read.migrating}
    assert {uid: read.budgets_of(uid) for uid in uids} == {uid: cached.budgets_of(uid) for uid in uids}
    assert read.config == cached.config
    return read


async def owners(stage: Stage) -> None:
    """A pod of everything that keeps some."""
    # Of the first one pods go before their replacements come, of the second afterwards.
    deployment = await stage.make(DEPLOYMENTS, "shop", {"replicas": 3, **SELECTING})
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    kept_up = await stage.make(DEPLOYMENTS, "kept", {"replicas": 1, "strategy": rolling, **SELECTING}, annotations={SURGE: "true"})
    kept_below = await stage.make(REPLICA_SETS, "kept-1", {"replicas": 1, **SELECTING}, kept_up)
    below = await stage.make(REPLICA_SETS, "shop-1", {"replicas": 3, **SELECTING}, deployment)
    ordered = await stage.make(STATEFUL_SETS, "db", {"replicas": 2, "serviceName": "db", **SELECTING})
    kind = await stage.define("stranger.io", "Herd", scale=True)
    strange = await stage.make(kind, "cows", {"replicas": 4})
    machine_spec = {**MACHINE, "running": True}
    pool = await stage.make(
        POOLS, "guests", {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": {"spec": machine_spec}}
    )
    machine = await stage.make(MACHINES, "guests-0", machine_spec, pool)
    instance = await stage.make(INSTANCES, "guests-0", DOMAIN, machine)
    await stage.make(MACHINES, "guests-1", {**MACHINE, "running": False}, pool)
    sets = ((DEPLOYMENTS, "shop"), (REPLICA_SETS, "shop-1"), (DEPLOYMENTS, "kept"), (REPLICA_SETS, "kept-1"))
    for resource, name in (*sets, (STATEFUL_SETS, "db"), (POOLS, "guests")):
        await stage.status(resource, name, {"observedGeneration": 1})
    for name, owner, ready in (
        ("shop-a", below, True),
        ("shop-b", below, False),
        ("kept-a", kept_below, True),
        ("db-0", ordered, True),
        ("cow-0", strange, True),
        ("guest-0", instance, True),
        ("bare", None, True),
    ):
        await stage.make_pod(name, owner, ready=ready, labels={**LABELS, TEMPLATE_HASH: "1"})
    await stage.status(INSTANCES, "guests-0", {"phase": "Running", "launcherPodName": "guest-0"})


def test_of_every_kind_of_workload_the_same_is_read() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingPerNode: 1\nevictLocalStoragePods: true")
        await owners(stage)
        await stage.budget(1)
        await stage.file("shop-a", "shop-b", "kept-a", "db-0", "cow-0", "guest-0")
        for name in ("shop-b", "db-0"):
            await stage.person.patch(JOBS, Key("", name), {"metadata": {"annotations": {"herder.dev/migration-priority": "3"}}})
        read = await agreed(stage)
        assert len(read.migrating) == 1 and len(read.pending) == 5
        assert {name for name in ("shop-a", "kept-a") if read.budgets_of(stage.pod(name).uid).budgets} == {"shop-a"}
        reasons = {name: wait.reason for name, wait in arbitrate(read).waiting.items()}
        assert reasons == {one.name: await stage.reason(one.name) for one in read.pending}

    on_stage(story)


def test_what_jobs_before_say_and_pods_that_are_gone_are_read_alike() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 0")
        owner = await stage.web(4)
        await stage.file("web-0", "web-1")
        for name, phase in (("web-0", "Failed"), ("web-1", "Succeed")):
            status = {"podUID": stage.pod(name).uid, "completionTime": "2026-01-01T00:00:00Z"}
            about = {"workloadRef": {"kind": "ReplicaSet", "namespace": "default", "uid": owner["uid"]}}
            await stage.set_status(name, phase=phase, **status, **about)
        for pod in ("web-0", "web-2", "web-3"):
            reference = {"namespace": "default", "name": pod}
            await stage.person.create(
                JOBS, {"metadata": {"name": f"again-{pod}"}, "spec": {"podRef": reference, "paused": pod == "web-3"}}
            )
        read = await agreed(stage)
        told = {one.name: (one.failures, one.deschedulings, one.paused) for one in read.pending}
        assert told == {"again-web-0": (1, 1, False), "again-web-2": (0, 1, False), "again-web-3": (0, 1, True)}

    on_stage(story)


def test_a_pod_on_its_way_back_to_its_replica_set_is_left_alone_by_both() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 0")
        owner = await stage.web(2)
        await stage.file("web-0")
        await stage.set_status("web-0", phase="Pending", workloadRef={key: owner[key] for key in ("kind", "name", "uid")})
        let_go = {"metadata": {"ownerReferences": [{**owner, "controller": False}]}}
        await stage.person.patch(PODS, Key("default", "web-0"), let_go)
        [candidate] = (await agreed(stage)).pending
        assert candidate.pod is None and candidate.forbidden == ""

    on_stage(story)

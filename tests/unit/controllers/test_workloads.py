"""The workload of a pod, found in caches that follow a server."""

import asyncio
from typing import Any

from herder.controllers.job.scales import AT_ONCE, FIRST_RETRY, FRESH, MOST_KNOWN, PATIENCE, REST, USABLE
from herder.kube.errors import Forbidden, ServerFailed, Unreachable
from herder.kube.resources import (
    DEFINITIONS,
    DEPLOYMENTS,
    INSTANCES,
    MACHINES,
    PODS,
    POOLS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Key,
)
from herder.rules.jobs.budgets import Target
from herder.rules.jobs.workload import Controller, Scale, Workload
from tests.unit.controllers.finders import MOMENT, Finders, play

Json = dict[str, Any]
LABELS = {"app": "web"}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTING: Json = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
DOMAIN: Json = {"domain": {"memory": {"guest": "64Mi"}}}
MACHINE: Json = {"running": True, "template": {"spec": DOMAIN}}


def found(finders: Finders, pod: str) -> Workload:
    workload = finders.workloads.of(finders.pod(pod))
    assert workload is not None
    return workload


def counts(finders: Finders, pod: str) -> tuple[int, int, int]:
    """Of the pod's workload: replicas that are available, that are there and are not, and that are not there."""
    replicas = finders.workloads.replicas(found(finders, pod))
    return len(replicas.available), len(replicas.unready), replicas.missing


async def keep_current(finders: Finders, resource: Any, name: str, **status: Any) -> None:
    await finders.status(resource, name, {"observedGeneration": 1, **status})


def test_all_pods_of_a_deployment_are_its_replicas_whichever_set_keeps_them() -> None:
    async def story(finders: Finders) -> None:
        deployment = await finders.make(DEPLOYMENTS, "web", {"replicas": 4, **SELECTING})
        old = await finders.make(REPLICA_SETS, "web-1", {"replicas": 1, **SELECTING}, deployment)
        new = await finders.make(REPLICA_SETS, "web-2", {"replicas": 3, **SELECTING}, deployment)
        await finders.make_pod("old", old)
        await finders.make_pod("new", new, ready=False)
        await finders.make_pod("bare")
        await keep_current(finders, DEPLOYMENTS, "web", replicas=2, updatedReplicas=1)
        await asyncio.sleep(MOMENT)
        workload = found(finders, "old")
        assert (workload.kind, workload.name, workload.replicas, workload.rolling_out) == ("Deployment", "web", 4, True)
        assert (workload.controller.name, found(finders, "new").controller.name) == ("web-1", "web-2")
        assert found(finders, "new").id == workload.id
        assert counts(finders, "old") == (1, 1, 2)
        assert [key.name for key in finders.workloads.pods(workload)] == ["new", "old"]
        assert finders.workloads.of(finders.pod("bare")) is None
        # What was answered is kept, until something that it was made of changes.
        assert finders.workloads.of(finders.pod("old")) is workload
        finders.changed.clear()
        await finders.set_ready("new", True)
        await asyncio.sleep(MOMENT)
        assert finders.changed == [workload.id]
        assert counts(finders, "old") == (2, 0, 2)
        assert found(finders, "new").replicas == 4
        await finders.person.delete(PODS, Key("default", "old"), grace_period_seconds=0)
        await finders.person.patch(REPLICA_SETS, Key("default", "web-1"), {"spec": {"replicas": 0}})
        await finders.person.patch(DEPLOYMENTS, Key("default", "web"), {"spec": {"replicas": 2}})
        await finders.status(DEPLOYMENTS, "web", {"observedGeneration": 2, "replicas": 1})
        await asyncio.sleep(MOMENT)
        assert (found(finders, "new").replicas, found(finders, "new").rolling_out) == (2, False)
        assert counts(finders, "new") == (1, 0, 1)

    play(story)


def test_a_stateful_set_that_was_made_again_is_not_that_of_a_pod_of_before() -> None:
    async def story(finders: Finders) -> None:
        spec = {"replicas": 2, "serviceName": "", **SELECTING}
        before = await finders.make(STATEFUL_SETS, "db", spec)
        await finders.make_pod("db-0", before)
        await keep_current(finders, STATEFUL_SETS, "db")
        await asyncio.sleep(MOMENT)
        assert (found(finders, "db-0").replicas, counts(finders, "db-0")) == (2, (1, 0, 1))
        await finders.person.delete(STATEFUL_SETS, Key("default", "db"), propagation="Orphan")
        await asyncio.sleep(MOMENT)
        await finders.make(STATEFUL_SETS, "db", {**spec, "replicas": 7})
        await finders.person.patch(PODS, Key("default", "db-0"), {"metadata": {"ownerReferences": [before]}})
        await asyncio.sleep(0.01)
        workload = found(finders, "db-0")
        assert (workload.missing, workload.replicas, workload.uid) == (True, None, before["uid"])
        assert "is another one by now" in workload.problem

    play(story)


def test_a_pools_replicas_are_its_guests_and_not_the_pods_that_wait_for_them() -> None:
    async def story(finders: Finders) -> None:
        pool = await finders.make(POOLS, "vms", {"replicas": 3, "template": {"spec": MACHINE}})
        await finders.make(MACHINES, "vms-3", {**MACHINE, "running": False}, pool)
        instance: Json = {}
        for name in ("vms-1", "vms-2"):
            instance = await finders.make(INSTANCES, name, DOMAIN, await finders.make(MACHINES, name, MACHINE, pool))
            await finders.make_pod(f"launcher-{name}", instance)
        await finders.make_pod("target", instance, labels={"kubevirt.io/migrationJobUID": "m"})
        await keep_current(finders, POOLS, "vms")
        await asyncio.sleep(MOMENT)
        workload = found(finders, "target")
        assert (workload.kind, workload.name, workload.replicas) == ("VirtualMachinePool", "vms", 3)
        # Who is kept off is not missed.
        assert counts(finders, "launcher-vms-1") == (2, 0, 0)
        await finders.status(INSTANCES, "vms-2", {"launcherPodName": "target"})
        await finders.set_ready("target", False)
        await asyncio.sleep(MOMENT)
        assert counts(finders, "target") == (1, 1, 0)
        assert [key.name for key in finders.workloads.pods(workload)] == ["launcher-vms-1", "target"]
        # A pool has machines, and no pods of its own, whatever a pod says.
        await finders.make_pod("pretender", pool)
        await asyncio.sleep(MOMENT)
        assert counts(finders, "target") == (1, 1, 0)
        # One that somebody made its own owner: the circle is left.
        itself = await finders.make(MACHINES, "vm", MACHINE)
        await finders.person.patch(MACHINES, Key("default", "vm"), {"metadata": {"ownerReferences": [itself]}})
        await finders.make_pod("circling", await finders.make(INSTANCES, "vm", DOMAIN, itself))
        await asyncio.sleep(MOMENT)
        assert (found(finders, "circling").kind, counts(finders, "circling")) == ("VirtualMachine", (1, 0, 0))

    play(story)


def test_a_kind_of_somebody_elses_says_its_replicas_through_its_scale() -> None:
    async def story(finders: Finders) -> None:
        clone_sets = await finders.define("apps.kruise.io", "CloneSet", scale=True)
        owner = await finders.make(clone_sets, "clones", {"replicas": 3})
        await finders.make_pod("a", owner)
        await finders.make_pod("b", owner, ready=False)
        await asyncio.sleep(MOMENT)
        first = found(finders, "a")
        assert (first.replicas, first.missing) == (None, False)
        assert first.problem == "the scale of CloneSet clones has not been read yet"
        await asyncio.sleep(MOMENT)
        assert first.id in finders.changed
        assert (found(finders, "a").replicas, counts(finders, "a")) == (3, (1, 1, 1))
        # However often it is asked for, it is read once in a while.
        for _ in range(100):
            found(finders, "b")
        await finders.person.patch(clone_sets, Key("default", "clones"), {"spec": {"replicas": 5}})
        await asyncio.sleep(MOMENT)
        assert (found(finders, "a").replicas, len(finders.reads())) == (3, 1)
        await asyncio.sleep(FRESH)
        found(finders, "a")
        await asyncio.sleep(MOMENT)
        assert (found(finders, "a").replicas, len(finders.reads())) == (5, 2)
        # Right now, for who is about to act; and nobody reads what nobody asks about.
        await finders.person.patch(clone_sets, Key("default", "clones"), {"spec": {"replicas": 0}})
        assert await finders.workloads.scales.read("default", first.controller) == Scale(owner["uid"], 0)
        await asyncio.sleep(10 * USABLE)
        assert len(finders.reads()) == 3
        target = Target("apps.kruise.io", "CloneSet", "clones")
        assert [key.name for key in finders.workloads.pods_of_target("default", target)] == ["a", "b"]

    play(story)


def test_a_kind_without_scale_has_as_many_replicas_as_live_pods() -> None:
    async def story(finders: Finders) -> None:
        gangs = await finders.define("batch.stranger.io", "Gang", scale=False)
        owner = await finders.make(gangs, "gang", {})
        for name in ("a", "b", "done"):
            await finders.make_pod(name, owner)
        await finders.status(PODS, "done", {"phase": "Succeeded"})
        await asyncio.sleep(MOMENT)
        found(finders, "a")
        await asyncio.sleep(MOMENT)
        workload = found(finders, "a")
        assert (workload.replicas, workload.scalable, counts(finders, "a")) == (2, False, (2, 0, 0))
        assert not finders.reads()

    play(story)


def test_a_scale_that_cannot_be_read_is_not_zero() -> None:
    refusals: dict[str, Exception | None] = {
        "may not get scale": Forbidden(403, "Forbidden", "may not get scale"),
        "not now": ServerFailed(503, "ServiceUnavailable", "not now"),
        "no whole answer": Unreachable("no whole answer"),
        "no answer within 5 s": None,
    }

    async def story(finders: Finders) -> None:
        clone_sets = await finders.define("apps.kruise.io", "CloneSet", scale=True)
        for number, (said, refusal) in enumerate(refusals.items()):
            pod = f"p-{number}"
            await finders.make_pod(pod, await finders.make(clone_sets, f"clones-{number}", {"replicas": 3}))
            await asyncio.sleep(MOMENT)
            if refusal is not None:
                finders.line.refusals["/scale"] = refusal
            else:
                finders.line.seconds = PATIENCE + 1
            found(finders, pod)
            await asyncio.sleep(PATIENCE + MOMENT)
            workload = found(finders, pod)
            assert (workload.replicas, workload.missing, workload.scalable) == (None, False, True)
            assert workload.problem == f"the scale of CloneSet clones-{number} cannot be read: {said}"
            finders.line.refusals.clear()
            finders.line.seconds = 0.0
            # It is tried again by itself.
            await asyncio.sleep(2 * FIRST_RETRY + REST)
            assert found(finders, pod).replicas == 3

    play(story)


def test_an_owner_that_is_gone_and_a_kind_that_is_gone_are_told_apart() -> None:
    async def story(finders: Finders) -> None:
        clone_sets = await finders.define("apps.kruise.io", "CloneSet", scale=True)
        there = await finders.make(clone_sets, "clones", {"replicas": 3})
        scales = finders.workloads.scales
        version, kind = there["apiVersion"], there["kind"]
        gone = await scales.read("default", Controller(version, kind, "gone", "u"))
        assert (gone.why, gone.message) == ("Missing", "CloneSet gone is not there")  # type: ignore[union-attr]
        assert await scales.read("default", Controller(version, kind, "clones", "u")) == Scale(there["uid"], 3)
        await finders.person.delete(DEFINITIONS, Key("", "clonesets.apps.kruise.io"))
        await asyncio.sleep(MOMENT)
        for _ in range(2):
            lost = await scales.read("default", Controller(version, kind, "clones", there["uid"]))
            assert lost.why == "Unknown"  # type: ignore[union-attr]
        made_up = await scales.read("default", Controller("made.up/v1", "Thing", "x", "u"))
        assert made_up.message == "no kind Thing of made.up/v1 is served"  # type: ignore[union-attr]

    play(story)


def test_a_namespace_full_of_strange_controllers_keeps_nobody_else_waiting() -> None:
    async def story(finders: Finders) -> None:
        await finders.define("apps.kruise.io", "CloneSet", scale=True)
        scales = finders.workloads.scales

        def ask(namespace: str, number: int) -> Any:
            return scales.get(namespace, Controller("apps.kruise.io/v1alpha1", "CloneSet", f"c-{number}", f"u-{number}"))

        for number in range(2 * MOST_KNOWN):
            ask("crowded", number)
        ask("quiet", 0)
        await asyncio.sleep(MOMENT)
        # One turn of the crowd, and then the other one's.
        assert len([path for path in finders.reads() if "/quiet/" in path]) == 1
        assert len(finders.reads()) == AT_ONCE + 1
        for number in range(MOST_KNOWN):
            ask("crowded", number)
        await asyncio.sleep(REST - MOMENT)
        assert len(finders.reads()) == AT_ONCE + 1
        await asyncio.sleep(MOMENT)
        assert len(finders.reads()) == 2 * AT_ONCE + 1
        assert ask("quiet", 0).why == "Missing"
        beyond = ask("crowded", 2 * MOST_KNOWN)
        assert beyond.why == "Unknown"
        assert beyond.message == f"more than {MOST_KNOWN} controllers of namespace crowded would have to be asked for their scale"
        # Those that were read first are due again long before the last have had their turn, and come after them.
        for _ in range(int(1.5 * FRESH / REST)):
            for number in range(MOST_KNOWN):
                ask("crowded", number)
            await asyncio.sleep(REST)
        crowded = [path for path in finders.reads() if "/crowded/" in path]
        assert len(crowded) == len(set(crowded)) > FRESH / REST * AT_ONCE
        # Made-up groups cost one look at what the server has, however many they are.
        before = len(finders.line.calls)
        for number in range(20):
            await scales.read("quiet", Controller(f"g{number}.made.up/v1", "Thing", "x", "u"))
        assert len(finders.line.calls) - before <= 1

    play(story)

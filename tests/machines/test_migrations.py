"""Live migrations of simulated guests, through the API alone. The first five are the functional tests of the seed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from herder.api import labels, reasons
from tests.e2e.herder import Herder
from tests.engines.api import Api
from tests.engines.engine import Engine
from tests.engines.resources import NAMESPACES, NODES, PODS
from tests.machines.herd import INSTANCES, Herd, Json
from tests.machines.migrations import CRAWL, MIGRATIONS, POLICIES, SETTINGS, Movers, named

CLUSTER = {"migrations": {"unschedulablePendingTimeout": 3}}


@pytest.fixture
async def impatient(api: Api) -> None:
    """The same for all tests that ask: they share the cluster."""
    await api.create(NAMESPACES, {"metadata": {"name": "kubevirt"}})
    metadata = {"name": "kubevirt", "namespace": "kubevirt"}
    kind = {"apiVersion": SETTINGS.api_version, "kind": SETTINGS.kind}
    wanted = {**kind, "metadata": metadata, "spec": {"configuration": CLUSTER}}
    applied = await api.patch(SETTINGS, "kubevirt", wanted, "kubevirt", kind="apply", fieldManager="tests")
    assert applied.code in (200, 201), applied.body


async def test_positive_1_a_named_node_that_can_accommodate_the_machine_gets_it(movers: Movers) -> None:
    before = await movers.make()
    (wanted,) = movers.others(before["status"]["nodeName"])
    await movers.move(addedNodeSelectorTerm=named(wanted))
    done = await movers.phase("Succeeded")
    assert done["status"]["targetNode"] == wanted
    after = await movers.on(wanted)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"], "only this one migration was constrained"
    assert after["status"]["startTime"] == before["status"]["startTime"], "it was moved, and not started again"
    pod = await movers.one_pod()
    assert pod["spec"]["nodeName"] == wanted
    # The next one is free to go anywhere, and there is only one other node.
    await movers.move(migration="back")
    await movers.phase("Succeeded", "back")
    await movers.on(before["status"]["nodeName"])


async def test_negative_1_a_node_that_does_not_match_the_machines_own_selector(movers: Movers) -> None:
    first, second = movers.nodes
    (await movers.herd.api.patch(NODES, first, {"metadata": {"labels": {"disk": "fast"}}}, kind="merge")).ok  # noqa: B018
    before = await movers.make(nodeSelector={"disk": "fast"})
    assert before["status"]["nodeName"] == first
    await movers.move(addedNodeSelectorTerm=named(second))
    message = await movers.failed(reasons.NO_MATCHING_NODE)
    assert "own" in message
    await movers.on(first)
    await movers.one_pod()


async def test_negative_2_a_node_that_does_not_exist(movers: Movers) -> None:
    await movers.make()
    await movers.move(addedNodeSelectorTerm=named("no-such-node"))
    assert "no-such-node" in await movers.failed(reasons.NODE_NOT_FOUND)
    await movers.one_pod()


async def test_negative_3_the_node_where_it_runs_already(movers: Movers) -> None:
    here = (await movers.make())["status"]["nodeName"]
    await movers.move(addedNodeSelectorTerm=named(here))
    assert here in await movers.failed(reasons.ALREADY_ON_NODE)
    await movers.one_pod()


async def test_negative_4_a_node_without_room(impatient: None, herd: Herd, unique: Callable[..., str]) -> None:
    label = unique("small")
    room = {"cpu": "8", "memory": "2Gi", "pods": "10"}
    nodes = [await herd.node(label, capacity=room, allocatable=room) for _ in range(2)]
    movers = Movers(herd, label, nodes)
    big = {"memory": {"guest": "1500Mi"}}
    for name in ("one", "two"):
        await movers.make(name, domain=big)
    await movers.move("one")
    message = await movers.failed(reasons.PENDING_TIMEOUT)
    assert "memory" in message
    assert (await herd.phase("Running", "one"))["status"]["phase"] == "Running"
    for node in nodes:
        await herd.api.delete(NODES, node)


async def test_the_phases_come_in_order_and_each_is_dated(movers: Movers) -> None:
    await movers.make()
    await movers.move()
    status = (await movers.phase("Succeeded"))["status"]
    reached = [one["phase"] for one in status["phaseTransitionTimestamps"]]
    assert reached == ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"]
    assert status["effectiveSettings"]["completionTimeoutPerGiB"] == 150
    assert status["migrationPolicy"]["why"]
    assert status["progress"]["percent"] == 100

    async def told() -> bool:
        state = (await movers.herd.phase("Running"))["status"]["migrationState"]
        assert (state["completed"], state.get("failed"), state["targetNode"]) == (True, False, status["targetNode"])
        return True

    await movers.herd.eventually(told)


async def slow_one(movers: Movers, unique: Callable[..., str]) -> tuple[Json, str]:
    policy = unique("slow")
    await movers.slow(policy)
    await movers.herd.make(name="vm", nodeSelector={movers.label: "yes"}, marked={movers.label: "slow"})
    return await movers.herd.running(), policy


async def test_while_it_goes_on_it_shows_policy_settings_and_progress(movers: Movers, unique: Callable[..., str]) -> None:
    _, policy = await slow_one(movers, unique)
    await movers.move()
    status = (await movers.phase("Running"))["status"]
    assert (status["migrationPolicy"]["name"], status["effectiveSettings"]["bandwidthPerMigration"]) == (policy, "1Mi")
    assert policy in status["migrationPolicy"]["why"]
    await movers.herd.shows("Migrating")
    # A running migration keeps its settings.
    faster = {"spec": {**CRAWL, "bandwidthPerMigration": "100Mi"}}
    (await movers.herd.api.patch(POLICIES, policy, faster, kind="merge")).ok  # noqa: B018
    again = (await movers.phase("Running"))["status"]
    assert again["effectiveSettings"]["bandwidthPerMigration"] == "1Mi"
    await movers.herd.delete("move", MIGRATIONS)
    await movers.herd.gone(MIGRATIONS, "move")


async def test_deleting_a_migration_cancels_it_and_the_guest_stays(movers: Movers, unique: Callable[..., str]) -> None:
    before, _ = await slow_one(movers, unique)
    await movers.move()
    await movers.phase("Running")
    await movers.herd.delete("move", MIGRATIONS)
    await movers.herd.gone(MIGRATIONS, "move")
    pod = await movers.one_pod()
    assert pod["metadata"]["name"] == before["status"]["launcherPodName"]
    assert labels.MIGRATION not in pod["metadata"].get("annotations", {})
    await movers.herd.shows("Running", ready=True)


async def test_a_guest_that_is_stopped_in_the_middle_ends_its_migration(movers: Movers, unique: Callable[..., str]) -> None:
    await slow_one(movers, unique)
    await movers.move()
    await movers.phase("Running")
    await movers.herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await movers.failed(reasons.SOURCE_STOPPED)
    await movers.herd.shows("Stopped")
    await movers.herd.no_pods()


async def test_a_target_that_is_deleted_in_the_middle_leaves_the_source_running(movers: Movers, unique: Callable[..., str]) -> None:
    before, _ = await slow_one(movers, unique)
    await movers.move()
    status = (await movers.phase("Running"))["status"]
    await movers.herd.delete(status["targetPod"], PODS, {"gracePeriodSeconds": 1})
    await movers.failed(reasons.TARGET_POD_FAILED)
    assert (await movers.one_pod())["metadata"]["name"] == before["status"]["launcherPodName"]
    await movers.herd.shows("Running", ready=True)


async def test_a_copy_that_fails_leaves_the_source_running(movers: Movers) -> None:
    before = await movers.make(simulated={"fails-at": "migration"})
    await movers.move()
    await movers.phase("Failed")
    assert (await movers.one_pod())["metadata"]["name"] == before["status"]["launcherPodName"]
    await movers.herd.shows("Running", ready=True)


async def test_the_drain_taint_moves_guests_off_and_new_ones_do_not_come(movers: Movers) -> None:
    here = (await movers.make())["status"]["nodeName"]
    (there,) = movers.others(here)
    await movers.taint(here, drained=True)
    await movers.on(there)
    await movers.taint(here, drained=False)
    await movers.taint(there, drained=True)
    await movers.on(here)
    await movers.taint(there, drained=False)
    made = (await movers.herd.api.list(MIGRATIONS, movers.herd.namespace)).items
    assert [one["spec"]["priority"] for one in made] == ["system-maintenance"] * 2


async def test_a_guest_that_no_node_can_take_says_so_and_leaves_a_drained_node_once_one_can(movers: Movers, tmp_path: Path) -> None:
    """Without a migration that could only fail, and another for each try."""
    here, there = movers.nodes
    herder = Herder(movers.herd.api.engine.kubeconfig, tmp_path)
    await _label(movers, here, disk="fast")
    before = await movers.make(nodeSelector={"disk": "fast"})
    assert before["status"]["nodeName"] == here
    drained = await asyncio.to_thread(herder.run, "drain", here)
    assert drained.code == 10, drained
    assert f"{movers.herd.namespace}/vm: " in drained.out and "no node can take it: " in drained.out
    assert drained.err.startswith(f"herder: 1 guest is on {here} and cannot leave: {movers.herd.namespace}/vm. ")

    async def conditions() -> Json:
        return {one["type"]: one for one in (await movers.herd.instance() or {})["status"]["conditions"]}

    async def shown() -> Json:
        found = await conditions()
        assert reasons.EVACUATING in found
        return found[reasons.EVACUATING]

    said = await movers.herd.eventually(shown)
    assert (said["status"], said["reason"]) == ("False", reasons.NO_MATCHING_NODE)
    assert "do not match the machine's own node rules" in said["message"]
    assert (await movers.herd.api.list(MIGRATIONS, movers.herd.namespace)).items == []
    await _label(movers, there, disk="fast")
    await movers.on(there)
    assert (await asyncio.to_thread(herder, "drain", here)).splitlines()[-1].startswith(f"node/{here} is empty")

    async def silent() -> bool:
        assert reasons.EVACUATING not in await conditions()
        return True

    await movers.herd.eventually(silent)


async def _label(movers: Movers, node: str, **labels_: str) -> None:
    (await movers.herd.api.patch(NODES, node, {"metadata": {"labels": labels_}})).ok  # noqa: B018


async def test_five_finished_migrations_are_kept(movers: Movers) -> None:
    await movers.make()
    for number in range(7):
        await movers.move(migration=f"m-{number}")
        await movers.phase("Succeeded", f"m-{number}")

    async def look() -> bool:
        kept = [one["metadata"]["name"] for one in (await movers.herd.api.list(MIGRATIONS, movers.herd.namespace)).items]
        assert kept == [f"m-{number}" for number in range(2, 7)], kept
        return True

    await movers.herd.eventually(look)


async def test_a_paused_guest_stays_paused_where_it_comes(movers: Movers) -> None:
    before = await movers.make()
    await movers.herd.annotate("vm", labels.PAUSE, "true", INSTANCES)
    await movers.herd.shows("Paused")
    await movers.move()
    await movers.phase("Succeeded")
    await movers.on(movers.others(before["status"]["nodeName"])[0])
    await movers.herd.shows("Paused")
    await movers.herd.annotate("vm", labels.PAUSE, "false", INSTANCES)
    await movers.herd.shows("Running", ready=True)


async def evict(movers: Movers, pod: str) -> tuple[int, str]:
    document = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": movers.herd.namespace}}
    reply = await movers.herd.api.request("POST", f"/api/v1/namespaces/{movers.herd.namespace}/pods/{pod}/eviction", document)
    return reply.code, reply.body.get("message", "")


async def test_a_guest_that_is_to_be_moved_is_not_evicted(movers: Movers, engine: Engine) -> None:
    """On a real cluster its budget alone sees to that; with our webhook, and in our engine, it is moved, too."""
    before = await movers.make(evictionStrategy="LiveMigrate")

    async def refused() -> str:
        code, message = await evict(movers, before["status"]["launcherPodName"])
        assert code == 429, (code, message)
        assert "being processed" not in message
        return message

    message = await movers.herd.eventually(refused)
    if engine.name == "embedded":
        assert "is moved to another node instead" in message
        (there,) = movers.others(before["status"]["nodeName"])
        after = await movers.on(there)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_guest_with_the_strategy_none_is_evicted(movers: Movers) -> None:
    before = await movers.make(evictionStrategy="None")
    code, _ = await evict(movers, before["status"]["launcherPodName"])
    assert code == 201
    await movers.herd.running(but=before["metadata"]["uid"])

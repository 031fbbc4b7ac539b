"""Guests of a mixed cluster start where they can be moved from (seed 002)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from herder.api import labels, reasons
from tests.e2e.herder import Herder
from tests.engines.resources import NODES, PODS
from tests.levels.cluster import KUBEVIRT, ODD, PLAIN, Mixed
from tests.machines.herd import Json
from tests.machines.migrations import MIGRATIONS, Movers


async def test_nodes_have_their_level_and_keep_it_right_as_the_cluster_changes(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    await mixed.processor("d-plain", PLAIN)
    await mixed.levels({"a-odd": "0", "b-plain": "75", "c-plain": "75", "d-plain": "75"})
    await mixed.cordon("d-plain")
    await mixed.levels({"a-odd": "0", "b-plain": "66", "c-plain": "66", "d-plain": None})
    await mixed.cordon("d-plain", closed=False)
    await mixed.levels({"a-odd": "0", "b-plain": "75", "c-plain": "75", "d-plain": "75"})
    await mixed.take_away("d-plain")
    await mixed.levels({"a-odd": "0", "b-plain": "66", "c-plain": "66"})
    (await mixed.api.patch(NODES, "b-plain", {"metadata": {"labels": {labels.CPU_FEATURE + "avx512f": "true"}}})).ok  # noqa: B018
    await mixed.levels({"a-odd": "33", "b-plain": "66", "c-plain": "66"})


async def test_a_label_that_somebody_else_writes_is_put_right(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    (await mixed.api.patch(NODES, "a-odd", {"metadata": {"labels": {labels.MIGRATABILITY_LEVEL: "99"}}})).ok  # noqa: B018
    await mixed.levels({"a-odd": "0", "b-plain": "66", "c-plain": "66"})


async def test_without_the_setting_a_machine_lands_on_the_odd_node_and_cannot_move_and_with_it_it_moves(
    mixed: Mixed, tmp_path: Path
) -> None:
    """The user story of the seed."""
    await mixed.two_plain_and_an_odd_one()
    herder = Herder(mixed.api.engine.kubeconfig, tmp_path, mixed.namespace)
    await mixed.make()
    stuck = await mixed.running()
    assert stuck["status"]["nodeName"] == "a-odd"
    assert {one["name"] for one in stuck["status"]["cpu"]["features"]} == {"aes", "avx2", "avx512f"}
    since = (await mixed.api.list(PODS, mixed.namespace)).ok["metadata"]["resourceVersion"]
    async with mixed.api.watch(PODS, mixed.namespace, resourceVersion=since) as pods:
        said = await asyncio.to_thread(herder.refused, "migrate", "vm", "--wait")
        assert "; b-plain lacks avx512f; c-plain lacks avx512f" in said, said
        assert (await mixed.api.list(MIGRATIONS, mixed.namespace)).items == [], "what can never be is not made"
        assert "; b-plain lacks avx512f; c-plain lacks avx512f" in await _refused_by_its_controller(mixed)
        await mixed.set(requireHostModelMigratabilityLevel=50)
        # Each start chooses anew, by the settings of that moment.
        await mixed.annotate("vm", labels.RESTART_REQUEST, stuck["metadata"]["uid"])
        free = await mixed.running(but=stuck["metadata"]["uid"])
        first = (await pods.until("ADDED"))[-1]
    assert first.name == free["status"]["launcherPodName"], "a migration that no node can take makes no pod"
    assert free["status"]["nodeName"] in ("b-plain", "c-plain")
    # To the odd node it may go as well: it needs nothing of it, and leaves it again.
    for node in ({"b-plain", "c-plain"} - {free["status"]["nodeName"]}).pop(), "a-odd", free["status"]["nodeName"]:
        told = await asyncio.to_thread(herder, "migrate", "vm", "--to", node, "--wait")
        assert told.splitlines()[-1] == f"Succeeded to {node}"
        assert (await _on(mixed, node))["status"]["cpu"] == free["status"]["cpu"], "a migration never chooses anew"


async def _refused_by_its_controller(mixed: Mixed) -> str:
    """Made in another way, the migration fails with its reason."""
    await Movers(mixed, "", []).move()
    return await Movers(mixed, "", []).failed(reasons.MISSING_CPU_FEATURES)


async def _on(mixed: Mixed, node: str) -> Json:
    async def look() -> Json:
        found = await mixed.instance()
        assert found is not None
        assert found["status"]["nodeName"] == node, found["status"]
        return found

    return await mixed.eventually(look)


async def test_a_preferred_level_is_a_wish(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    await mixed.set(preferedHostModelMigratabilityLevel={"level": 50, "weight": 100})
    await mixed.make(name="free")
    assert (await mixed.running("free"))["status"]["nodeName"] in ("b-plain", "c-plain")
    await mixed.make(name="bound", nodeSelector={"kubernetes.io/hostname": "a-odd"})
    assert (await mixed.running("bound"))["status"]["nodeName"] == "a-odd"


async def test_a_machine_that_no_node_is_good_enough_for_says_so_and_starts_once_less_is_asked_for(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    await mixed.set(requireHostModelMigratabilityLevel=80)
    await mixed.make()
    waiting = await mixed.shows("ErrorUnschedulable", reason="MigratabilityLevelNotReached")
    assert waiting["status"]["message"].endswith("the highest is 66, on b-plain, c-plain")
    assert "level 80" in await mixed.told("VirtualMachineInstance", "MigratabilityLevelNotReached")
    await mixed.set(requireHostModelMigratabilityLevel=60)
    running = await mixed.running()
    assert running["status"]["nodeName"] in ("b-plain", "c-plain")


async def test_a_machine_that_waits_for_a_level_starts_once_the_cluster_has_it(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    await mixed.set(requireHostModelMigratabilityLevel=70)
    await mixed.make()
    await mixed.shows("ErrorUnschedulable", reason="MigratabilityLevelNotReached")
    await mixed.processor("d-plain", PLAIN)
    assert (await mixed.running())["status"]["nodeName"] in ("b-plain", "c-plain", "d-plain")


async def test_the_settings_are_told_when_no_node_has_the_level(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    made = await mixed.set(requireHostModelMigratabilityLevel=100)
    assert any("no node reaches 100" in warning for warning in made["warnings"])
    settings = Mixed(mixed.api, KUBEVIRT, lambda *_: "")
    told = await settings.told("KubeVirt", "MigratabilityLevelNotReached", KUBEVIRT)
    assert "asks for level 100, and no node has it: the highest is 66" in told


async def test_a_machine_with_a_named_model_starts_anywhere(mixed: Mixed) -> None:
    await mixed.processor("a-odd", ODD)
    await mixed.set(requireHostModelMigratabilityLevel=50)
    await mixed.make(name="named", domain={"memory": {"guest": "64Mi"}, "cpu": {"model": "Haswell"}})
    running = await mixed.running("named")
    assert (running["status"]["nodeName"], running["status"]["cpu"]["model"]) == ("a-odd", "Haswell")
    await mixed.make(name="default")
    await mixed.shows("ErrorUnschedulable", "default", reason="MigratabilityLevelNotReached")


async def test_a_machine_that_was_there_before_its_node_had_a_level_is_told_the_reason_too(mixed: Mixed) -> None:
    await mixed.processor("a-odd", ODD)
    await mixed.cordon("a-odd")
    await mixed.levels({"a-odd": None})
    await mixed.set(requireHostModelMigratabilityLevel=50)
    await mixed.make()
    await mixed.shows("ErrorUnschedulable", reason="Unschedulable")
    await mixed.cordon("a-odd", closed=False)
    await mixed.shows("ErrorUnschedulable", reason="MigratabilityLevelNotReached")

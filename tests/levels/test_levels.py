"""Guests of a mixed cluster start where they can be moved from (seed 002)."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance
from herder.rules.migratability.moving import missing, nobody_has
from tests.engines.resources import NODES
from tests.levels.cluster import KUBEVIRT, ODD, PLAIN, Mixed
from tests.machines.herd import Json


async def _takers(mixed: Mixed, instance: Json) -> list[str]:
    """The nodes that its guest could be moved to, by what is recorded of it."""
    view = msgspec.convert(instance, VirtualMachineInstance)
    assert view.status is not None and view.status.cpu is not None
    nodes = [msgspec.convert(one, Node) for one in (await mixed.api.list(NODES)).items]
    others = [one for one in nodes if one.name != view.status.node_name]
    found = [one.name for one in others if not missing(view.status.cpu, one)]
    assert bool(found) == (not nobody_has(view.status.cpu, others))
    return found


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


async def test_without_the_setting_a_machine_lands_on_the_odd_node_and_cannot_move_and_with_it_does_not(mixed: Mixed) -> None:
    await mixed.two_plain_and_an_odd_one()
    await mixed.make()
    surprised = await mixed.running()
    assert surprised["status"]["nodeName"] == "a-odd"
    assert {one["name"] for one in surprised["status"]["cpu"]["features"]} == {"aes", "avx2", "avx512f"}
    assert await _takers(mixed, surprised) == []
    await mixed.set(requireHostModelMigratabilityLevel=50)
    # Each start chooses anew, by the settings of that moment.
    await mixed.annotate("vm", labels.RESTART_REQUEST, surprised["metadata"]["uid"])
    moves = await mixed.running(but=surprised["metadata"]["uid"])
    assert moves["status"]["nodeName"] in ("b-plain", "c-plain")
    takers = await _takers(mixed, moves)
    assert len(takers) == 2 and "a-odd" in takers


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

"""Engine, controllers or `herder up` itself die at whatever step of a real guest's move: one counter counts on, nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, MIGRATIONS, PATIENCE, POLICIES, Counters, counters
from tests.e2e.qemu.onlooker import STEPS, Step, looking_on
from tests.engines.api import Json
from tests.engines.resources import PODS
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
NAME = "web"
LOAD = "rate=20 dirty=2M/s working-set=4M"
# A second of copying: what dies when it begins is not back before it ends.
SLOW = {"bandwidthPerMigration": "4Mi", "selectors": {"namespaceSelector": {"kubernetes.io/metadata.name": HERE}}}
# What a guest has, and one that came by a move has nothing beside.
FILES = {"console.input", "console.log", "guest.json", "kernel", "process.json", "qemu.log", "qmp.socket"}


@pytest.mark.parametrize("victim", ["engine", "controllers", "supervisor"])
async def test_one_counter_counts_on_whichever_part_dies_at_whichever_step(tmp_path: Path, guest: Path, victim: str) -> None:
    async with counters(tmp_path, guest, nodes=2, tireless=True) as herd:
        (await herd.api.create(POLICIES, {"metadata": {"name": "slow"}, "spec": SLOW})).ok  # noqa: B018
        await herd.make(NAME, LOAD)
        await herd.runs(NAME)
        for number, (name, step) in enumerate(STEPS.items()):
            try:
                await _die_at(herd, victim, f"move-{number}", step)
            except (AssertionError, TimeoutError) as problem:
                problem.add_note(f"the {victim} died when: {name}")
                raise
        assert herd.witness.places(NAME) == 1 + len(STEPS), "each time it should have come somewhere else"
        await _end(herd)


async def _die_at(herd: Counters, victim: str, migration: str, step: Step) -> None:
    process = herd.up.pid if victim == "supervisor" else herd.up.child(victim)
    before = await herd.runs(NAME)
    async with looking_on(herd, migration) as onlooker:
        (await herd.api.create(MIGRATIONS, {"metadata": {"name": migration}, "spec": {"vmiName": NAME}}, HERE)).ok  # noqa: B018
        await onlooker.until(step)
        os.kill(process, signal.SIGKILL)
    if victim == "supervisor":
        herd.start_again()
    status = await eventually(lambda: _over(herd, migration), PATIENCE)
    moved = status["phase"] == "Succeeded"
    assert moved or status["reason"], status
    pod = await eventually(lambda: _settled(herd, migration), PATIENCE)
    assert (pod["spec"]["nodeName"] != before["status"]["nodeName"]) == moved, pod
    await herd.counts(NAME)
    herd.witness.assert_one_counter(NAME)


async def _over(herd: Counters, migration: str) -> Json:
    (found,) = [one for one in await herd.all(MIGRATIONS) if one["metadata"]["name"] == migration]
    status = found.get("status", {})
    assert status.get("phase") in ("Succeeded", "Failed"), status
    return status


async def _settled(herd: Counters, migration: str) -> Json:
    """The pod that the guest is in, once there is one guest and no trace of a second, nor of anything that waits for it."""
    pods, instances, machines = [await herd.all(kind) for kind in (PODS, INSTANCES, MACHINES)]
    assert [one["status"]["printableStatus"] for one in machines] == ["Running"], machines
    assert len(pods) == 1, [one["metadata"]["name"] for one in pods]
    (pod,), (instance,) = pods, instances
    assert "deletionTimestamp" not in pod["metadata"]
    shown = instance["status"]
    assert (shown["phase"], shown["nodeName"]) == ("Running", pod["spec"]["nodeName"])
    assert (shown["launcherPodName"], shown["migrationState"]["completed"]) == (pod["metadata"]["name"], True)
    assert [one for one in await herd.all(MIGRATIONS) if one["metadata"].get("finalizers")] == []
    _assert_only_this_one(herd, pod)
    return pod


def _assert_only_this_one(herd: Counters, pod: Json) -> None:
    uid = pod["metadata"]["uid"]
    assert herd.left() == {"processes": [uid], "folders": [uid], "notes": [f"{uid}.coming"]}
    (folder,) = herd.up.data.glob(f"nodes/*/guests/{uid}")
    assert {file.name for file in folder.iterdir()} == FILES


async def _end(herd: Counters) -> None:
    (await herd.api.delete(MACHINES, NAME, HERE)).ok  # noqa: B018
    await herd.nothing_is_left()
    for one in await herd.all(MIGRATIONS):
        (await herd.api.delete(MIGRATIONS, one["metadata"]["name"], HERE)).ok  # noqa: B018
    assert await herd.all(MIGRATIONS) == []
    herd.witness.assert_one_counter(NAME)

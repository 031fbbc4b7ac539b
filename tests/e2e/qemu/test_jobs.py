"""A PodMigrationJob for the pod of a real guest: it is moved, and its counter misses no number (seed 004)."""

from __future__ import annotations

from pathlib import Path

import pytest

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.e2e.qemu.counters import HERE, PATIENCE, counters
from tests.engines.api import Json
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
JOBS = resource_of(registry.JOB)
LOAD = "rate=20 dirty=1M/s working-set=4M"


async def test_a_job_moves_a_real_guest_and_it_misses_no_number(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=2) as herd:
        await herd.make("vm", LOAD)
        before = await herd.runs("vm")
        pod = {"namespace": HERE, "name": before["status"]["launcherPodName"]}
        (await herd.api.create(JOBS, {"metadata": {"name": "move"}, "spec": {"podRef": pod}})).ok  # noqa: B018

        async def over() -> Json:
            status = (await herd.api.get(JOBS, "move")).ok.get("status", {})
            assert status.get("phase") in ("Succeed", "Failed"), status
            return status

        status = await eventually(over, PATIENCE)
        after = await herd.runs("vm")
        assert (status["phase"], status["nodeName"]) == ("Succeed", after["status"]["nodeName"]), status
        assert after["status"]["nodeName"] != before["status"]["nodeName"]
        herd.witness.assert_one_counter("vm")
        assert herd.witness.places("vm") == 2

"""PodMigrationJobs of pods in which a guest runs: it is moved, and nobody is evicted (seed 004)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from herder.api import labels, reasons, registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Json
from tests.engines.resources import BUDGETS, PODS
from tests.machines.herd import Herd
from tests.machines.migrations import MIGRATIONS, Movers
from tests.machines.test_migrations import slow_one

JOBS, RESERVATIONS = resource_of(registry.JOB), resource_of(registry.RESERVATION)


class Jobs:
    def __init__(self, herd: Herd, unique: Callable[..., str]) -> None:
        self._herd = herd
        self._unique = unique
        self.made: list[str] = []

    async def file(self, instance: Json, **spec: Any) -> str:
        """For the pod that its guest is in."""
        name = self._unique("job")
        self.made.append(name)
        pod = {"namespace": self._herd.namespace, "name": instance["status"]["launcherPodName"]}
        (await self._herd.api.create(JOBS, {"metadata": {"name": name}, "spec": {"podRef": pod, **spec}})).ok  # noqa: B018
        return name

    async def shows(self, name: str, phase: str, **status: Any) -> Json:
        async def look() -> Json:
            found = (await self._herd.api.get(JOBS, name)).ok
            shown = found.get("status", {})
            seen = {field: shown.get(field) for field in status}
            assert (shown.get("phase"), seen) == (phase, status), shown
            return found

        return await self._herd.eventually(look)

    async def follows(self, name: str) -> Json:
        """The migration that the job says it follows, once it copies."""

        async def look() -> Json:
            reference = (await self._herd.api.get(JOBS, name)).ok.get("status", {}).get("migrationRef", {})
            found = await self._herd.find(MIGRATIONS, reference.get("name", "none"))
            assert found is not None and found["metadata"]["uid"] == reference.get("uid"), reference
            assert found["status"]["phase"] == "Running", found["status"]
            return found

        return await self._herd.eventually(look)

    async def is_gone(self, name: str) -> None:
        async def look() -> bool:
            assert (await self._herd.api.get(JOBS, name)).code == 404
            return True

        await self._herd.eventually(look)


@pytest.fixture
async def jobs(herd: Herd, unique: Callable[..., str]) -> AsyncIterator[Jobs]:
    made = Jobs(herd, unique)
    yield made
    for name in made.made:
        await herd.api.delete(JOBS, name)


def conditions(job: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in job["status"].get("conditions", ())}


async def test_a_job_moves_a_guest_whose_own_budget_lets_nobody_go(movers: Movers, jobs: Jobs) -> None:
    before = await movers.make(evictionStrategy="LiveMigrate")
    (there,) = movers.others(before["status"]["nodeName"])

    async def kept() -> bool:
        (budget,) = (await movers.herd.api.list(BUDGETS, movers.herd.namespace)).items
        assert (budget["spec"]["minAvailable"], budget.get("status", {}).get("disruptionsAllowed")) == (1, 0), budget
        return True

    await movers.herd.eventually(kept)
    name = await jobs.file(before)
    done = (await jobs.shows(name, "Succeed", strategy="LiveMigration", nodeName=there))["status"]
    after = await movers.on(there)
    assert (after["metadata"]["uid"], after["status"]["startTime"]) == (before["metadata"]["uid"], before["status"]["startTime"])
    assert done["podRef"]["name"] == (await movers.one_pod())["metadata"]["name"] == after["status"]["launcherPodName"]
    wanted = {reasons.EVICTION: ("True", reasons.EVICT_COMPLETE), reasons.POD_SCHEDULED: ("True", reasons.POD_SCHEDULED)}
    assert conditions({"status": done}) == wanted
    (migration,) = (await movers.herd.api.list(MIGRATIONS, movers.herd.namespace)).items
    assert migration["metadata"]["annotations"][labels.JOB] == name
    (await movers.herd.api.delete(JOBS, name)).ok  # noqa: B018
    await jobs.is_gone(name)
    assert (await movers.phase("Succeeded", migration["metadata"]["name"]))["metadata"].get("deletionTimestamp") is None


async def test_a_job_cancels_its_own_migration_and_never_that_of_somebody_else(
    movers: Movers, jobs: Jobs, unique: Callable[..., str]
) -> None:
    before, _ = await slow_one(movers, unique)
    users = await movers.move()
    followed = await jobs.file(before)
    assert (await jobs.follows(followed))["metadata"]["uid"] == users["metadata"]["uid"]
    patch = {"metadata": {"annotations": {labels.ABORT: "true"}}}
    (await movers.herd.api.patch(JOBS, followed, patch, kind="merge")).ok  # noqa: B018
    await jobs.shows(followed, "Aborted")
    (await movers.herd.api.delete(JOBS, followed)).ok  # noqa: B018
    await jobs.is_gone(followed)
    assert (await movers.phase("Running"))["metadata"].get("deletionTimestamp") is None
    await movers.herd.delete("move", MIGRATIONS)
    await movers.herd.gone(MIGRATIONS, "move")

    own = await jobs.file(before)
    migration = await jobs.follows(own)
    assert migration["metadata"]["annotations"][labels.JOB] == own
    (await movers.herd.api.delete(JOBS, own)).ok  # noqa: B018
    await movers.herd.gone(MIGRATIONS, migration["metadata"]["name"])
    await jobs.is_gone(own)
    assert (await movers.one_pod())["metadata"]["name"] == before["status"]["launcherPodName"]
    await movers.herd.shows("Running", ready=True)


async def test_a_guest_goes_to_the_room_that_its_job_reserved(movers: Movers, jobs: Jobs) -> None:
    """Although it would rather go to another one: the third node has nobody else."""
    movers.nodes.append(await movers.herd.node(movers.label))
    before = await movers.make()
    wanted = sorted(movers.others(before["status"]["nodeName"]))[0]
    pinned = {"nodeSelector": {"kubernetes.io/hostname": wanted}}
    name = await jobs.file(before, reservationOptions={"template": {"spec": {"template": {"spec": pinned}}}})
    done = await jobs.shows(name, "Succeed", nodeName=wanted)
    assert {kind: status for kind, (status, _) in conditions(done).items()} == dict.fromkeys(
        (
            *(reasons.RESERVATION_CREATED, reasons.RESERVATION_SCHEDULED, reasons.EVICTION),
            *(reasons.POD_SCHEDULED, reasons.POD_BOUND_RESERVATION, reasons.RESERVATION_BOUND),
        ),
        "True",
    )
    room = (await movers.herd.api.get(RESERVATIONS, done["spec"]["reservationOptions"]["reservationRef"]["name"])).ok
    pod = (await movers.herd.api.get(PODS, done["status"]["podRef"]["name"], movers.herd.namespace)).ok
    assert [one["uid"] for one in room["status"]["currentOwners"]] == [pod["metadata"]["uid"]]
    assert room["metadata"]["uid"] in pod["metadata"]["annotations"][labels.RESERVATION_ALLOCATED]

"""The controller of jobs on real caches of an embedded engine, in virtual time: pace, what is counted, and what is kept in mind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from herder.api.registry import INSTANCE, JOB, MACHINE, MIGRATION, POOL, RESERVATION
from herder.controllers.job.jobs import PodMigrationJobs
from herder.kube.errors import Forbidden, TooManyRequests
from herder.kube.kit import Kit, Runs, Together
from herder.kube.resources import JOBS, PODS, Key
from herder.server.housekeeping.budgets import Budgets as CountedBudgets
from tests.unit.controllers.arbitration import Stage
from tests.unit.controllers.finders import MOMENT
from tests.unit.kube.engine import engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

UNLIMITED = "maxMigratingPerNode: 99\nmaxMigratingPerWorkload: 100%\nmaxUnavailablePerWorkload: 100%\n"
MISSING = ("Failed", "MissingPod")


class Executing(Stage):
    """Jobs are carried out, not only let begin."""

    controller: PodMigrationJobs

    def _start(self, kit: Kit) -> Runs:
        queue = kit.queue(PodMigrationJobs.name)
        self.controller = PodMigrationJobs(kit, queue)
        self._pods = kit.caches.of(PODS)
        self._jobs = kit.caches.of(JOBS)
        self.controller.follow(kit)
        return Together(kit.work(self.controller, queue, 4, of=self._jobs), self.controller.helpers)

    async def going(self) -> list[str]:
        """Pods that were told to end; there is no node that would let them."""
        return sorted(pod.name for pod in (await self.person.list(PODS)).items if pod.being_deleted)

    async def outcome(self, name: str) -> tuple[str | None, str | None]:
        status = await self.job(name)
        return status.phase, status.reason

    async def pause(self, paused: bool, *names: str) -> None:
        for name in names:
            await self.person.patch(JOBS, Key("", name), {"spec": {"paused": paused}})
        await asyncio.sleep(MOMENT)

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def on_stage(story: Callable[[Executing], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL, JOB, RESERVATION, MIGRATION)) as place:
            stage = Executing(place, world)
            async with stage.leads():
                await story(stage)

    in_virtual_time(main())


def test_a_pod_that_is_made_anew_under_its_name_while_its_job_waits_is_not_the_pod_that_was_meant() -> None:
    """Trap: StatefulSet pod recreated under its name before eviction. The job did not say a uid: the first look does."""

    async def story(stage: Executing) -> None:
        owner = await stage.web(1, "db")
        await stage.settings("maxMigratingGlobally: 0")
        await stage.file("db-0")
        assert (await stage.job("db-0")).pod_uid == stage.pod("db-0").uid
        await stage.person.delete(PODS, Key("default", "db-0"), grace_period_seconds=0)
        await stage.make_pod("db-0", owner, labels={"app": "db"})
        await stage.settings("maxMigratingGlobally: 5")
        await asyncio.sleep(60)
        assert await stage.outcome("db-0") == MISSING and await stage.going() == []

    on_stage(story)


def test_turns_are_not_saved_up_by_jobs_that_are_paused() -> None:
    async def story(stage: Executing) -> None:
        names = [f"web-{number}" for number in range(4)]
        await stage.web(4)
        await stage.settings(UNLIMITED + 'evictQPS: "0.1"')
        await stage.file(*names, mode="EvictDirectly")
        assert stage.counted("herder_migration_jobs_waiting", reason="WaitingForFlowControl") == 4
        await stage.pause(True, *names)
        await asyncio.sleep(300)
        assert await stage.going() == []
        await stage.pause(False, *names)
        await asyncio.sleep(2)
        assert len(await stage.going()) <= 1
        await asyncio.sleep(60)
        assert await stage.going() == names

    on_stage(story)


def test_who_deletes_pods_keeps_to_a_budget_that_has_not_counted_the_last_one_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap: policy Delete passes no budget. What a deletion took away, no status says before somebody counts anew."""

    async def story(stage: Executing) -> None:
        await stage.web(3)
        await stage.budget(1)
        monkeypatch.setattr(CountedBudgets, "_on_pod", lambda *_: None)  # whoever keeps its status is behind
        await stage.settings(UNLIMITED + "evictionPolicy: Delete\nevictQPS: '100'\nevictBurst: 100\nmaxConcurrentReconciles: 4")
        await stage.file("web-0", "web-1", "web-2", mode="EvictDirectly")
        await asyncio.sleep(60)
        assert len(await stage.going()) == 1, "two are to stay"
        waits = [await stage.job(name) for name in ("web-0", "web-1", "web-2")]
        assert [one.reason for one in waits].count("WaitingForDisruptionBudget") == 2
        assert stage.counted("herder_pod_migration_disruptions_total", how="Delete") == 1

    on_stage(story)


def test_a_job_whose_reservation_is_refused_is_counted_as_ended() -> None:
    async def story(stage: Executing) -> None:
        await stage.web(1)
        stage.line.refusals["/reservations"] = Forbidden(403, "Forbidden", "nobody may reserve")
        await stage.file("web-0")
        await asyncio.sleep(5)
        reason = "FailedCreateReservation"
        assert await stage.outcome("web-0") == ("Failed", reason)
        assert stage.counted("herder_pod_migration_jobs_finished_total", phase="Failed", reason=reason) == 1

    on_stage(story)


def test_nothing_is_kept_in_mind_of_jobs_that_are_over_or_gone() -> None:
    async def story(stage: Executing) -> None:
        await stage.web(3)
        await stage.settings(UNLIMITED)
        await stage.file("web-0", "web-1", mode="EvictDirectly")
        await stage.file("web-2")
        await asyncio.sleep(5)
        assert stage.controller.kept > 0
        await stage.person.delete(PODS, Key("default", "web-0"), grace_period_seconds=0)
        await asyncio.sleep(5)
        assert await stage.outcome("web-0") == ("Succeed", None)
        for name in ("web-1", "web-2"):
            await stage.person.delete(JOBS, Key("", name))
        await asyncio.sleep(120)
        assert stage.controller.kept == 0

    on_stage(story)


def test_an_eviction_that_was_refused_is_not_tried_before_the_server_wants_to_hear_of_it_again() -> None:
    """Trap: 429 with backoff and Retry-After. That it was refused is written into the job, which wakes the job."""

    async def story(stage: Executing) -> None:
        await stage.web(1)
        stage.line.refusals["/eviction"] = TooManyRequests(429, "TooManyRequests", "not now", {"retryAfterSeconds": 45})
        await stage.file("web-0", mode="EvictDirectly")
        for _ in range(4):
            await asyncio.sleep(10)
            await stage.person.patch(JOBS, Key("", "web-0"), {"metadata": {"labels": {"seen": str(stage.world.now())}}})
        assert len(stage.reads("/eviction")) == 1
        await asyncio.sleep(10)
        assert len(stage.reads("/eviction")) == 2
        stage.line.refusals.clear()
        await asyncio.sleep(45)
        assert await stage.going() == ["web-0"]

    on_stage(story)


def test_an_eviction_that_a_budget_refused_is_tried_again_as_soon_as_the_budget_changes() -> None:
    async def story(stage: Executing) -> None:
        await stage.web(3)
        await stage.settings(UNLIMITED)
        stage.line.refusals["/eviction"] = TooManyRequests(429, "TooManyRequests", "Cannot evict pod as it would violate a budget")
        await stage.file("web-0", mode="EvictDirectly")
        await asyncio.sleep(70)  # by now it waits for half a minute each time
        tried = len(stage.reads("/eviction"))
        assert 5 <= tried <= 8
        stage.line.refusals.clear()
        await stage.budget(1)
        await asyncio.sleep(1)
        assert await stage.going() == ["web-0"] and len(stage.reads("/eviction")) == tried + 1

    on_stage(story)

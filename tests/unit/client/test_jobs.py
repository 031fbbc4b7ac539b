"""`herder.client`: files jobs and follows them, from another program."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from importlib.resources import files
from pathlib import Path

import pytest

from herder.client import Forbidden, Herder, Invalid, Job, JobGone, Misconfigured, NotFound, connect
from herder.kube.errors import Unreachable
from herder.kube.resources import JOBS, Key
from tests.unit.cli.jobs import Stage, on_stage


async def _seen(herder: Herder, name: str, stage: Stage) -> list[Job]:
    """All states of a job that its controller takes to its end while it is followed."""
    seen: list[Job] = []
    async with aclosing(herder.follow(name)) as states:
        async for job in states:
            seen.append(job)
            if job.phase == "Pending":
                condition = {
                    "type": "Eviction",
                    "status": "True",
                    "reason": "EvictComplete",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                await stage.says(name, phase="Running", strategy="Reservation", sourceNode="a", conditions=[condition])
            elif job.phase == "Running":
                # What changes nothing that is shown is no news.
                await stage.says(name, observedGeneration=1)
                await stage.says(name, phase="Succeed", nodeName="b", podRef={"name": "web-9"}, message="moved")
    return seen


async def test_a_job_is_filed_for_a_pod_and_followed_to_its_end(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        herder = Herder(stage.client)
        pod = await stage.pod("web-7", "a")
        filed = await herder.file_job("default", "web-7", uid=pod.uid, ttl="10m", priority=5, surge=True)
        assert filed.name.startswith("migrate-web-7-") and (filed.phase, filed.pod_uid) == ("Pending", pod.uid)
        written = await stage.client.get(JOBS, Key("", filed.name))
        assert written.spec.ttl == "10m" and written.spec.mode is None
        assert written.annotations == {"herder.dev/migration-priority": "5", "herder.dev/surge": "true"}
        seen = await _seen(herder, filed.name, stage)
        assert [job.phase for job in seen] == ["Pending", "Running", "Succeed"]
        assert [step.type for step in seen[1].steps] == ["Eviction"]
        assert (seen[-1].source_node, seen[-1].node, seen[-1].replacement) == ("a", "b", "web-9")
        assert seen[-1].finished and seen[-1].succeeded
        assert await herder.wait(filed.name, timeout=5) == seen[-1]


async def test_what_cannot_be_moved_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        herder = Herder(stage.client)
        await stage.pod("bare", "a", owned=False)
        for pod, said in (("bare", "no controller owns the pod"), ("nobody", "there is no pod of this name")):
            with pytest.raises(Invalid, match=said):
                await herder.file_job("default", pod)
        first = await herder.file_job("default", "web-0", name="mine", paused=True, mode="EvictDirectly")
        assert (first.name, first.paused) == ("mine", True)
        with pytest.raises((Forbidden, Invalid), match="PodMigrationJob mine of pod default/web-0 is not finished"):
            await herder.file_job("default", "web-0")


async def test_a_job_is_held_let_go_ended_and_found_again(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        herder = Herder(stage.client)
        for number in range(2):
            await herder.file_job("default", f"web-{number}", name=f"job-{number}")
        assert (await herder.pause("job-0")).paused and not (await herder.resume("job-0")).paused
        await herder.abort("job-0")
        assert (await stage.client.get(JOBS, Key("", "job-0"))).annotations == {"herder.dev/abort": "true"}
        await stage.says("job-1", phase="Failed", reason="Timeout")
        assert (await herder.abort("job-1")).phase == "Failed"
        assert (await stage.client.get(JOBS, Key("", "job-1"))).annotations == {}, "what is over is left as it is"
        assert [job.name for job in await herder.jobs()] == ["job-0", "job-1"]
        assert [job.name for job in await herder.jobs(phase="Failed")] == ["job-1"]
        assert [job.name for job in await herder.jobs(namespace="default", pod="web-0")] == ["job-0"]
        assert await herder.jobs(namespace="elsewhere") == []


async def test_who_follows_a_job_that_is_deleted_is_told_so(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        herder = Herder(stage.client)
        with pytest.raises(NotFound):
            await herder.wait("nobody")
        await herder.file_job("default", "web-0", name="mine")
        waiting = asyncio.create_task(herder.wait("mine"))
        with pytest.raises(TimeoutError):
            await herder.wait("mine", timeout=0.01)
        await stage.client.delete(JOBS, Key("", "mine"))
        with pytest.raises(JobGone, match="PodMigrationJob mine was deleted while it was Pending") as gone:
            await waiting
        assert gone.value.last.pod == "web-0"


async def test_a_server_that_is_away_for_a_moment_does_not_end_what_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("herder.client.connection.LOOK_AGAIN", 0.001)
    async with on_stage(tmp_path) as stage:
        herder = Herder(stage.client)
        await herder.file_job("default", "web-0", name="mine")
        away = 3
        real = stage.client.get_raw

        async def get_raw(*asked: object, **more: object) -> bytes:
            nonlocal away
            away -= 1
            if away >= 0:
                raise Unreachable("nobody answered")
            return await real(*asked, **more)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(stage.client, "get_raw", get_raw)
        async with aclosing(herder.follow("mine")) as states:
            assert (await anext(states)).phase == "Pending"
        away = 1000
        with pytest.raises(Unreachable):
            async with aclosing(herder.follow("mine", patience=0)) as states:
                await anext(states)


async def test_without_a_cluster_it_is_said_where_one_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="nowhere"):
        async with connect(tmp_path / "nowhere"):
            pass


def test_type_checkers_of_other_programs_see_its_types() -> None:
    assert files("herder").joinpath("py.typed").is_file()

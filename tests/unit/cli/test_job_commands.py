"""`herder job …`, `herder evacuate` and `herder explain job`, asked of an engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from herder.api.duration import parse_seconds
from herder.api.labels import ABORT
from herder.cli.asking import Refusal
from herder.cli.job.control import ask
from herder.cli.job.evacuate import file_all, planned_evacuation, written_time
from herder.cli.job.explain import explain_job_now
from herder.cli.job.follower import follow
from herder.cli.job.listing import listed
from herder.cli.job.selection import select
from herder.kube.resources import CONFIG_MAPS, JOBS, Key
from herder.rules.jobs import wishes
from herder.rules.jobs.evacuation import EvacuationPlan, Filing, Wanted
from tests.unit.cli.jobs import Stage, on_stage


async def planned(stage: Stage, *names: str, selector: str = "", node: str = "") -> tuple[EvacuationPlan, list[Filing]]:
    selected = await select(stage.client, names, selector, node, "default" if not node else "")
    return await planned_evacuation(stage.client, selected, Wanted())


async def test_jobs_are_filed_in_the_order_of_the_plan_for_the_very_pods(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        bare = await stage.pod("bare", "a", owned=False)
        plan, filings = await planned(stage, node="a")
        assert [(row.pod, row.target_node, row.waits) for row in plan.jobs] == [
            ("web-0", "b", ""),
            ("web-1", "b", "WaitingForWorkloadLimit"),
            ("web-2", "b", "WaitingForWorkloadLimit"),
        ]
        assert [row.pod for row in plan.stay] == [bare.name] and plan.unknown == ()
        made, refused = await file_all(stage.client, plan, filings)
        assert ([one.name for one in made], refused) == ([row.job for row in plan.jobs], [])
        assert made[0].spec.pod_ref.uid == filings[0].pod.uid
        # What the controller would decide of them is what was planned.
        found = await explain_job_now(stage.client, made[1].name)
        assert (found.reason, found.message) == (plan.jobs[1].waits, plan.jobs[1].why)
        assert [row.job for row in found.ahead] == [made[0].name]
        # Asked once more, nobody gets a second one; also not one who decided before the first was there.
        again, _ = await planned(stage, selector="app=web")
        assert again.jobs == () and "moves it already" in again.stay[-1].why
        _, refused = await file_all(stage.client, plan, filings)
        assert len(refused) == 3 and "meanwhile" in refused[0]


async def test_the_configuration_of_the_cluster_decides_the_plan(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        settings = {
            "metadata": {"name": "herder-config"},
            "data": {"jobs.yaml": "maxMigratingPerWorkload: 3\nmaxUnavailablePerWorkload: 3\n"},
        }
        await stage.client.create(CONFIG_MAPS, settings, "herder-system")
        plan, _ = await planned(stage, selector="app=web")
        assert [row.waits for row in plan.jobs] == ["", "", "WaitingForNodeLimit"]


@pytest.mark.parametrize(("seconds", "written"), [(0.0, "0s"), (90.0, "90s"), (0.5, "0.5s"), (1_231_200.0, "1231200s")])
def test_a_time_is_written_as_the_api_takes_it(seconds: float, written: str) -> None:
    assert written_time(seconds) == written and parse_seconds(written) == seconds


async def test_pods_are_named_or_picked_and_who_picks_none_is_told(tmp_path: Path) -> None:
    async with on_stage(tmp_path, pods=2) as stage:
        both = await select(stage.client, ("web-0", "pod/web-0", "web-1"), "", "", "default")
        assert [one.pod.name for one in both] == ["web-0", "web-1"]
        for asked, said in (
            (((), "app=db", "", "default"), "there is no pod with labels app=db in namespace 'default'"),
            (((), "", "c", ""), "there is no node 'c'"),
            (((), "", "b", ""), "there is no pod on node b"),
            ((("nobody",), "", "", "default"), "there is neither a pod nor a virtual machine with a pod 'nobody'"),
            ((("web-0",), "app=web", "", "default"), "POD excludes -l and --node"),
            (((), "", "", "default"), "say which pods: POD, -l SELECTOR"),
            (((), "a in", "", "default"), "-l: "),
        ):
            with pytest.raises(Refusal) as refusal:
                await select(stage.client, *asked)
            assert str(refusal.value).startswith(said)


async def test_a_job_is_listed_held_and_ended_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with on_stage(tmp_path) as stage:
        made, _ = await file_all(stage.client, *await planned(stage, "web-0"))
        name = made[0].name
        [row] = (await listed(stage.client, "", "")).jobs
        assert (row.name, row.phase, row.pod, row.source_node) == (name, "Pending", "web-0", "a")
        assert (await listed(stage.client, "elsewhere", "")).jobs == (await listed(stage.client, "", "Running")).jobs == ()
        capsys.readouterr()
        for wish, said in (
            (wishes.pause, f"is paused: it waits, and uses up no limit; `herder job resume {name}` lets it go on"),
            (wishes.pause, "unchanged"),
            (wishes.resume, "goes on, as soon as no limit holds it"),
            (wishes.abort, "is being aborted: pod default/web-0 stays where it is, and what was reserved for it is given back"),
        ):
            await ask(stage.client, name, wish)
            assert capsys.readouterr().out == f"podmigrationjob.scheduling.koordinator.sh/{name} {said}\n"
        job = await stage.client.get(JOBS, Key("", name))
        assert (job.spec.paused, job.annotations[ABORT]) == (False, "true")
        for asked, said in ((f"{name}x", f"did you mean {name}?"), ("web-0", f"the pod of that name has {name}")):
            with pytest.raises(Refusal, match=said.replace("?", r"\?")):
                await ask(stage.client, asked, wishes.abort)


async def test_jobs_are_followed_until_all_are_over_and_those_that_failed_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("herder.cli.job.follower.LOOK_EVERY", 0.01)
    async with on_stage(tmp_path) as stage:
        made, _ = await file_all(stage.client, *await planned(stage, selector="app=web"))
        followed = asyncio.create_task(follow(stage.client, made, None))
        await stage.says(made[0].name, phase="Succeed", message="pod default/web-0 is replaced")
        await stage.says(made[1].name, phase="Failed", reason="Timeout", message="no room within 5m")
        await stage.client.delete(JOBS, Key("", made[2].name))
        with pytest.raises(Refusal) as refusal:
            await followed
        assert str(refusal.value) == f"2 of 3 jobs did not move their pods: {made[1].name} (Timeout), {made[2].name} (deleted)"
        lines = capsys.readouterr().out.splitlines()
        assert "default/web-0: Succeed: pod default/web-0 is replaced" in lines
        assert not any("no controller" in line for line in lines), "that is said of one that nobody has looked at for a while"
        assert f"default/web-2: job {made[2].name} was deleted, which aborts it" in lines

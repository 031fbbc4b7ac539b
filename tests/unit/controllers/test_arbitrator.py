"""Who is let begin, who waits and who never will, on real caches: counted before it is written, whatever answers are lost."""

from __future__ import annotations

import asyncio

import pytest

from herder.controllers.job.arbitrator import rest_after
from herder.kube.client import Selection
from herder.kube.errors import Unreachable
from herder.kube.resources import BUDGETS, DEPLOYMENTS, EVENTS, JOBS, PODS, REPLICA_SETS, UNAVAILABLE_BUDGETS, Key
from herder.rules.workloads.templates import TEMPLATE_HASH
from tests.unit.controllers.arbitration import BUDGETS_KNOWN, Json, Stage, on_stage
from tests.unit.controllers.finders import MOMENT
from tests.unit.kube.virtual import samples


def test_a_job_is_let_begin_and_the_next_one_of_its_workload_waits_until_it_is_over() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(3)
        await stage.file("web-0", "web-1", ttl="7m")
        first, second = await stage.job("web-0"), await stage.job("web-1")
        assert (first.phase, first.strategy, first.mode, first.ttl) == ("Running", "Reservation", "ReservationFirst", "7m")
        assert first.pod_uid == stage.pod("web-0").uid and first.source_node == "n" and first.start_time is not None
        assert first.workload_ref is not None and first.controller_ref is not None
        assert (first.workload_ref.kind, first.controller_ref.name) == ("ReplicaSet", "web")
        assert (second.phase, second.reason) == ("Pending", "WaitingForWorkloadLimit")
        assert second.waiting_since is not None and second.start_time is None
        assert "1 of 3 pods of ReplicaSet default/web migrating, and 1 may at once" in (second.message or "")
        await stage.over("web-0")
        assert await stage.begun() == ["web-1"]
        listed = await stage.person.list(EVENTS, Selection())
        told = {(one.regarding.name, one.reason) for one in listed.items}
        assert {("web-0", "Admitted"), ("web-1", "Admitted")} <= told

    on_stage(story)


def test_a_batch_is_counted_before_it_is_written_and_while_no_answer_comes() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 2\nmaxMigratingPerNode: 9")
        for number in range(5):
            await stage.web(1, f"w{number}")
        pods = [f"w{number}-0" for number in range(5)]
        stage.statuses.failing.update(pods)
        # Each in a pass of its own: what the ones before have admitted is written nowhere.
        for pod in pods:
            await stage.file(pod)
        await asyncio.sleep(5)
        assert await stage.begun() == []
        tried = set(stage.statuses.written)
        stage.statuses.failing.clear()
        await asyncio.sleep(60)
        # Those of which nobody knew whether they had begun, and no others in their place.
        assert await stage.begun() == ["w0-0", "w1-0"]
        assert {await stage.reason(pod) for pod in pods[2:]} == {"WaitingForGlobalLimit"}
        assert tried == set(pods)

    on_stage(story)


def test_a_write_that_was_done_and_not_answered_counts_and_is_not_done_twice() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 1\nmaxMigratingPerNode: 9")
        await stage.web(1, "a")
        await stage.web(1, "b")
        stage.statuses.lost.add("a-0")
        # The cache does not hear of it either: only the server knows.
        stage.statuses.before["a-0"] = stage.statuses.keep_from_the_cache
        await stage.file("a-0")
        await asyncio.sleep(30)
        assert stage.statuses.written == ["a-0"]
        stage.statuses.open.set()
        await stage.file("b-0")
        await asyncio.sleep(30)
        assert await stage.begun() == ["a-0"] and await stage.reason("b-0") == "WaitingForGlobalLimit"
        assert stage.statuses.written == ["a-0", "b-0"]
        await stage.over("a-0")
        assert await stage.begun() == ["b-0"]

    on_stage(story)


def test_a_job_that_is_paused_between_the_decision_and_its_write_does_not_begin() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 1\nmaxMigratingPerNode: 9")
        await stage.web(1, "a")
        await stage.web(1, "b")
        pause = {"spec": {"paused": True}}
        stage.statuses.before["a-0"] = lambda: stage.person.patch(JOBS, Key("", "a-0"), pause)
        await stage.file("a-0", "b-0")
        await asyncio.sleep(5)
        assert await stage.reason("a-0") == "Paused"
        assert await stage.begun() == ["b-0"], "it gave its place to the next one"
        await stage.person.patch(JOBS, Key("", "a-0"), {"spec": {"paused": False}})
        await stage.over("b-0")
        assert await stage.begun() == ["a-0"]

    on_stage(story)


@pytest.mark.parametrize("ends", ["deleted", "aborted"])
def test_a_job_that_is_ended_between_the_decision_and_its_write_gives_its_place_away(ends: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 1\nmaxMigratingPerNode: 9")
        await stage.web(1, "a")
        await stage.web(1, "b")
        key, abort = Key("", "a-0"), {"metadata": {"annotations": {"herder.dev/abort": "true"}}}
        end = stage.person.delete if ends == "deleted" else lambda kind, key: stage.person.patch(kind, key, abort)
        stage.statuses.before["a-0"] = lambda: end(JOBS, key)
        await stage.file("a-0", "b-0")
        await asyncio.sleep(5)
        assert await stage.begun() == ["b-0"]

    on_stage(story)


def test_a_waiting_job_is_written_once_and_its_numbers_seldom() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingPerWorkload: 2\nmaxMigratingPerNode: 9\nmaxUnavailablePerWorkload: 9")
        await stage.web(6)
        await stage.file("web-0", "web-1", "web-2")
        assert stage.statuses.written.count("web-2") == 1
        # More is away: the sentence says another number, and the reason is the same.
        await stage.settings("maxMigratingPerWorkload: 1\nmaxMigratingPerNode: 9\nmaxUnavailablePerWorkload: 9")
        await stage.settings("maxMigratingPerWorkload: 0\nmaxMigratingPerNode: 9\nmaxUnavailablePerWorkload: 9")
        assert stage.statuses.written.count("web-2") == 1
        since = (await stage.job("web-2")).waiting_since
        await asyncio.sleep(60)
        assert stage.statuses.written.count("web-2") == 2
        status = await stage.job("web-2")
        assert "and 0 may at once" in (status.message or "") and status.waiting_since == since
        await asyncio.sleep(3600)
        assert stage.statuses.written.count("web-2") == 2

    on_stage(story)


def test_a_job_begins_when_the_rollout_of_its_workload_is_over() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(1, "a")
        await stage.status(REPLICA_SETS, "a", {"observedGeneration": 0})
        await stage.file("a-0")
        assert await stage.reason("a-0") == "RolloutInProgress"
        await stage.status(REPLICA_SETS, "a", {"observedGeneration": 1})
        await asyncio.sleep(MOMENT)
        assert await stage.begun() == ["a-0"]

    on_stage(story)


@pytest.mark.parametrize(("spent", "rest"), [(0.0, 0.02), (0.001, 0.02), (0.1, 0.4), (5.0, 1.0)])
def test_a_pass_that_took_long_is_not_followed_at_once_by_the_next(spent: float, rest: float) -> None:
    assert rest_after(spent) == pytest.approx(rest)


def test_a_limit_below_what_runs_admits_nobody_and_stops_nobody() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingPerNode: 2")
        for name in "abc":
            await stage.web(1, name)
        await stage.file("a-0", "b-0", "c-0")
        assert await stage.begun() == ["a-0", "b-0"] and await stage.reason("c-0") == "WaitingForNodeLimit"
        await stage.settings("maxMigratingPerNode: 1")
        await stage.over("a-0")
        assert await stage.begun() == ["b-0"] and await stage.reason("c-0") == "WaitingForNodeLimit"
        await stage.over("b-0")
        assert await stage.begun() == ["c-0"], "1 still admits one"

    on_stage(story)


def test_where_jobs_are_disabled_none_begins_and_those_that_run_may_end() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(1, "a")
        await stage.web(1, "b")
        await stage.file("a-0")
        await stage.settings("enabled: false")
        await stage.file("b-0")
        assert await stage.begun() == ["a-0"] and await stage.reason("b-0") == "Disabled"
        assert await stage.look_again("a-0") is None
        await stage.settings("enabled: true")
        assert await stage.begun() == ["a-0", "b-0"]

    on_stage(story)


def test_a_new_leader_counts_what_runs_and_writes_nothing_that_is_so_already() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(3)
        await stage.file("web-0", "web-1")
        before = len(stage.statuses.written)
        async with stage.leads():
            await asyncio.sleep(120)
            assert await stage.begun() == ["web-0"]
        assert len(stage.statuses.written) == before

    on_stage(story)


def test_what_admission_would_refuse_by_now_is_refused_in_its_words() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("enabled: false")
        await stage.web(1, "bare")
        await stage.web(1, "ended")
        await stage.file("bare-0", "ended-0")
        await stage.person.patch(PODS, Key("default", "bare-0"), {"metadata": {"ownerReferences": None}})
        await stage.status(PODS, "ended-0", {"phase": "Succeeded"})
        await stage.settings("enabled: true")
        bare, ended = await stage.job("bare-0"), await stage.job("ended-0")
        assert (bare.phase, bare.reason) == ("Failed", "ForbiddenMigratePod") and bare.completion_time is not None
        assert "no controller owns the pod" in (bare.message or "") and "the pod has ended" in (ended.message or "")

    on_stage(story)


def test_a_bare_pod_that_failed_goes_where_the_settings_say_so() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("evictFailedBarePods: true")
        await stage.make_pod("bare")
        await stage.status(PODS, "bare", {"phase": "Failed"})
        await stage.file("bare")
        assert (await stage.job("bare")).strategy == "Eviction"

    on_stage(story)


def test_of_two_jobs_for_one_pod_the_first_goes_on_and_the_other_names_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("enabled: false")
        await stage.web(1, "a")
        await stage.file("a-0")
        # As if they had been created together, past the admission of each other.
        await stage.set_status("a-0", phase="Succeed", reason=None)
        other = {"metadata": {"name": "other"}, "spec": {"podRef": {"namespace": "default", "name": "a-0"}}}
        await stage.person.create(JOBS, other)
        await stage.set_status("a-0", phase="Pending")
        await stage.settings("enabled: true")
        assert await stage.begun() == ["a-0"]
        status = await stage.job("other")
        assert (status.phase, status.reason) == ("Failed", "ForbiddenMigratePod")
        assert "PodMigrationJob a-0 (phase " in (status.message or "")

    on_stage(story)


def test_only_the_pod_that_was_meant_is_moved() -> None:
    """A pod that came back under its name is another one; whether it is gone says the controller of the job."""

    async def story(stage: Stage) -> None:
        owner = await stage.web(1, "db")
        await stage.settings("enabled: false")
        await stage.file("db-0")
        await stage.person.delete(PODS, Key("default", "db-0"), grace_period_seconds=0)
        await stage.make_pod("db-0", owner, labels={"app": "db"})
        await stage.settings("enabled: true")
        await asyncio.sleep(60)
        assert await stage.begun() == [] and (await stage.job("db-0")).phase == "Pending"

    on_stage(story)


def test_of_two_equals_the_pod_that_could_not_be_moved_before_comes_second() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingGlobally: 0")
        await stage.web(4)
        await stage.file("web-0")
        await stage.set_status("web-0", phase="Failed", podUID=stage.pod("web-0").uid)
        reference = {"namespace": "default", "name": "web-0"}
        await stage.person.create(JOBS, {"metadata": {"name": "again"}, "spec": {"podRef": reference}})
        await asyncio.sleep(2)
        await stage.file("web-1")
        await stage.settings("maxMigratingGlobally: 1")
        assert await stage.begun() == ["web-1"], "the younger one"

    on_stage(story)


def test_what_holds_a_job_is_said_again_where_somebody_has_written_over_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("enabled: false")
        await stage.web(1, "a")
        await stage.file("a-0")
        await stage.set_status("a-0", reason="Whatever", message="not so")
        await asyncio.sleep(1)
        assert await stage.reason("a-0") == "Disabled"

    on_stage(story)


def test_it_is_counted_who_waits_for_what_until_the_term_is_over() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(3)
        await stage.settings("ignorePvcPods: true")
        await stage.file("web-0", "web-1", "web-2")
        waiting = samples(stage.registry, "herder_migration_jobs_waiting")
        assert (waiting[("WaitingForWorkloadLimit",)], waiting[("Paused",)]) == (2.0, 0.0)
        outcomes = samples(stage.registry, "herder_job_arbitration_outcomes_total")
        assert outcomes == {("admitted", ""): 1.0}
        assert samples(stage.registry, "herder_job_arbitration_seconds_count")[()] > 0

    async def both_terms(stage: Stage) -> None:
        async with stage.leads():
            await story(stage)
        assert not samples(stage.registry, "herder_migration_jobs_waiting")

    on_stage(both_terms, leading=False)


# --- budgets ---------------------------------------------------------------------------------------------------------------------


def test_a_budget_holds_a_job_until_it_allows_one_more() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingPerWorkload: 9\nmaxMigratingPerNode: 9")
        await stage.web(3)
        await stage.budget(1)
        await stage.file("web-0", "web-1")
        assert await stage.begun() == ["web-0"] and await stage.reason("web-1") == "WaitingForDisruptionBudget"
        # Counted until the budget has done so itself.
        await stage.allow(2)
        assert await stage.begun() == ["web-0", "web-1"]

    on_stage(story)


def test_where_nobody_knows_which_budgets_there_are_jobs_wait_until_somebody_does() -> None:
    async def story(stage: Stage) -> None:
        await stage.define(UNAVAILABLE_BUDGETS.group, UNAVAILABLE_BUDGETS.kind, scale=False)
        stage.line.refusals[f"/apis/{UNAVAILABLE_BUDGETS.group}/v1alpha1"] = Unreachable("away")
        async with stage.leads():
            await stage.web(1, "a")
            await stage.file("a-0")
            await asyncio.sleep(15)
            assert await stage.reason("a-0") == "WaitingForDisruptionBudget"
            stage.line.refusals.clear()
            await asyncio.sleep(120)
            assert await stage.begun() == ["a-0"]

    on_stage(story, leading=False)


def test_a_pod_of_two_budgets_can_never_be_evicted() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(3)
        await stage.budget(1)
        await stage.budget(1, "second")
        await stage.file("web-0")
        assert ((await stage.job("web-0")).phase, await stage.reason("web-0")) == ("Failed", "FailedEvict")

    on_stage(story)


# --- replacement first -----------------------------------------------------------------------------------------------------------


async def _lone_replica(stage: Stage) -> Json:
    """Of a Deployment that may have one too many, with a budget that lets nobody go."""
    labels = {"app": "web", TEMPLATE_HASH: "1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = await stage.make(DEPLOYMENTS, "web", {**spec, "strategy": {"rollingUpdate": {"maxSurge": 1}}})
    counts = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    await stage.status(DEPLOYMENTS, "web", counts)
    owner = await stage.web(1, labels=labels, owner=deployment)
    await stage.make(BUDGETS, "web", {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1})
    await asyncio.sleep(BUDGETS_KNOWN)
    return {"deployment": {**deployment, "controller": False}, "replica set": owner}


def test_a_budget_that_lets_nobody_go_does_not_hold_a_pod_whose_replacement_comes_first() -> None:
    async def story(stage: Stage) -> None:
        owners = await _lone_replica(stage)
        await stage.file("web-0")
        assert await stage.reason("web-0") == "WaitingForDisruptionBudget"
        key, pod = Key("", "web-0"), Key("default", "web-0")
        await stage.person.patch(JOBS, key, {"metadata": {"annotations": {"herder.dev/surge": "true"}}})
        await asyncio.sleep(MOMENT)
        assert (await stage.job("web-0")).strategy == "Surge"
        assert await stage.look_again("web-0") is None, "nobody goes yet"
        # Taken from its ReplicaSet by the job: it is no bare pod, and now the budget is asked.
        taken = {"metadata": {"labels": {TEMPLATE_HASH: None}, "ownerReferences": [owners["deployment"]]}}
        await stage.person.patch(PODS, pod, taken)
        await asyncio.sleep(BUDGETS_KNOWN)
        found = await stage.look_again("web-0")
        assert found is not None and found.reason == "WaitingForDisruptionBudget"
        await stage.make_pod("web-1", owners["replica set"], labels={"app": "web", TEMPLATE_HASH: "1"})
        await asyncio.sleep(BUDGETS_KNOWN)
        assert await stage.look_again("web-0") is None

    on_stage(story)


def test_a_pod_on_its_way_back_to_its_replica_set_is_left_to_the_controller_of_the_job() -> None:
    async def story(stage: Stage) -> None:
        owners = await _lone_replica(stage)
        await stage.file("web-0")
        await stage.person.patch(JOBS, Key("", "web-0"), {"metadata": {"annotations": {"herder.dev/surge": "true"}}})
        await asyncio.sleep(MOMENT)
        pod, back = Key("default", "web-0"), {"labels": {TEMPLATE_HASH: "1"}, "ownerReferences": [owners["replica set"]]}
        taken = {"labels": {TEMPLATE_HASH: None}, "ownerReferences": [owners["deployment"]]}
        await stage.person.patch(PODS, pod, {"metadata": taken})
        await stage.set_status("web-0", phase="Pending", reason="WaitingForNodeLimit")
        await asyncio.sleep(60)
        assert ((await stage.job("web-0")).phase, await stage.begun()) == ("Pending", [])
        await stage.person.patch(PODS, pod, {"metadata": back})
        await asyncio.sleep(MOMENT)
        assert await stage.begun() == ["web-0"]

    on_stage(story)


# --- right before an eviction ----------------------------------------------------------------------------------------------------


def test_right_before_an_eviction_the_first_of_too_many_goes_on() -> None:
    async def story(stage: Stage) -> None:
        await stage.settings("maxMigratingPerNode: 3")
        for name in "abc":
            await stage.web(1, name)
        await stage.file("a-0", "b-0", "c-0")
        assert [await stage.look_again(name) for name in ("a-0", "b-0", "c-0")] == [None] * 3
        await stage.settings("maxMigratingPerNode: 1")
        assert await stage.look_again("a-0") is None
        for late in ("b-0", "c-0"):
            found = await stage.look_again(late)
            assert found is not None and found.reason == "WaitingForNodeLimit"
        # One that evicts already counts for those before it, too.
        evicting = {"type": "Eviction", "status": "False", "reason": "Evicting", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await stage.set_status("c-0", conditions=[evicting])
        found = await stage.look_again("a-0")
        assert found is not None and found.reason == "WaitingForNodeLimit"

    on_stage(story)


def test_right_before_an_eviction_budgets_pods_and_settings_are_looked_at_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.web(3)
        await stage.budget(1)
        await stage.file("web-0")
        assert await stage.look_again("web-0") is None
        await stage.allow(0)
        found = await stage.look_again("web-0")
        assert found is not None and found.reason == "WaitingForDisruptionBudget"
        await stage.allow(1)
        await stage.settings("namespaces: {exclude: [default]}")
        found = await stage.look_again("web-0")
        assert found is not None and found.reason == "ForbiddenMigratePod"
        await stage.budget(1, "second")
        await stage.settings("")
        found = await stage.look_again("web-0")
        assert found is not None and found.reason == "FailedEvict"

    on_stage(story)


def test_right_before_an_eviction_a_workload_of_somebody_elses_is_asked_and_a_missing_one_is_looked_for() -> None:
    async def story(stage: Stage) -> None:
        kind = await stage.define("stranger.io", "Clone", scale=True)
        owner = await stage.make(kind, "clone", {"replicas": 4})
        for number in range(4):
            await stage.make_pod(f"clone-{number}", owner)
        await asyncio.sleep(MOMENT)
        await stage.file("clone-0", "clone-1")
        await asyncio.sleep(40)
        assert await stage.begun() == ["clone-0", "clone-1"]
        assert await stage.look_again("clone-1") is None
        # It wants more than there are: two are missed already.
        await stage.person.patch(kind, Key("default", "clone"), {"spec": {"replicas": 6}})
        found = await stage.look_again("clone-1")
        assert found is not None and found.reason == "WaitingForWorkloadLimit"
        await stage.person.delete(kind, Key("default", "clone"))
        found = await stage.look_again("clone-1")
        assert found is not None and found.reason == "NoReplacement"

    on_stage(story)

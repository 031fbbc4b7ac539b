"""What `herder explain job` says: the limit, who uses it up, who is ahead and why, and what would change it."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api import reasons
from herder.cli.job.explain import explanation_text
from herder.cli.tables import plain
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.sorters import SORTERS
from herder.rules.jobs.explain import BEGINS, CHANGES, SAYS, JobExplanation, explain_job
from herder.rules.jobs.gather import arbitration_snapshot
from tests.unit.rules.jobs.clusters import Json, cluster, job, running, view, web_pod
from tests.unit.rules.jobs.test_shown_jobs import EVICTED, EVICTING, GOING, OVER

LATER = "2026-01-01T00:00:30Z"
PODS = [web_pod(f"web-{number}") for number in range(4)]
LSE = {"app": "db", "koordinator.sh/qosClass": "LSE"}
CHEAP = {"scheduling.koordinator.sh/eviction-cost": "-1"}


def explained(name: str, *jobs: Any, pods: list[Json] | None = None, **config: Any) -> JobExplanation:
    there = cluster(*(pods or PODS), jobs=jobs)
    about = next(one for one in jobs if one.name == name)
    return explain_job(about, None, arbitration_snapshot(there, JobsConfig(**config)))


def test_the_limit_that_holds_a_job_is_named_with_who_uses_it_up_and_what_would_change_it() -> None:
    held = job("c", "web-2", "Pending", reason="WaitingForNodeLimit", waitingSince=LATER)
    found = explained("c", running("a", "web-0"), running("b", "web-1"), held)
    assert (found.reason, found.since) == ("WaitingForNodeLimit", LATER)
    assert found.message == "2 pods are leaving node a, and maxMigratingPerNode is 2"
    assert [(row.job, row.evicted) for row in found.holders] == [("a", False), ("b", False)]
    assert any("maxMigratingPerNode" in one for one in found.changes)
    assert (found.place, found.of) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second", "because"),
    [
        (web_pod("x", app="db", labels=LSE), web_pod("y", app="db"), "QoS class LSE before BE"),
        (web_pod("x", app="db", spec={"priority": 9}), web_pod("y", app="db"), "the pod's priority 9 is above 0"),
        (web_pod("x", app="db", annotations=CHEAP), web_pod("y", app="db"), "eviction cost -1 is below 0"),
    ],
)
def test_who_is_ahead_is_told_by_the_first_thing_that_differs(first: Json, second: Json, because: str) -> None:
    jobs = job("later", "x", created=LATER), job("earlier", "y")
    found = explained("earlier", *jobs, pods=[first, second, *PODS], max_migrating_per_node=1)
    assert [(row.job, row.why, row.waits) for row in found.ahead] == [("later", because, "")]
    assert (found.place, found.of, found.others_ahead) == (2, 2, 0)


def test_jobs_that_differ_in_nothing_else_go_by_age_and_then_by_name() -> None:
    jobs = job("b", "web-0"), job("a", "web-1", created=LATER), job("c", "web-2", created=LATER)
    found = explained("c", *jobs, max_migrating_per_node=1)
    assert [(row.job, row.why) for row in found.ahead] == [
        ("b", "it was filed earlier"),
        ("a", "its name comes first, and nothing else tells them apart"),
    ]


def test_the_annotation_of_a_job_and_what_failed_before_put_it_ahead_or_behind() -> None:
    first = job("first", "web-0", annotations={"herder.dev/migration-priority": "5"}, created=LATER)
    found = explained("second", first, job("second", "web-1"), max_migrating_per_node=1)
    assert [row.why for row in found.ahead] == ["migration priority 5 is above 0"]
    failed = job("old", "web-1", "Failed", podUID="uid-web-1", completionTime=LATER)
    found = explained("second", job("first", "web-0", created=LATER), job("second", "web-1"), failed, max_migrating_per_node=1)
    assert [row.why for row in found.ahead] == ["0 failed jobs of its pod before, against 1"]


def test_jobs_that_wait_for_something_else_are_counted_and_not_listed() -> None:
    other = web_pod("db-0", app="db", node="z", spec={"priority": 9})
    jobs = running("r", "web-3"), job("there", "db-0"), job("here", "web-0")
    found = explained("here", *jobs, pods=[*PODS, other], max_migrating_per_node=1)
    assert (found.reason, found.ahead, found.others_ahead) == ("WaitingForNodeLimit", (), 1)


def test_a_job_that_nothing_holds_is_said_to_begin() -> None:
    found = explained("a", job("a", "web-0", "Pending", reason="WaitingForNodeLimit", waitingSince=LATER))
    assert (found.reason, found.message, found.since) == ("", BEGINS, "")


def test_a_paused_job_has_no_turn_and_is_told_how_to_go_on() -> None:
    found = explained("a", job("a", "web-0", spec={"paused": True}), job("b", "web-1"))
    assert (found.reason, found.place, found.ahead, found.changes) == ("Paused", 0, (), ("`herder job resume a`",))


def test_a_job_that_will_be_refused_is_told_so_before_it_is() -> None:
    found = explained("a", job("a", "bare"), pods=[web_pod("bare", ownerReferences=[]), *PODS])
    assert found.message.startswith("it is about to fail: no controller owns the pod")


def test_a_running_job_says_its_step_and_whether_it_can_still_be_undone() -> None:
    found = explain_job(EVICTED, None, None)
    assert found.message == "has not taken the room yet"
    assert found.changes[-1].endswith("the replacement keeps its room")
    assert explain_job(EVICTING, GOING, None).changes[-1].endswith("the replacement keeps its room")
    stays = explain_job(EVICTING, view(web_pod("web-0")), None)
    assert stays.changes[0].startswith("the pod ends") and stays.changes[-1].endswith("the pod stays where it is")


def test_a_finished_job_says_how_it_ended_and_how_far_it_came() -> None:
    found = explain_job(OVER, None, None)
    assert (found.phase, found.reason, found.message, found.since) == ("Failed", "Timeout", "no room within 5m", LATER)
    assert found.changes == ()


def test_who_may_not_read_limits_is_told_what_the_job_itself_says() -> None:
    held = job("a", "web-0", "Pending", reason="WaitingForNodeLimit", message="2 pods leave node a", waitingSince=LATER)
    found = explain_job(held, None, None, ("you may not read deployments.apps",))
    assert (found.message, found.since, found.place) == ("2 pods leave node a", LATER, 0)
    assert found.unknown == ("you may not read deployments.apps",)


def test_the_explanation_reads_from_the_limit_to_what_would_change_it() -> None:
    jobs = running("r", "web-3"), job("first", "web-0"), job("second", "web-1", "Pending")
    lines = plain(explanation_text(explained("second", *jobs, max_migrating_per_node=1)))
    assert lines[:3] == [
        "job second of pod shop/web-1: Pending",
        "WaitingForNodeLimit: 1 pod is leaving node a, and maxMigratingPerNode is 1",
        "It is number 2 of 2 that wait for their turn.",
    ]
    assert lines[4:7][0] == "Ahead of it:" and lines[6].split()[:2] == ["first", "shop/web-0"]
    assert "These run, and use it up:" in lines and "What would change it:" in lines


def test_every_sorter_and_every_reason_to_wait_has_its_words() -> None:
    assert set(SAYS) == set(SORTERS)
    words = ("GLOBAL_LIMIT", "NODE_LIMIT", "NAMESPACE_LIMIT", "WORKLOAD_LIMIT", "DISRUPTION_BUDGET", "FLOW_CONTROL", "POD")
    waiting = {getattr(reasons, f"WAITING_FOR_{word}") for word in words}
    assert waiting | {reasons.ROLLOUT_IN_PROGRESS, reasons.PAUSED, reasons.DISABLED} <= set(CHANGES)

"""What `herder evacuate --plan` says: the order, the node, the limit that binds; and that it files what it said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import Node, PodDisruptionBudget
from herder.cli.job.evacuate import plan_text
from herder.cli.tables import plain
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration import arbitrate
from herder.rules.jobs.evacuation import EvacuationPlan, Filing, Wanted, file_jobs, job_name, plan_evacuation
from herder.rules.jobs.evacuation_places import Places
from herder.rules.jobs.gather import Cluster, Everything, arbitration_snapshot
from herder.rules.placement import RULES
from herder.rules.placement.gather import Everything as Placed
from herder.rules.placement.gather import snapshot_of
from tests.unit.rules.jobs.clusters import Json, cluster, job, running, view, web_pod
from tests.unit.rules.jobs.objects import reference
from tests.unit.rules.placement.cluster import node

NOW = 1_800_000_000.0
MIRROR = {"kubernetes.io/config.mirror": "x"}
NEVER = {"scheduling.koordinator.sh/eviction-cost": "2147483647"}


def planned(
    there: Cluster,
    pods: list[Json],
    nodes: tuple[Json, ...] = (node("a"), node("b")),
    wanted: Wanted | None = None,
    **config: Any,
) -> tuple[EvacuationPlan, list[Filing]]:
    settings = JobsConfig(**config)
    taken = {one.name for one in there.everything.jobs}
    filings = file_jobs([view(pod) for pod in pods], taken, wanted or Wanted(), NOW)
    snapshot = snapshot_of(Placed([msgspec.convert(one, Node) for one in nodes], there.everything.pods))
    written = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in pods}
    return plan_evacuation(filings, there, settings, Places(snapshot, RULES, settings, written, {}))


def told(plan: EvacuationPlan) -> list[tuple[str, str, str]]:
    return [(row.pod, row.target_node, row.waits) for row in plan.jobs]


def test_the_first_two_of_a_node_begin_at_once_and_the_limit_holds_the_third() -> None:
    pods = [web_pod(f"web-{number}") for number in range(4)]
    plan, _ = planned(cluster(*pods, web_pod("web-9", node="b")), pods[:3])
    assert told(plan) == [("web-0", "b", ""), ("web-1", "b", ""), ("web-2", "b", "WaitingForNodeLimit")]
    assert plan.jobs[2].why == "2 pods are leaving node a, and maxMigratingPerNode is 2"
    assert [row.order for row in plan.jobs] == [1, 2, 3]


def test_each_takes_room_from_those_that_come_after_it() -> None:
    pods = [web_pod(f"web-{number}") for number in range(5)]
    plan, _ = planned(cluster(*pods), pods[:2], (node("a"), node("b", cpu="1")))
    assert told(plan)[0] == ("web-0", "b", "")
    assert plan.jobs[1].target_node == "" and "Insufficient cpu" in plan.jobs[1].no_room


def test_those_that_begin_later_find_the_room_that_those_before_them_left() -> None:
    """Only node b has room; who leaves it leaves room for the two that wait."""
    pods = [web_pod("web-0", node="b"), web_pod("web-1"), web_pod("web-2"), web_pod("web-3")]
    small = (node("a", cpu="4"), node("b", cpu="1"))
    plan, _ = planned(cluster(*pods), pods[:2], small, max_migrating_per_workload=1)
    assert [(row.pod, row.target_node, row.waits) for row in plan.jobs] == [
        ("web-0", "a", ""),
        ("web-1", "b", "WaitingForWorkloadLimit"),
    ]
    # Together they hold room on both sides: the second finds none before the first has left.
    plan, _ = planned(cluster(*pods), pods[:2], small, max_migrating_per_workload=2)
    assert [(row.pod, row.target_node, row.waits) for row in plan.jobs] == [("web-0", "a", ""), ("web-1", "", "")]


def test_a_pod_is_not_planned_back_onto_its_own_node_unless_nothing_is_reserved() -> None:
    pods = [web_pod("web-0"), web_pod("web-1"), web_pod("web-2", node="b", spec={"containers": [{"name": "m"}]})]
    full = (node("a"), node("b", cpu="0"))
    plan, _ = planned(cluster(*pods), pods[:1], full)
    assert plan.jobs[0].target_node == ""
    plan, _ = planned(cluster(*pods), pods[:1], full, Wanted(mode="EvictDirectly"))
    assert plan.jobs[0].target_node == "a"


def test_jobs_that_there_are_count_and_go_first_where_they_are_older() -> None:
    pods = [web_pod(f"web-{number}") for number in range(4)]
    runs, waits = running("first", "web-8"), job("second", "web-1")
    plan, _ = planned(cluster(*pods, web_pod("web-8"), jobs=(runs, waits)), [pods[0]])
    assert told(plan) == [("web-0", "b", "WaitingForNodeLimit")]


def test_what_is_filed_in_the_order_of_the_plan_is_decided_in_that_order() -> None:
    """By whatever sorts jobs first; and by name, where they are filed within one second or each in its own."""
    dear = web_pod("web-0", annotations={"scheduling.koordinator.sh/eviction-cost": "5"})
    pods = [dear, *(web_pod(f"web-{number}") for number in range(1, 5)), *(web_pod(f"db-{n}", app="db") for n in range(3))]
    there = cluster(*pods)
    plan, filings = planned(there, pods, max_migrating_per_node=100)
    assert [filing.job.name for filing in filings] == [row.job for row in plan.jobs]
    for seconds in (0, 1):
        filed = tuple(
            job(
                one.job.name,
                one.pod.name,
                created=f"2026-01-01T00:00:{place * seconds:02}Z",
                spec={"podRef": one.document["spec"]["podRef"]},
            )
            for place, one in enumerate(filings)
        )
        everything = msgspec.structs.replace(there.everything, jobs=filed)
        decided = arbitrate(arbitration_snapshot(Cluster(everything), JobsConfig(max_migrating_per_node=100)))
        assert [*decided.admitted, *decided.waiting] == [row.job for row in plan.jobs]
        assert {name: wait.message for name, wait in decided.waiting.items()} == {
            row.job: row.why for row in plan.jobs if row.waits
        }
    assert plan.jobs[-1].pod == "web-0", "the dearest goes last"


@pytest.mark.parametrize(
    ("pod", "why", "expected"),
    [
        (web_pod("p", ownerReferences=[]), "no controller owns the pod", False),
        (web_pod("p", ownerReferences=[reference("Job", "j", api_version="batch/v1")]), "belongs to Job j", False),
        (web_pod("p", annotations=NEVER), "2147483647: never", False),
        (web_pod("p", spec={"volumes": [{"name": "data", "emptyDir": {}}]}), "volume data is on node a alone", False),
        (web_pod("p", deletionTimestamp="2026-01-01T00:00:00Z"), "is being deleted already", True),
        (web_pod("p", annotations=MIRROR, ownerReferences=[reference("Node", "a", api_version="v1")]), "runs by itself", True),
    ],
)
def test_a_pod_that_cannot_be_moved_stays_and_the_row_says_why(pod: Json, why: str, expected: bool) -> None:
    plan, filings = planned(cluster(pod, web_pod("other")), [pod])
    assert (plan.jobs, filings) == ((), [])
    assert why in plan.stay[0].why and plan.stay[0].expected == expected


def test_a_pod_that_a_job_moves_already_gets_no_second_one() -> None:
    pods = [web_pod("web-0"), web_pod("web-1")]
    plan, _ = planned(cluster(*pods, jobs=(job("mine", "web-0", "Pending"),)), pods)
    assert [row.why for row in plan.stay] == ["PodMigrationJob mine moves it already (phase Pending)"]
    assert [row.pod for row in plan.jobs] == ["web-1"]


def test_a_budget_binds_as_it_will_when_the_jobs_are_there() -> None:
    status = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "observedGeneration": 1}
    about = {"metadata": {"name": "web", "namespace": "shop", "uid": "b", "generation": 1}}
    budget = {**about, "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": status}
    pods = [web_pod("web-0"), web_pod("web-1", node="c"), web_pod("web-2", node="d"), web_pod("web-3", node="d")]
    there = cluster(*pods, budgets=[msgspec.convert(budget, PodDisruptionBudget)])
    plan, _ = planned(there, pods[:2], (node("a"), node("b"), node("c"), node("d")))
    assert [row.waits for row in plan.jobs] == ["", "WaitingForDisruptionBudget"]


def test_who_may_not_read_limits_or_nodes_files_by_name_and_is_told_so() -> None:
    pods = [web_pod("web-1"), web_pod("web-0"), web_pod("bare", ownerReferences=[])]
    bare = Cluster(Everything(pods=[view(pod) for pod in pods]))
    filings = file_jobs([view(pod) for pod in pods], (), Wanted(), NOW)
    plan, ordered = plan_evacuation(filings, bare, JobsConfig(), None, limits_known=False, unknown=("you may not",))
    assert [one.pod.name for one in ordered] == ["web-0", "web-1"]
    assert plan.unknown == ("you may not",) and [row.pod for row in plan.stay] == ["bare"]
    assert plain(plan_text(plan))[1].split() == ["1", "shop/web-0", "a"], "neither where to nor that it begins is said"


def test_the_name_of_a_job_follows_from_its_pod_and_is_another_one_where_that_is_taken() -> None:
    pod = view(web_pod("web-0"))
    first = job_name(pod, ())
    assert first == job_name(pod, ("another",)) and first.startswith("evacuate-web-0-")
    second = job_name(pod, {first})
    assert second != first and second.startswith("evacuate-web-0-")
    other = view(web_pod("web-0", uid="another"))
    assert job_name(other, ()) != first
    long = view(web_pod("a" * 252 + "b"))
    assert len(job_name(long, ())) <= 63


def test_a_job_says_which_pod_and_only_what_was_asked_for() -> None:
    [asked] = file_jobs([view(web_pod("web-0"))], (), Wanted("EvictDirectly", "90s"), NOW)
    assert asked.document["spec"] == {
        "podRef": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "uid-web-0"},
        "mode": "EvictDirectly",
        "ttl": "90s",
    }
    [plain_one] = file_jobs([view(web_pod("web-0"))], (), Wanted(), NOW)
    assert set(plain_one.document["spec"]) == {"podRef"}


def test_the_plan_is_a_table_and_below_it_those_that_stay() -> None:
    pods = [web_pod("web-0"), web_pod("web-1"), web_pod("bare", ownerReferences=[])]
    plan, _ = planned(cluster(*pods, web_pod("web-2")), pods, max_migrating_per_node=1)
    lines = plain(plan_text(plan))
    assert lines[0].split() == ["POD", "FROM", "TO", "BEGINS", "WHY"]
    assert lines[1].split() == ["1", "shop/web-0", "a", "b", "at", "once"]
    assert lines[2].endswith("waits     WaitingForNodeLimit: 1 pod is leaving node a, and maxMigratingPerNode is 1")
    assert lines[4:6] == ["These stay:", "POD         NODE   WHY"] and lines[6].startswith("shop/bare   a")

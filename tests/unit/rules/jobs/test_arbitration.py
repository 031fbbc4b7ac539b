"""Which jobs may begin, which wait and which never will (seed 004, "Group", "Filter", "Sort")."""

from __future__ import annotations

import random
from typing import Any

import pytest

from herder.api.selectors import selector_from_labels
from herder.rules.herder_config import JobsConfig, JobsConfiguration, read_file
from herder.rules.herder_config.job_parts import Namespaces
from herder.rules.jobs.arbitration import Arbitration, ArbitrationSnapshot, Candidate, Migrating, arbitrate
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.replicas import PodState
from tests.unit.rules.jobs.jobs import WEB, budget, decided, job, pod_of, ready, running, workload


def reasons(found: Arbitration) -> dict[str, str]:
    return {name: wait.reason for name, wait in found.waiting.items()}


# --- never -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "config", "allowing", "why"),
    [
        ({"mirror": True}, {}, None, "the pod is a copy of one that node node-of-a runs by itself"),
        (
            {"eviction_cost": 2**31 - 1},
            {},
            None,
            "the pod's annotation scheduling.koordinator.sh/eviction-cost is 2147483647: never",
        ),
        (
            {"priority": 2_000_000_000},
            {},
            {"evict_system_critical_pods": True},
            "the pod's priority 2000000000 is that of system-critical pods",
        ),
        ({"priority": 100}, {"priority_threshold": 100}, {"priority_threshold": 101}, "is not below priorityThreshold 100"),
        (
            {},
            {"namespaces": Namespaces(exclude=frozenset({"default"}))},
            {"namespaces": Namespaces(include=frozenset({"default"}))},
            "namespaces of jobs.yaml leave out namespace default",
        ),
        (
            {"labels": {"app": "web"}},
            {"label_selector": selector_from_labels({"app": "db"})},
            {"label_selector": selector_from_labels({"app": "web"})},
            "labelSelector of jobs.yaml does not pick the pod",
        ),
        ({"local_volumes": ("cache",)}, {}, {"evict_local_storage_pods": True}, "volume cache is on node node-of-a alone"),
        ({"claims": ("disk",)}, {"ignore_pvc_pods": True}, {"ignore_pvc_pods": False}, "the pod uses claim disk"),
    ],
)
def test_what_no_job_may_move(about: dict[str, Any], config: dict[str, Any], allowing: dict[str, Any] | None, why: str) -> None:
    found = decided(job("a", **about), **config)
    assert found.refused["a"].reason == "ForbiddenMigratePod"
    assert why in found.refused["a"].message
    if allowing is not None:
        assert decided(job("a", **about), **allowing).admitted == ("a",)


def test_a_pod_that_is_being_deleted_is_missing_as_one_that_is_gone() -> None:
    """Whoever waited for it sees the same end, whether it was seen to go or seen to be gone."""
    refused = decided(job("a", terminating=True)).refused["a"]
    assert (refused.reason, refused.message) == ("MissingPod", "the pod is being deleted already")


def test_pods_of_daemon_sets_stay_and_scratch_space_of_guests_does_not_count() -> None:
    found = decided(job("a"), state=workload(kind="DaemonSet"))
    assert "DaemonSet web, which would put it back" in found.refused["a"].message
    assert decided(job("a", local_volumes=("scratch",), machine=True)).admitted == ("a",)


# --- not now ---------------------------------------------------------------------------------------------------------------------


def test_paused_ones_and_those_whose_pod_could_not_be_read_wait_and_use_nothing_up() -> None:
    unread = Candidate(name="b", created=0.0, pod=None)
    found = decided(job("a", paused=True), unread, job("c"), max_migrating_globally=1)
    assert found.admitted == ("c",)
    assert reasons(found) == {"a": "Paused", "b": "WaitingForPod"}


def test_where_jobs_are_disabled_none_begins() -> None:
    assert reasons(decided(job("a"), enabled=False)) == {"a": "Disabled"}


def test_a_workload_in_the_middle_of_a_rollout_waits() -> None:
    found = decided(job("a"), state=workload(rolling_out=True))
    assert reasons(found) == {"a": "RolloutInProgress"}
    assert found.waiting["a"].message == "Deployment default/web is in the middle of a rollout"


@pytest.mark.parametrize(
    ("config", "same", "reason"),
    [
        ({"max_migrating_globally": 2}, {}, "WaitingForGlobalLimit"),
        ({"max_migrating_per_node": 2}, {"node": "n"}, "WaitingForNodeLimit"),
        ({"max_migrating_per_namespace": 2}, {}, "WaitingForNamespaceLimit"),
        ({"max_migrating_per_workload": 2}, {}, "WaitingForWorkloadLimit"),
        ({"max_unavailable_per_workload": 2}, {}, "WaitingForWorkloadLimit"),
    ],
)
def test_each_limit_counts_those_that_run_and_those_just_admitted(
    config: dict[str, Any], same: dict[str, Any], reason: str
) -> None:
    jobs = [job(name, created=number, **same) for number, name in enumerate("abc")]
    state = workload(100, *ready("a", "b", "c", "r"))
    assert decided(*jobs, state=state, **config).admitted == ("a", "b")
    found = decided(*jobs, migrating=(running("r", **same),), state=state, **config)
    assert found.admitted == ("a",)
    assert reasons(found) == {"b": reason, "c": reason}
    none: dict[str, Any] = dict.fromkeys(config, 0)
    assert decided(*jobs, state=state, **none).admitted == (), "0 allows none"


def test_a_limit_of_one_still_admits_one_and_one_that_was_lowered_admits_none() -> None:
    assert decided(job("a", node="n"), max_migrating_per_node=1).admitted == ("a",)
    runs = tuple(running(name, node="n") for name in "xyz")
    found = decided(job("a", node="n"), migrating=runs, max_migrating_per_node=1)
    assert found.waiting["a"].message == "3 pods are leaving node n, and maxMigratingPerNode is 1"


def test_unset_limits_of_a_workload_follow_the_seeds_formula() -> None:
    for replicas, admitted in ((3, 1), (4, 2), (10, 2), (11, 2), (100, 10)):
        names = [f"p{number:03}" for number in range(20)]
        state = workload(replicas, *ready(*names[:replicas]))
        assert len(decided(*(job(name) for name in names[:replicas]), state=state).admitted) == admitted


def test_who_is_unavailable_already_counts_and_the_pod_itself_only_once() -> None:
    sick = PodState("sick", "sick", ready=False)
    state = workload(5, sick, *ready("a", "b"))
    assert decided(job("a"), job("b", created=1), state=state).admitted == ("a",), "two of five may be away, and one is"
    assert decided(job("sick", ready=False), job("a", created=1), state=state).admitted == ("sick", "a")
    missing = workload(5, *ready("a", "b", "c", "d", "e"))
    gone = type(missing)(missing.workload, type(missing.replicas)(available=frozenset("abc"), missing=2))
    found = decided(job("a"), state=gone)
    assert found.waiting["a"].message == "3 of 5 pods of Deployment default/web would be unavailable, and 2 may be"


def test_one_that_runs_and_was_evicted_is_not_counted_twice() -> None:
    going = PodState("r", "r", ready=True, terminating=True)
    state = workload(5, going, *ready("a"))
    assert decided(job("a"), migrating=(running("r", evicted=True),), state=state).admitted == ("a",)


def test_how_many_replicas_there_are_must_be_known() -> None:
    found = decided(job("a"), state=workload(None, problem="the scale of Flock web could not be read"))
    assert found.waiting["a"].message.endswith("is not known: the scale of Flock web could not be read")


def test_budgets_decide_in_place_of_the_unavailable_limit_and_count_what_is_about_to_go() -> None:
    state = workload(100, *ready("a", "b", "c", "r"))
    jobs = [job(name, created=number) for number, name in enumerate("abc")]
    found = decided(*jobs, budgets=(budget(2),), state=state, max_unavailable_per_workload=0)
    assert found.admitted == ("a", "b")
    assert reasons(found) == {"c": "WaitingForDisruptionBudget"}
    # One that runs and has not evicted yet has its share; of one that has, the budget knows.
    assert decided(*jobs, migrating=(running("r"),), budgets=(budget(2),), state=state).admitted == ("a",)
    assert decided(*jobs, migrating=(running("r", evicted=True),), budgets=(budget(2),), state=state).admitted == ("a", "b")


def test_budgets_that_are_not_known_let_nobody_go() -> None:
    snapshot = ArbitrationSnapshot(
        config=JobsConfig(), pending=(job("a"),), workloads={WEB: workload()}, budgets={"a": PodBudgets(problem="no answer yet")}
    )
    assert reasons(arbitrate(snapshot)) == {"a": "WaitingForDisruptionBudget"}


def test_two_budgets_on_one_pod_can_never_both_be_asked() -> None:
    """Time does not change that: the job ends."""
    found = decided(job("a"), budgets=(budget(1, "x"), budget(1, "y")))
    assert found.refused["a"].reason == "FailedEvict" and "more than one PodDisruptionBudget" in found.refused["a"].message


# --- who goes first --------------------------------------------------------------------------------------------------------------

ORDER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"qos": "LSE"}, {"qos": "LSR"}),
    ({"qos": "LSR"}, {"qos": "LS"}),
    ({"qos": "LS"}, {"qos": "BE"}),
    ({"priority": 10}, {"priority": 9}),
    ({"eviction_cost": -1}, {"eviction_cost": 0}),
    ({"migration_priority": 1}, {"migration_priority": 0}),
    ({"failures": 0}, {"failures": 1}),
    ({"deschedulings": 0}, {"deschedulings": 1}),
    ({"created": 1.0}, {"created": 2.0}),
]


@pytest.mark.parametrize(("first", "second"), ORDER)
def test_the_first_of_two(first: dict[str, Any], second: dict[str, Any]) -> None:
    for names in ("ab", "ba"):
        found = decided(job(names[0], **first), job(names[1], **second), max_migrating_globally=1)
        assert found.admitted == (names[0],)


def test_what_comes_first_in_the_list_counts_more() -> None:
    """Better in one, and worse in all that come after it."""
    merged = [(place, pair) for place, pair in enumerate(ORDER) if place not in (0, 1)]
    for at, (_, (better, worse)) in enumerate(merged):
        first, second = dict(better), dict(worse)
        for _, (good, bad) in merged[at + 1 :]:
            first, second = {**bad, **first}, {**good, **second}
        assert decided(job("z", **first), job("a", **second), max_migrating_globally=1).admitted == ("z",)


def test_of_two_workloads_the_one_with_fewer_on_their_way() -> None:
    busy, calm = ("default", "web"), ("default", "db")
    snapshot = ArbitrationSnapshot(
        config=JobsConfig(max_migrating_globally=2),
        pending=(job("a", workload=busy), job("z", workload=calm)),
        migrating=(running("r", workload=busy),),
        workloads={busy: workload(), calm: workload()},
    )
    assert arbitrate(snapshot).admitted == ("z",)


# --- whatever comes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_a_batch_is_never_more_than_one_at_a_time_would_be(seed: int) -> None:
    chance = random.Random(seed)
    config = JobsConfig(
        max_migrating_globally=chance.choice((None, 5, 9)),
        max_migrating_per_node=chance.choice((1, 2, 5)),
        max_migrating_per_namespace=chance.choice((None, 3)),
        max_migrating_per_workload=chance.choice((None, 1, "30%")),
    )
    names = [f"p{number:02}" for number in range(30)]
    pods = {name: pod_of(name, node=f"n{chance.randrange(8)}", ready=chance.random() < 0.8) for name in names}
    states = [PodState(name, name, ready=pod.ready) for name, pod in pods.items()]
    state = workload(32, *states)
    budgets = {name: PodBudgets((budget(chance.randrange(6)),)) for name in names} if chance.random() < 0.5 else {}
    pending = tuple(Candidate(name=name, created=chance.random(), pod=pods[name]) for name in names)

    def one_pass(left: tuple[Candidate, ...], migrating: tuple[Migrating, ...]) -> Arbitration:
        return arbitrate(
            ArbitrationSnapshot(config=config, pending=left, migrating=migrating, workloads={WEB: state}, budgets=budgets)
        )

    together = one_pass(pending, ()).admitted
    migrating: tuple[Migrating, ...] = ()
    for name in together:
        # Alone, after those before it: still admitted.
        alone = one_pass((next(one for one in pending if one.name == name),), migrating)
        assert alone.admitted == (name,)
        migrating += (running(name, node=pods[name].node, ready=pods[name].ready),)
    left = tuple(one for one in pending if one.name not in together)
    assert one_pass(left, migrating).admitted == (), "nobody is left behind who could have gone"


# --- settings, as they are written -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "without", "about", "held_by"),
    [
        ("enabled: false", "", {}, "Disabled"),
        ("maxMigratingGlobally: 1", "", {}, "WaitingForGlobalLimit"),
        ("maxMigratingPerNode: 1", "", {"node": "n"}, "WaitingForNodeLimit"),
        ("maxMigratingPerNamespace: 1", "", {}, "WaitingForNamespaceLimit"),
        ("maxMigratingPerWorkload: 1%", "maxMigratingPerWorkload: 2%", {}, "WaitingForWorkloadLimit"),
        ("maxUnavailablePerWorkload: 1", "maxUnavailablePerWorkload: 2%", {}, "WaitingForWorkloadLimit"),
        ("priorityThreshold: 5", "", {"priority": 5}, "ForbiddenMigratePod"),
        ("", "evictSystemCriticalPods: true", {"priority": 2_000_000_000}, "ForbiddenMigratePod"),
        ("", "evictLocalStoragePods: true", {"local_volumes": ("v",)}, "ForbiddenMigratePod"),
        ("ignorePvcPods: true", "", {"claims": ("c",)}, "ForbiddenMigratePod"),
        ("namespaces: {exclude: [default]}", "", {}, "ForbiddenMigratePod"),
        ("namespaces: {include: [other]}", "namespaces: {include: [default]}", {}, "ForbiddenMigratePod"),
        ("labelSelector: {matchLabels: {a: b}}", "", {}, "ForbiddenMigratePod"),
    ],
)
def test_each_setting_decides(setting: str, without: str, about: dict[str, Any], held_by: str) -> None:
    """One job runs, of the same node, namespace and workload where the setting asks for that."""

    def outcome(text: str) -> str:
        config = read_file(text, JobsConfiguration).parsed()
        found = decided(
            job("a", **about), migrating=(running("z", node=about.get("node", "elsewhere")),), config=config, state=state
        )
        refused = {name: one.reason for name, one in found.refused.items()}
        return "admitted" if found.admitted else {**reasons(found), **refused}["a"]

    state = workload(100, *ready("a", "z"))
    assert (outcome(setting), outcome(without)) == (held_by, "admitted")


def test_a_pod_that_waits_for_its_first_place_is_not_held_because_it_is_missed() -> None:
    missed = [PodState(name, name, ready=False) for name in ("a", "b", "c")]
    assert decided(job("a", node="", ready=False), state=workload(3, *missed)).admitted == ("a",)
    assert reasons(decided(job("a", ready=False), state=workload(3, *missed))) == {"a": "WaitingForWorkloadLimit"}


def test_a_pod_that_another_job_has_is_refused_in_the_words_of_who_found_out() -> None:
    found = decided(job("a", forbidden="PodMigrationJob b has it"))
    assert (found.refused["a"].reason, found.refused["a"].message) == ("ForbiddenMigratePod", "PodMigrationJob b has it")


def test_one_of_which_nobody_knows_who_made_it_waits_whatever_else_is_wrong_with_it() -> None:
    found = decided(job("a", unjudged="no webhook", forbidden="PodMigrationJob b has it"))
    assert (found.waiting["a"].reason, found.waiting["a"].message) == ("WaitingForAdmission", "no webhook")

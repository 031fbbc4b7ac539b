"""Which pods a StatefulSet makes, replaces and ends, in which order, and what it says about them."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api.core import Pod
from herder.rules.workloads import StatefulSetPlan, claim, plan_stateful_set, stateful_set_status
from herder.rules.workloads.ordinals import claimants, ordinal_of
from herder.rules.workloads.stateful_pods import pod_document
from herder.rules.workloads.stateful_set import BURST

from . import stateful
from .stateful import DATA, NEW, OLD, member, snapshot, stateful_set
from .things import NOW, pod

PARALLEL = {"podManagementPolicy": "Parallel"}


def plan(*pods: Pod, replicas: int = 3, **more: Any) -> StatefulSetPlan:
    kept = {name: more.pop(name) for name in ("claims", "templates", "failures", "current", "taken") if name in more}
    return plan_stateful_set(snapshot(stateful_set(replicas, **more), *pods, **kept), NOW)


def made(found: StatefulSetPlan) -> list[str]:
    return [one.name for one in found.create]


def ended(found: StatefulSetPlan) -> list[str]:
    return [one.name for one in (*found.replace, *found.delete)]


def revisions(found: StatefulSetPlan) -> list[str]:
    return [one.document["metadata"]["labels"]["controller-revision-hash"] for one in found.create]


UNWELL = [
    pytest.param(member(0, ready=None, phase="Pending"), id="pending"),
    pytest.param(member(0, ready=None), id="not ready"),
    pytest.param(member(0, ready=3), id="not ready for long enough"),
    pytest.param(member(0, deleted=True), id="being deleted"),
    pytest.param(member(0, phase="Unknown"), id="on a node that says nothing"),
]


@pytest.mark.parametrize("first", UNWELL)
def test_in_order_the_next_waits_for_the_one_before_it(first: Pod) -> None:
    assert made(plan(spec={"minReadySeconds": 5})) == ["web-0"]
    assert made(plan(member(0), spec={"minReadySeconds": 5})) == ["web-1"]
    waiting = plan(first, member(4), spec={"minReadySeconds": 5})
    assert (made(waiting), ended(waiting)) == ([], [])


def test_in_parallel_all_that_are_missing_are_made_and_all_that_are_too_many_ended() -> None:
    found = plan(member(1, ready=None), member(5), member(7, ready=None), member(8, deleted=True), spec=PARALLEL)
    assert (made(found), ended(found)) == (["web-0", "web-2"], ["web-7", "web-5"])


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_number_that_no_cluster_holds_costs_no_more_than_a_burst(policy: str) -> None:
    found = plan(member(5), replicas=2**31 - 1, spec={"podManagementPolicy": policy, "ordinals": {"start": 2**31 - 1}})
    assert len(found.create) == (BURST if policy == "Parallel" else 1)
    # Nothing goes before all are there.
    assert ended(found) == []


def test_ordinals_begin_where_people_say() -> None:
    assert made(plan(replicas=2, spec={**PARALLEL, "ordinals": {"start": 5}})) == ["web-5", "web-6"]
    assert ended(plan(member(0), member(5), replicas=1, spec={"ordinals": {"start": 5}})) == ["web-0"]


def test_a_name_that_somebody_else_has_is_told_and_waited_for() -> None:
    taken = {"web-0": "ReplicaSet web"}
    waits = plan(taken=taken)
    assert (made(waits), [one.reason for one in waits.events]) == ([], ["FailedCreate"])
    assert waits.events[0].message.endswith("error: Pod web-0 exists and belongs to ReplicaSet web")
    # In parallel nobody else waits for it.
    assert made(plan(taken=taken, spec=PARALLEL)) == ["web-1", "web-2"]


def test_a_pod_has_a_name_a_host_and_its_claims() -> None:
    template = {**NEW.template["spec"], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}
    revision = stateful.Revision(name="web-x", template={"metadata": {"labels": {"app": "web"}}, "spec": template})
    document = pod_document(stateful_set(), [DATA], revision, 2)
    metadata, spec = document["metadata"], document["spec"]
    assert (metadata["name"], metadata["generateName"], spec["hostname"], spec["subdomain"]) == ("web-2", "web-", "web-2", "peers")
    assert metadata["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-x",
    }
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}}
    assert spec["volumes"] == [mounted, {"name": "tmp", "emptyDir": {}}]
    assert [one["uid"] for one in metadata["ownerReferences"]] == ["uid-web"]


def test_in_order_it_is_scaled_in_one_by_one_from_the_highest() -> None:
    assert ended(plan(member(0), member(1), member(2), replicas=1)) == ["web-2"]
    assert ended(plan(member(0), member(1), member(2, deleted=True), replicas=1)) == []
    # One that is not well is ended only where none below it is unwell, too.
    assert ended(plan(member(0), member(1), member(2, ready=None), replicas=1)) == ["web-2"]
    assert ended(plan(member(0), member(1, ready=None), member(2, ready=None), replicas=1)) == []
    assert ended(plan(member(0), member(1, ready=None), member(2), replicas=1)) == ["web-2"]
    # One that has ended never gets well.
    assert ended(plan(member(0), member(1, ready=None), member(2, ready=None, phase="Failed"), replicas=1)) == ["web-2"]
    assert ended(plan(member(0, ready=None), member(1), replicas=1)) == []


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_deleted_and_its_name_used_when_it_is_gone(phase: str) -> None:
    over = member(0, ready=None, phase=phase, lasted=60)
    found = plan(over, member(1))
    assert (ended(found), [one.uid for one in found.replace], made(found)) == (["web-0"], ["uid-web-0"], [])
    gone = plan(member(0, ready=None, phase=phase, deleted=True), member(1))
    assert (ended(gone), made(gone)) == ([], [])


def test_a_pod_that_fails_at_once_is_replaced_ever_more_rarely_unless_the_template_is_another() -> None:
    failed = member(0, ready=None, phase="Failed", age=3, lasted=1)
    assert ended(plan(failed)) == ["web-0"]
    again = plan(failed, failures={"web-0": 3})
    assert (ended(again), again.next_look) == ([], 6.0)
    assert ended(plan(member(0, OLD, ready=None, phase="Failed", age=3, lasted=1), failures={"web-0": 3})) == ["web-0"]


def test_an_update_goes_from_the_highest_and_waits_for_each() -> None:
    old = [member(number, OLD) for number in range(3)]
    assert ended(plan(*old, current=OLD)) == ["web-2"]
    assert ended(plan(*old[:2], member(2), current=OLD)) == ["web-1"]
    for unwell in (member(2, ready=None), member(2, deleted=True)):
        assert ended(plan(*old[:2], unwell, current=OLD)) == []
    assert ended(plan(*old[:2], member(2, ready=3), current=OLD, spec={"minReadySeconds": 5})) == []


def test_an_update_ends_at_the_partition_and_pods_below_it_come_back_as_they_were() -> None:
    pods = [member(0, OLD), member(1, OLD), member(2)]
    assert ended(plan(*pods, current=OLD, partition=2)) == []
    assert revisions(plan(replicas=3, current=OLD, partition=2, spec=PARALLEL)) == ["web-old", "web-old", "web-new"]
    started = {**PARALLEL, "ordinals": {"start": 4}}
    assert revisions(plan(replicas=3, current=OLD, partition=2, spec=started)) == ["web-old", "web-old", "web-new"]
    assert ended(plan(*pods, current=OLD, partition=9)) == []


def test_nothing_is_updated_unless_it_is_deleted_where_people_want_it_so() -> None:
    strategy = {"updateStrategy": {"type": "OnDelete"}}
    assert ended(plan(member(0, OLD), member(1, OLD), replicas=2, current=OLD, spec=strategy)) == []
    assert revisions(plan(member(0, OLD), replicas=2, current=OLD, spec=strategy)) == ["web-new"]


def test_a_broken_update_is_mended_by_a_new_template_only_in_parallel() -> None:
    """As in Kubernetes: in order, the pod that never gets ready has to be deleted by hand."""
    broken = [member(0, OLD), member(1, OLD), member(2, OLD, ready=None)]
    assert ended(plan(*broken, current=NEW)) == []
    assert ended(plan(*broken, current=NEW, spec=PARALLEL)) == ["web-2"]
    # Once, also where it has ended.
    assert ended(plan(*broken[:2], member(2, OLD, ready=None, phase="Failed"), current=NEW, spec=PARALLEL)) == ["web-2"]


def test_one_that_is_deleted_does_nothing() -> None:
    found = plan(member(5), deleted=True)
    assert (made(found), ended(found)) == ([], [])


def test_the_status_counts_pods_and_names_their_revisions() -> None:
    pods = [member(0, OLD), member(1, OLD, ready=2), member(2, ready=None), member(3, deleted=True)]
    status, wait = stateful_set_status(snapshot(stateful_set(4, spec={"minReadySeconds": 5}), *pods, current=OLD), 1, NOW)
    assert status == {
        "observedGeneration": 1,
        "replicas": 4,
        "readyReplicas": 3,
        "currentReplicas": 2,
        "updatedReplicas": 1,
        "availableReplicas": 2,
        "currentRevision": "web-old",
        "updateRevision": "web-new",
        "collisionCount": 1,
    }
    assert wait == 3.0


@pytest.mark.parametrize(("strategy", "current"), [("RollingUpdate", "web-new"), ("OnDelete", "web-old")])
def test_an_update_is_complete_when_all_are_ready_and_of_the_new_template(strategy: str, current: str) -> None:
    one = stateful_set(2, spec={"updateStrategy": {"type": strategy}})
    status, _ = stateful_set_status(snapshot(one, member(0), member(1), current=OLD), 0, NOW)
    assert (status["currentRevision"], status.get("currentReplicas")) == (current, 2 if current == "web-new" else None)


NAMES = {
    "web-0": 0,
    "web-10": 10,
    "web-4294967294": 4294967294,
    **dict.fromkeys(("web-01", "web--1", "web-", "web", "web-x", "my-web-0", "web-0-0", "web-٣", "web-99999999999"), None),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_is_of_an_ordinal_by_its_name_alone(name: str) -> None:
    assert ordinal_of("web", name) == NAMES[name]


def test_a_claim_is_of_every_set_whose_name_it_may_have() -> None:
    assert list(claimants("my-data-web-db-0")) == [("my", "data-web-db"), ("my-data", "web-db"), ("my-data-web", "db")]
    assert list(claimants("data-web")) == []
    assert list(claimants("web-0")) == []


def test_only_pods_that_have_its_name_are_taken_in_and_all_others_let_go() -> None:
    candidates = [pod("web-0"), pod("stray"), pod("web-01"), pod("stray-1", owner="uid-web"), pod("web-1", owner="uid-web")]
    found = claim(stateful_set(), candidates, lambda one: ordinal_of("web", one.name) is not None)
    names = [[one.name for one in part] for part in (found.owned, found.adopt, found.release)]
    assert names == [["web-1"], ["web-0"], ["stray-1"]]


def test_a_pod_that_was_taken_in_is_told_its_name() -> None:
    found = plan(pod("web-0", ready=100), replicas=1)
    assert [(one.pod, one.labels) for one in found.labels] == [
        ("web-0", {"statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"})
    ]

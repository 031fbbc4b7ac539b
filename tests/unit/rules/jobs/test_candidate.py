"""What arbitration reads of a pod and of a job that runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.arbitration.candidate import (
    candidate_pod,
    goes_on,
    int32,
    is_disrupting,
    is_machine,
    meant_uid,
    migrating,
    migration_priority,
    qos_of,
    why_not_its_guest,
)
from herder.rules.jobs.arbitration.history import descheduled, failed_pod
from tests.unit.rules.jobs.objects import pod, reference, thing

Json = dict[str, Any]
EVICTED = {"type": "Eviction", "status": "True", "reason": "EvictComplete"}
EVICTING = {"type": "Eviction", "status": "False", "reason": "Evicting"}
REFUSED = {"type": "Eviction", "status": "False", "reason": "FailedEvict"}
WORKLOAD = {"kind": "Deployment", "namespace": "shop", "name": "web", "uid": "uid-web"}


def job(name: str = "move", *, spec: Json | None = None, annotations: Json | None = None, **status: Any) -> PodMigrationJob:
    metadata = {"name": name, "annotations": annotations or {}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    reference = {"namespace": "shop", "name": "web-1"}
    document = {"metadata": metadata, "spec": {"podRef": reference, **(spec or {})}, "status": status}
    return msgspec.convert(document, PodMigrationJob)


def with_spec(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "web-1", "namespace": "shop"}, "spec": spec}, Pod)


@pytest.mark.parametrize(
    ("label", "kubernetes", "expected"),
    [
        (None, "Guaranteed", "LSR"),
        (None, "Burstable", "LS"),
        (None, "BestEffort", "BE"),
        ("LSE", "BestEffort", "LSE"),
        ("BE", "Guaranteed", "BE"),
        ("GOLD", "Guaranteed", "LSR"),
        (None, "", "BE"),
    ],
)
def test_the_quality_of_a_pod_is_its_label_and_else_kubernetes_own(label: str | None, kubernetes: str, expected: str) -> None:
    labels = {"koordinator.sh/qosClass": label} if label else {}
    found = msgspec.convert({"metadata": {"labels": labels}, "status": {"qosClass": kubernetes}}, Pod)
    assert qos_of(found) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        *((nonsense, 0) for nonsense in ("2147483648", "1e3", "", " 1", "+1", "٣", "1\n", "9" * 5000, None)),
    ],
)
def test_what_is_no_number_of_32_bits_counts_as_nothing(text: str | None, number: int) -> None:
    assert int32(text) == number
    if text is not None:
        costly = pod("web-1", annotations={"scheduling.koordinator.sh/eviction-cost": text})
        assert candidate_pod(costly, None, machine=False).eviction_cost == number
        assert migration_priority(job(annotations={"herder.dev/migration-priority": text})) == number


def test_volumes_that_stay_behind_and_claims_that_go_along_are_told_apart() -> None:
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/var"}},
        {"name": "disk", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "settings", "configMap": {"name": "x"}},
    ]
    found = candidate_pod(with_spec(volumes=volumes, priority=5, nodeName="n1"), ("shop", "uid"), machine=False)
    assert (found.local_volumes, found.claims) == (("scratch", "host"), ("data", "web-1-own"))
    assert (found.priority, found.node, found.workload) == (5, "n1", ("shop", "uid"))


def test_a_copy_of_what_a_node_runs_by_itself_is_known_by_its_annotation() -> None:
    assert candidate_pod(pod("a", annotations={"kubernetes.io/config.mirror": "x"}), None, machine=False).mirror
    assert not candidate_pod(pod("a"), None, machine=False).mirror


def test_whether_a_guest_runs_in_a_pod_says_its_instance_and_not_the_pod() -> None:
    launcher = pod("virt-launcher-vm-1", reference("VirtualMachineInstance", "vm"))
    target = pod("virt-launcher-vm-2", reference("VirtualMachineInstance", "vm"))
    instance = thing("VirtualMachineInstance", "vm", status={"launcherPodName": "virt-launcher-vm-1"})
    assert is_machine(launcher, instance) and not is_machine(target, instance)
    assert "does not run in this pod: must be that in which it does (virt-launcher-vm-1)" in why_not_its_guest(target, instance)
    assert why_not_its_guest(launcher, instance) == ""
    # Labels and names are the pod's own word; and another instance of that name is not its instance.
    pretender = pod("web-1", reference("ReplicaSet", "web"), labels={"kubevirt.io": "virt-launcher"})
    assert not is_machine(pretender, None) and not is_machine(launcher, None)
    other = thing("VirtualMachineInstance", "vm", uid="another", status={"launcherPodName": "virt-launcher-vm-1"})
    assert not is_machine(launcher, other)


@pytest.mark.parametrize(
    ("conditions", "there", "evicted", "disrupting"),
    [
        ([], True, False, False),
        ([REFUSED], True, False, False),
        ([EVICTING], True, False, True),
        ([EVICTING], False, True, True),
        ([EVICTED], False, True, True),
    ],
)
def test_a_job_counts_against_budgets_until_its_eviction_was_accepted(
    conditions: list[Json], there: bool, evicted: bool, disrupting: bool
) -> None:
    running = job(phase="Running", podUID="uid-web-1", sourceNode="n1", workloadRef=WORKLOAD, conditions=conditions)
    found = migrating(running, pod("web-1") if there else None)
    assert (found.evicted, found.ready, is_disrupting(running)) == (evicted, there, disrupting)
    assert (found.uid, found.node, found.workload) == ("uid-web-1", "n1", ("shop", "uid-web"))


def test_an_eviction_that_ends_slowly_is_accepted_and_another_pod_of_the_name_is_not_the_pod() -> None:
    running = job(phase="Running", podUID="uid-web-1", conditions=[EVICTING])
    assert migrating(running, pod("web-1", deletionTimestamp="2026-01-01T00:00:00Z")).evicted
    came_back = migrating(running, pod("web-1", uid="another"))
    assert came_back.evicted and not came_back.ready
    assert is_disrupting(job(phase="Running", migrationRef={"name": "m"}))


def test_the_pod_that_is_meant_is_the_one_that_was_found_first_then_the_one_that_was_named() -> None:
    assert meant_uid(job()) == ""
    named = {"podRef": {"namespace": "shop", "name": "web-1", "uid": "a"}}
    assert meant_uid(job(spec=named)) == "a"
    assert meant_uid(job(podUID="b")) == "b"


def test_of_jobs_for_one_pod_the_one_that_runs_goes_on_else_the_oldest_else_the_first_by_name() -> None:
    young = msgspec.convert(
        {
            "metadata": {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"},
            "spec": {"podRef": {"namespace": "shop", "name": "web-1"}},
        },
        PodMigrationJob,
    )
    assert goes_on([young, job("c"), job("b")]) == job("b")
    running = job("z", phase="Running", startTime="2026-01-03T00:00:00Z")
    assert goes_on([young, job("b"), running]) == running
    aborted = job("b", annotations={"herder.dev/abort": "true"})
    assert goes_on([young, aborted]) == young and goes_on([aborted]) is None


@pytest.mark.parametrize(
    ("status", "failed", "moved"),
    [
        ({"phase": "Succeed"}, "", True),
        ({"phase": "Succeed", "reason": "DryRun"}, "", False),
        ({"phase": "Failed", "reason": "Timeout"}, "uid-web-1", False),
        ({"phase": "Failed", "reason": "NoReplacement", "conditions": [EVICTED]}, "uid-web-1", True),
        ({"phase": "Aborted"}, "", False),
        ({"phase": "Aborted", "conditions": [EVICTED]}, "", True),
    ],
)
def test_history_counts_failures_of_pods_and_moves_of_workloads(status: Json, failed: str, moved: bool) -> None:
    ended = job(podUID="uid-web-1", workloadRef=WORKLOAD, completionTime="2026-01-01T00:00:00Z", **status)
    assert failed_pod(ended) == failed
    assert (descheduled(ended) == ("shop", "uid-web")) is moved

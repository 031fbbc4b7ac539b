"""Which new PodMigrationJobs are refused because of their pod or another job, and in which words."""

from __future__ import annotations

import pytest

from herder.api.core import Pod
from herder.api.core.pods import PodStatus
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobPhase, PodMigrationJobSpec, PodMigrationJobStatus, PodReference
from herder.api.meta import ObjectMeta, OwnerReference
from herder.rules.jobs.admission import job_problems

RS = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="r", controller=True)


def pod(*owners: OwnerReference, phase: str = "Running") -> Pod:
    return Pod(
        metadata=ObjectMeta(namespace="shop", name="web-0", uid="p1", owner_references=owners), status=PodStatus(phase=phase)
    )


def job(name: str = "new", phase: JobPhase | None = None, uid: str | None = None, of: str = "web-0") -> PodMigrationJob:
    status = PodMigrationJobStatus(phase=phase) if phase else None
    reference = PodReference(namespace="shop", name=of, uid=uid)
    return PodMigrationJob(metadata=ObjectMeta(name=name), spec=PodMigrationJobSpec(pod_ref=reference), status=status)


def said(new: PodMigrationJob, pod: Pod | None, *others: PodMigrationJob, evict_failed_bare_pods: bool = False) -> list[str]:
    return [str(one) for one in job_problems(new, pod, others, evict_failed_bare_pods)]


def test_a_pod_of_a_workload_is_moved() -> None:
    assert said(job(), pod(RS)) == []
    assert said(job(uid="p1"), pod(RS)) == []
    assert said(job(), pod(RS, phase="Pending")) == [], "its room is looked for before it has a node"


def test_a_pod_must_be_there() -> None:
    assert said(job(), None) == [
        'spec.podRef.name: Not found: "web-0": there is no pod of this name in namespace "shop":'
        " a job must name a pod that is there"
    ]


def test_a_pod_of_the_same_name_is_not_the_one_that_was_meant() -> None:
    assert said(job(uid="p0"), pod(RS)) == [
        'spec.podRef.uid: Invalid value: "p0": the pod of this name has uid "p1": must be that one, or be left out'
        " for whichever pod is there"
    ]


def test_a_pod_of_a_batch_job_is_not_moved() -> None:
    batch = OwnerReference(api_version="batch/v1", kind="Job", name="backup", uid="j", controller=True)
    (sentence,) = said(job(), pod(batch))
    assert sentence.startswith(
        'spec.podRef.name: Invalid value: "web-0": the pod belongs to Job backup, whose work would begin anew'
    )
    other = OwnerReference(api_version="example.com/v1", kind="Job", name="backup", uid="j", controller=True)
    assert said(job(), pod(other)) == [], "only of that group"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_not_moved(phase: str) -> None:
    why = f"the pod has ended (phase {phase}): must be one that runs, or waits to run"
    for flag in (False, True):
        assert said(job(), pod(RS, phase=phase), evict_failed_bare_pods=flag) == [
            f'spec.podRef.name: Invalid value: "web-0": {why}'
        ]


def test_a_bare_pod_goes_only_once_it_is_failed_and_where_the_settings_say_so() -> None:
    bare = 'spec.podRef.name: Invalid value: "web-0": no controller owns the pod, so no other would take its place: '
    elsewhere = "delete it, or have it made by a Deployment, a StatefulSet or the like"
    setting = "evictFailedBarePods: true in jobs.yaml of herder-config lets one go that is Failed"
    owned = OwnerReference(api_version="v1", kind="ConfigMap", name="c", uid="c")
    for there in (pod(), pod(owned)):
        assert said(job(), there) == [bare + elsewhere]
    assert said(job(), pod(phase="Failed")) == [bare + setting]
    assert said(job(), pod(phase="Failed"), evict_failed_bare_pods=True) == []
    for phase in ("Running", "Succeeded"):
        assert said(job(), pod(phase=phase), evict_failed_bare_pods=True) == [bare + elsewhere]


def test_a_pod_has_one_unfinished_job() -> None:
    unfinished = "is not finished (phase {}): wait for it, or delete it to abort it"
    assert said(job(), pod(RS), job("b"), job("a")) == [
        f"spec.podRef: Forbidden: PodMigrationJob a of pod shop/web-0 {unfinished.format('Pending')}"
    ]
    assert said(job(), pod(RS), job("b", "Running", uid="p0")) == [
        f"spec.podRef: Forbidden: PodMigrationJob b of pod shop/web-0 {unfinished.format('Running')}"
    ], "the job of the pod before it is not over until this one is ready"
    ended: list[JobPhase] = ["Succeed", "Failed", "Aborted"]
    assert said(job(), pod(RS), *(job("b", phase) for phase in ended), job("c", of="web-1"), job("new")) == []

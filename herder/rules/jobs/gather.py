"""A snapshot for one pass of arbitration from everything at once: for those who ask one question, the command line and tests. The
controller keeps the same from caches (controllers/job/)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import (
    DaemonSet,
    Deployment,
    Pod,
    PodDisruptionBudget,
    PodUnavailableBudget,
    ReplicaSet,
    StatefulSet,
)
from herder.api.kinds import PodMigrationJob, VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.meta import Identified
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.admission import is_unfinished, pod_of, why_not_movable
from herder.rules.jobs.arbitration import ArbitrationSnapshot, Candidate, WorkloadState
from herder.rules.jobs.arbitration.candidate import (
    candidate_pod,
    claims_budgets,
    created_at,
    goes_on,
    is_aborted,
    is_given_back,
    is_machine,
    meant_uid,
    migrating,
    migration_priority,
    why_another_has_it,
    why_not_its_guest,
)
from herder.rules.jobs.arbitration.history import descheduled, failed_pod
from herder.rules.jobs.budgets import (
    Budget,
    PodBudgets,
    Target,
    needs_no_budget,
    read_disruption_budget,
    read_unavailable_budget,
    selector_of,
    target_of,
    unavailable_budget_selector,
)
from herder.rules.jobs.execution.status import is_over, phase_of, status_of
from herder.rules.jobs.execution.surge import needs_no_budget_yet
from herder.rules.jobs.replicas import count_replicas, holds_guest, is_kept_off, pod_state
from herder.rules.jobs.workload import (
    DAEMON_SET,
    DEPLOYMENT,
    INSTANCE,
    MACHINE,
    POOL,
    REPLICA_SET,
    STATEFUL_SET,
    WITHOUT_SCALE,
    Controller,
    GroupKind,
    NoScale,
    Scale,
    Workload,
    controller_named,
    describe,
    top_of,
)

Asked = tuple[str, Controller]


class Everything(msgspec.Struct, frozen=True, kw_only=True):
    jobs: Sequence[PodMigrationJob] = ()
    pods: Sequence[Pod] = ()
    deployments: Sequence[Deployment] = ()
    replica_sets: Sequence[ReplicaSet] = ()
    stateful_sets: Sequence[StatefulSet] = ()
    daemon_sets: Sequence[DaemonSet] = ()
    pools: Sequence[VirtualMachinePool] = ()
    machines: Sequence[VirtualMachine] = ()
    instances: Sequence[VirtualMachineInstance] = ()
    budgets: Sequence[PodDisruptionBudget] = ()
    unavailable_budgets: Sequence[PodUnavailableBudget] = ()
    # Of controllers of kinds that are none of these, by namespace.
    scales: Mapping[Asked, Scale | NoScale] = msgspec.field(default_factory=dict[Asked, Scale | NoScale])


class Cluster:
    """Everything, in the order in which it is asked for. Nothing is looked up before somebody asks."""

    def __init__(self, everything: Everything) -> None:
        self.everything = everything
        self._pods = {(pod.namespace, pod.name): pod for pod in everything.pods}
        self._kinds: dict[GroupKind, dict[tuple[str, str], Any]] = {
            DEPLOYMENT: _by_name(everything.deployments),
            REPLICA_SET: _by_name(everything.replica_sets),
            STATEFUL_SET: _by_name(everything.stateful_sets),
            DAEMON_SET: _by_name(everything.daemon_sets),
            POOL: _by_name(everything.pools),
            MACHINE: _by_name(everything.machines),
            INSTANCE: _by_name(everything.instances),
        }
        self._pods_below = _by_controller(everything.pods)
        self._sets_below = _by_controller(everything.replica_sets)
        self._instances_below = _by_controller(everything.instances)
        self._machines_below = _by_controller(everything.machines)

    # `Objects` of the finder of workloads.

    def get(self, kind: GroupKind, namespace: str, name: str) -> Identified | None:
        return self._kinds[kind].get((namespace, name))

    def scale(self, controller: Controller, namespace: str) -> Scale | NoScale:
        unread = NoScale("Unknown", f"the scale of {controller.kind} {controller.name} was not read")
        return self.everything.scales.get((namespace, controller), unread)

    def replica_sets(self, namespace: str, uid: str) -> Iterable[ReplicaSet]:
        return self._sets_below[namespace, uid]

    # What is asked.

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    def instance_of(self, pod: Pod) -> VirtualMachineInstance | None:
        """Of the name that the pod's controller has."""
        owner = pod.controller
        return self._kinds[INSTANCE].get((pod.namespace, owner.name)) if owner is not None else None

    def workload_of(self, pod: Pod) -> WorkloadState | None:
        """None for a bare pod."""
        if pod.controller is None:
            return None
        direct = controller_named(pod.controller)
        top = top_of(direct, pod.namespace, self)
        pods, off = self._below(pod.namespace, top.controller.uid)
        workload = describe(direct, top, pod.namespace, pods, self)
        expected = workload.replicas - off if workload.replicas is not None and off else workload.replicas
        states = [state for one in pods if (state := pod_state(one)) is not None]
        return WorkloadState(workload, count_replicas(expected, states))

    def deployment_of(self, state: WorkloadState | None) -> Deployment | None:
        """The workload, where it is one."""
        if state is None or state.workload.group_kind != DEPLOYMENT:
            return None
        found = self._kinds[DEPLOYMENT].get((state.workload.namespace, state.workload.name))
        return found if found is not None and found.uid == state.workload.uid else None

    def asks_for_scale(self, pod: Pod) -> Asked | None:
        """Whose scale has to be read, where its workload is of a kind that nobody here knows."""
        if pod.controller is None:
            return None
        top = top_of(controller_named(pod.controller), pod.namespace, self)
        known = top.thing is not None or top.problem or top.controller.group_kind in WITHOUT_SCALE
        return None if known else (pod.namespace, top.controller)

    def budgets_of(self, pod: Pod, workload: Workload | None) -> PodBudgets:
        here = [one for one in self.everything.budgets if one.namespace == pod.namespace]
        found = [read_disruption_budget(one) for one in here if selector_of(one.spec.selector).matches(pod.labels)]
        others = (one for one in self.everything.unavailable_budgets if one.namespace == pod.namespace)
        return PodBudgets((*found, *self._unavailability(others, pod, workload)))

    def _unavailability(self, budgets: Iterable[PodUnavailableBudget], pod: Pod, workload: Workload | None) -> list[Budget]:
        names = _targets(workload) if workload is not None else ()
        meant = [one for one in budgets if target_of(one) in names or unavailable_budget_selector(one).matches(pod.labels)]
        return [budget for one in meant if (budget := read_unavailable_budget(one)) is not None]

    def _below(self, namespace: str, uid: str) -> tuple[list[Pod], int]:
        """The pods below an object that have not ended, and how many machines are kept off."""
        pods, off = self._live(namespace, uid), 0
        for between in (*self._sets_below[namespace, uid], *self._instances_below[namespace, uid]):
            pods += self._live(namespace, between.uid)
        for machine in self._machines_below[namespace, uid]:
            own = self._instances_below[namespace, machine.uid]
            below = [pod for instance in own for pod in self._live(namespace, instance.uid)]
            pods += below
            off += not below and is_kept_off(machine, self._kinds[INSTANCE].get((namespace, machine.name)))
        return pods, off

    def _live(self, namespace: str, uid: str) -> list[Pod]:
        found = self._pods_below[namespace, uid]
        return [pod for pod in found if pod_state(pod) is not None and self._is_replica(pod)]

    def _is_replica(self, pod: Pod) -> bool:
        kind = controller_named(pod.controller).group_kind if pod.controller is not None else None
        if kind != INSTANCE:
            # These have no pods of their own, whatever a pod says.
            return kind not in (DEPLOYMENT, MACHINE, POOL)
        instance = self.instance_of(pod)
        return holds_guest(pod, instance if instance is not None and instance.uid == pod.controller_uid else None)


def arbitration_snapshot(
    cluster: Cluster, config: JobsConfig, filed: Sequence[tuple[PodMigrationJob, Pod]] = ()
) -> ArbitrationSnapshot:
    """Of all unfinished jobs, and of those that somebody is about to file, each with its pod."""
    jobs = cluster.everything.jobs
    running = [(job, _own(job, cluster)) for job in jobs if phase_of(job) == "Running"]
    waiting = [(job, _own(job, cluster)) for job in jobs if phase_of(job) == "Pending" and not is_aborted(job)]
    pods = {pod.uid: pod for _, pod in (*running, *waiting, *filed) if pod is not None}
    states = {uid: state for uid, pod in pods.items() if (state := cluster.workload_of(pod)) is not None}
    others = _OtherJobs(jobs)
    return ArbitrationSnapshot(
        config=config,
        pending=tuple(
            _candidate(job, pod, states.get(pod.uid) if pod is not None else None, cluster, config, others)
            for job, pod in (*waiting, *filed)
        ),
        migrating=tuple(migrating(job, cluster.pod(job.spec.pod_ref.namespace, job.spec.pod_ref.name)) for job, _ in running),
        workloads={state.workload.id: state for state in states.values()},
        budgets={
            pod.uid: cluster.budgets_of(pod, states[pod.uid].workload if pod.uid in states else None)
            for job, pod in (*running, *waiting, *filed)
            if pod is not None and _needs_budgets(job, pod, states.get(pod.uid), cluster, config)
        },
    )


class _OtherJobs:
    """What other jobs say of those that wait: of the same pod before, of its workload, and which of two has the pod."""

    def __init__(self, jobs: Iterable[PodMigrationJob]) -> None:
        over = [job for job in jobs if is_over(job)]
        self.failures = Counter(failed_pod(job) for job in over)
        self.deschedulings = Counter(descheduled(job) for job in over)
        self._unfinished: defaultdict[str, list[PodMigrationJob]] = defaultdict(list)
        for job in jobs:
            if not is_over(job):
                self._unfinished[pod_of(job)].append(job)

    def why_another(self, job: PodMigrationJob) -> str:
        others = self._unfinished[pod_of(job)]
        first = goes_on(others) if len(others) > 1 else None
        return why_another_has_it(job, first) if first is not None and first.name != job.name else ""


def why_no_job(pod: Pod, cluster: Cluster, config: JobsConfig) -> str:
    """What admission, or the first look at the job, would say of it; empty where a job may be about this pod."""
    others = [one for one in cluster.everything.jobs if is_unfinished(one) and pod_of(one) == f"{pod.namespace}/{pod.name}"]
    if others:
        return f"PodMigrationJob {others[0].name} moves it already (phase {phase_of(others[0])})"
    return why_not_movable(pod, config.evict_failed_bare_pods) or why_not_its_guest(pod, cluster.instance_of(pod))


def _own(job: PodMigrationJob, cluster: Cluster) -> Pod | None:
    pod = cluster.pod(job.spec.pod_ref.namespace, job.spec.pod_ref.name)
    return pod if pod is not None and meant_uid(job) in ("", pod.uid) else None


def _candidate(
    job: PodMigrationJob, pod: Pod | None, state: WorkloadState | None, cluster: Cluster, config: JobsConfig, others: _OtherJobs
) -> Candidate:
    status = status_of(job)
    candidate = Candidate(
        name=job.name,
        created=created_at(job),
        pod=None,
        paused=bool(job.spec.paused),
        # Whether jobs are judged only the controller finds out: what it said last is so.
        unjudged=(status.message or "") if status.reason == reasons.WAITING_FOR_ADMISSION else "",
        forbidden=others.why_another(job),
    )
    # One that is on its way back to its ReplicaSet is left alone, as if it were not there.
    if pod is None or is_given_back(job, pod):
        return candidate
    instance = cluster.instance_of(pod)
    about = state.workload.id if state is not None else None
    never = why_not_movable(pod, config.evict_failed_bare_pods) or why_not_its_guest(pod, instance)
    return msgspec.structs.replace(
        candidate,
        pod=candidate_pod(pod, about, machine=is_machine(pod, instance)),
        forbidden=candidate.forbidden or never,
        migration_priority=migration_priority(job),
        failures=others.failures[pod.uid],
        deschedulings=others.deschedulings[about] if about is not None else 0,
    )


def _needs_budgets(job: PodMigrationJob, pod: Pod, state: WorkloadState | None, cluster: Cluster, config: JobsConfig) -> bool:
    """Not of a machine's, which is moved and not ended, nor of one whose replacement comes first."""
    if phase_of(job) == "Running":
        return claims_budgets(job, pod, config)
    if is_machine(pod, cluster.instance_of(pod)) or needs_no_budget(pod.status.phase, pod.being_deleted):
        return False
    return not needs_no_budget_yet(job, pod, cluster.deployment_of(state), config)


def _targets(workload: Workload) -> tuple[Target, ...]:
    """By the workload's name, or by that of the ReplicaSet or whoever else keeps the pod directly."""
    group, kind = workload.group_kind
    direct_group, direct_kind = workload.controller.group_kind
    return Target(group, kind, workload.name), Target(direct_group, direct_kind, workload.controller.name)


def _by_name(things: Iterable[Identified]) -> dict[tuple[str, str], Any]:
    return {(one.namespace, one.name): one for one in things}


def _by_controller(things: Iterable[Any]) -> defaultdict[tuple[str, str], list[Any]]:
    below: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for one in things:
        if one.controller is not None:
            below[one.namespace, one.controller.uid].append(one)
    return below

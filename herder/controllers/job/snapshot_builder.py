"""Gathers what one look at a job has to see: from caches, and live where an absence decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from herder.api import labels, reasons
from herder.api.core import Deployment, Node, Pod, ReplicaSet, StatefulSet
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.api.kinds.pod_migration_job import PodMigrationJobStatus
from herder.api.meta import Identified, ObjectReference
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.indexes import BY_CONTROLLER_REF, BY_REFERENCE
from herder.controllers.job.workloads import Workloads
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.controllers.reservations import BY_RESERVATION, takers_of
from herder.kube.cache import BY_NAMESPACE, BY_OWNER, Stored, owned, view_of
from herder.kube.kit import Kit
from herder.kube.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    INSTANCES,
    JOBS,
    MIGRATIONS,
    NODES,
    PODS,
    REPLICA_SETS,
    RESERVATIONS,
    STATEFUL_SETS,
    Key,
    Resource,
)
from herder.rules.jobs.arbitration.candidate import admitted_at
from herder.rules.jobs.execution.eviction import has_begun
from herder.rules.jobs.execution.pod_release import would_adopt
from herder.rules.jobs.execution.room import referred_to
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import has, is_over, phase_of, status_of
from herder.rules.jobs.workload import REPLICA_SET, STATEFUL_SET, Controller, Scale, Workload
from herder.rules.workloads.pods import FINISHED

# Their replicas are counted by us; those of others are asked for.
_COUNTED: dict[tuple[str, str], Resource[Any]] = {REPLICA_SET: REPLICA_SETS, STATEFUL_SET: STATEFUL_SETS}
# Who takes in pods that nobody manages.
_ADOPTERS: tuple[Resource[Any], ...] = (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS)


class SnapshotBuilder:
    def __init__(self, kit: Kit, workloads: Workloads, config: HerderConfig) -> None:
        self._client = kit.client
        self._workloads = workloads
        self._config = config
        self._caches = kit.caches
        self._jobs = kit.caches.of(JOBS)
        self._pods = kit.caches.of(PODS)
        self._reservations = kit.caches.of(RESERVATIONS)
        self._nodes = kit.caches.of(NODES)
        self._instances = kit.caches.of(INSTANCES)
        self._migrations = kit.caches.of(MIGRATIONS)
        self._pods.add_index(BY_OWNER)
        self._pods.add_index(BY_RESERVATION)
        self._migrations.add_index(BY_INSTANCE)
        for resource in _ADOPTERS:
            kit.caches.of(resource).add_index(BY_NAMESPACE)

    async def build(self, stored: Stored[PodMigrationJob], *, live: bool = False) -> JobSnapshot:
        """`live`: the pod is read from the server, because an eviction may be under way that the cache has not seen."""
        job = stored.view
        pod, workload = await self._pod(job, live)
        reservation = await self._reservation(job)
        # Of one that is over, too, while it keeps room: it is let go of when nobody is to take it any more.
        counted = await self._counted(job) if phase_of(job) == "Running" or _keeps_room(job, reservation) else {}
        return JobSnapshot(
            job=job,
            config=self._config.jobs(),
            pod=pod,
            workload=workload,
            reservation=reservation,
            reserved_node=self._node(reservation),
            takers=takers_of(self._pods, reservation) if reservation is not None else (),
            reservation_used_by=self._used_by(job),
            **self._written(stored, pod, reservation),
            **counted,
            **self._machine(job, reservation),
            **await self._surge(job, pod),
        )

    # --- the pod -----------------------------------------------------------------------------------------------------------------

    async def _pod(self, job: PodMigrationJob, live: bool) -> tuple[Pod | None, Workload | None]:
        reference = job.spec.pod_ref
        key, uid = Key(reference.namespace, reference.name), status_of(job).pod_uid or reference.uid
        stored = self._pods.stored(key)
        there = stored is not None and (not uid or stored.uid == uid)
        workload = self._workloads.of(stored) if stored is not None and there else None
        if stored is not None and there and not live:
            return stored.view, workload
        if not live and (is_over(job) or has_begun(job)):
            return None, None
        # That it is gone ends the job, and a cache may be behind.
        pod = await self._client.find(PODS, key)
        return (pod, workload) if pod is not None and (not uid or pod.uid == uid) else (None, None)

    def _written(self, stored: Stored[PodMigrationJob], pod: Pod | None, reservation: ReservationView | None) -> dict[str, Any]:
        """Whole documents, which cost more than all the rest, only where a reservation is about to be made from them."""
        job = stored.view
        if reservation is not None or pod is None or phase_of(job) != "Running" or has(job, reasons.RESERVATION_CREATED):
            return {}
        strategy = status_of(job).strategy
        if strategy == "Eviction" or (strategy == "LiveMigration" and job.spec.reservation_options is None):
            return {}
        found = self._pods.stored(Key(pod.namespace, pod.name))
        if found is None or found.uid != pod.uid:
            return {}
        spec = msgspec.json.decode(stored.raw).get("spec") or {}
        template = (spec.get("reservationOptions") or {}).get("template")
        return {"written_pod": msgspec.json.decode(found.raw), "written_template": template}

    # --- its room ----------------------------------------------------------------------------------------------------------------

    async def _reservation(self, job: PodMigrationJob) -> ReservationView | None:
        key = Key("", referred_to(job))
        found = self._reservations.get(key)
        if found is not None or is_over(job) or phase_of(job) == "Pending":
            return found
        missed = has(job, reasons.RESERVATION_CREATED) or job.spec.reservation_options is not None
        return await self._client.find(RESERVATIONS, key) if missed else None

    def _node(self, reservation: ReservationView | None) -> Node | None:
        return self._nodes.get(Key("", reservation.status.node_name)) if reservation and reservation.status.node_name else None

    def _used_by(self, job: PodMigrationJob) -> tuple[str, ...]:
        """By other jobs that run and began before it: of two that name one, the first keeps it. Those that wait may still find
        another one."""
        others = self._jobs.by(BY_REFERENCE, referred_to(job))
        running = (other for other in others if other.uid != job.uid and phase_of(other) == "Running")
        return tuple(sorted(other.name for other in running if admitted_at(other) < admitted_at(job)))

    # --- who makes pods like it --------------------------------------------------------------------------------------------------

    async def _counted(self, job: PodMigrationJob) -> dict[str, Any]:
        status = status_of(job)
        owner = status.controller_ref
        if owner is None or not owner.uid or status.strategy not in ("Reservation", "Surge"):
            return {}
        if status.pod_ref is not None and status.strategy == "Reservation":
            return {}  # whoever else there is: the replacement is known
        namespace = job.spec.pod_ref.namespace
        wanted, gone = await self._replicas(namespace, owner)
        return {
            "siblings": self._siblings(namespace, owner.uid),
            "wanted_replicas": wanted,
            "controller_gone": gone,
            "replacements_due": self._due(job, owner.uid),
            "leaving": self._leaving(job, owner.uid),
        }

    def _siblings(self, namespace: str, uid: str) -> tuple[Pod, ...]:
        found = self._pods.by(BY_OWNER, owned(namespace, uid))
        return tuple(pod for pod in found if pod.controller_uid == uid and pod.status.phase not in FINISHED)

    async def _replicas(self, namespace: str, owner: ObjectReference) -> tuple[int | None, bool]:
        """How many it wants, and whether it is gone."""
        group_kind = (owner.api_version or "").rpartition("/")[0], owner.kind or ""
        resource = _COUNTED.get(group_kind)
        if resource is None:
            controller = Controller(owner.api_version or "", owner.kind or "", owner.name or "", owner.uid or "")
            answer = self._workloads.scales.get(namespace, controller)
            if isinstance(answer, Scale):
                return (answer.replicas, False) if answer.uid == owner.uid else (None, True)
            return None, answer.why == "Missing"
        key = Key(namespace, owner.name or "")
        found: Identified | None = view_of(self._caches.of(resource).stored(key))
        if found is None or found.uid != owner.uid:
            found = await self._client.find(resource, key)
        if not isinstance(found, ReplicaSet | StatefulSet) or found.uid != owner.uid or found.being_deleted:
            return None, True
        return 1 if found.spec.replicas is None else found.spec.replicas, False

    def _due(self, job: PodMigrationJob, uid: str) -> int:
        others = self._jobs.by(BY_CONTROLLER_REF, uid)
        return sum(1 for other in others if other.uid != job.uid and has_begun(other) and _waits(status_of(other)))

    def _leaving(self, job: PodMigrationJob, uid: str) -> frozenset[str]:
        others = (other for other in self._jobs.by(BY_CONTROLLER_REF, uid) if other.uid != job.uid and phase_of(other) == "Running")
        return frozenset(status_of(other).pod_uid or "" for other in others if has_begun(other))

    async def _surge(self, job: PodMigrationJob, pod: Pod | None) -> dict[str, Any]:
        """Also of a job that is over, or waits again: its pod may still have to be given back."""
        status = status_of(job)
        owner = status.controller_ref
        if status.strategy != "Surge" or owner is None or pod is None:
            return {}
        key = Key(pod.namespace, owner.name or "")
        found: ReplicaSet | None = self._caches.of(REPLICA_SETS).get(key)
        if found is None or found.uid != owner.uid:
            # Without it the pod is left to the garbage collector, and a cache may be behind.
            found = await self._client.find(REPLICA_SETS, key)
        same = found is not None and found.uid == owner.uid
        known: dict[str, Any] = {"replica_set": found if same else None}
        return known if phase_of(job) != "Running" or pod.controller is None else {**known, **self._before_release(job, pod)}

    def _before_release(self, job: PodMigrationJob, pod: Pod) -> dict[str, Any]:
        """What decides whether the pod may be let go now."""
        status = status_of(job)
        workload, owner = status.workload_ref, status.controller_ref
        found: Deployment | None = self._caches.of(DEPLOYMENTS).get(Key(pod.namespace, workload.name or "")) if workload else None
        same = found is not None and workload is not None and found.uid == workload.uid
        caches = [self._caches.of(resource) for resource in _ADOPTERS]
        others = self._jobs.by(BY_CONTROLLER_REF, (owner.uid or "") if owner is not None else "")
        return {
            "deployment": found if same else None,
            "surging_before": sum(1 for other in others if other.uid != job.uid and _surges_before(other, job)),
            "would_adopt": would_adopt(pod, (one for cache in caches for one in cache.by(BY_NAMESPACE, pod.namespace))),
        }

    # --- a machine's -------------------------------------------------------------------------------------------------------------

    def _machine(self, job: PodMigrationJob, reservation: ReservationView | None) -> dict[str, Any]:
        """Migrations also of an instance that is gone: what we made for it is still to be ended."""
        status = status_of(job)
        owner = status.controller_ref
        if status.strategy != "LiveMigration" or owner is None or not owner.name or not owner.uid:
            return {}
        key = Key(job.spec.pod_ref.namespace, owner.name)
        instance = self._instances.get(key)
        same = instance is not None and instance.uid == owner.uid
        reserves = same and reservation is None and job.spec.reservation_options is not None and phase_of(job) == "Running"
        return {
            "instance": instance if same else None,
            "written_instance": msgspec.json.decode(self._instances.raw(key) or b"{}") if reserves else None,
            "migrations": _sorted(self._migrations.by(BY_INSTANCE, instance_of(key.namespace, key.name))),
            "siblings": self._siblings(key.namespace, owner.uid),
        }


def _keeps_room(job: PodMigrationJob, reservation: ReservationView | None) -> bool:
    return is_over(job) and labels.JOB_FINALIZER in job.finalizers and reservation is not None


def _waits(status: PodMigrationJobStatus) -> bool:
    return status.pod_ref is None


def _surges_before(other: PodMigrationJob, job: PodMigrationJob) -> bool:
    if phase_of(other) != "Running" or status_of(other).strategy != "Surge":
        return False
    return has_begun(other) or admitted_at(other) < admitted_at(job)


def _sorted(things: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(things, key=lambda one: one.name))

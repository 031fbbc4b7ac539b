"""A job with its pod and its reservation: what each look leads to is carried out as the writer would, on plain documents."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.lifecycle import plan_job
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import admitted_status, waiting_status
from herder.rules.jobs.workload import Controller, Workload
from herder.rules.plans import moment, text_of

Json = dict[str, Any]
NOW = 1_800_000_000.0
REPLICA_SET = Controller("apps/v1", "ReplicaSet", "web-7d4", "rs")
STATEFUL_SET = Controller("apps/v1", "StatefulSet", "db", "sts")
READY: Json = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def node_of(reservation: ReservationView | None, spec: Json, **labels: str) -> Node | None:
    """The node that a reservation is on."""
    name = reservation.status.node_name if reservation is not None else None
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Node) if name else None


class Stage:
    def __init__(
        self, *, owner: Controller | None = REPLICA_SET, config: JobsConfig | None = None, node: str = "a", **spec: Any
    ) -> None:
        self.now = NOW
        self.config = config or JobsConfig()
        self.owner = owner
        self.old: Json | None = self.pod("web-1", "pod-1", node)
        self.job: Json = {
            "metadata": {"name": "move", "uid": "job-uid", "generation": 1, "creationTimestamp": text_of(moment(NOW))},
            "spec": {"podRef": {"namespace": "default", "name": "web-1"}, **spec},
        }
        self.reservation: Json | None = None
        self.others: list[Json] = []
        self.wanted: int | None = 1
        self.gone = False
        self.used_by: tuple[str, ...] = ()
        self.due = 0
        self.leaving: frozenset[str] = frozenset()
        # Of the reservation's node; None: it is gone.
        self.node: Json | None = {}
        self.plans: list[JobPlan] = []

    # --- objects -----------------------------------------------------------------------------------------------------------------

    def pod(self, name: str, uid: str, node: str = "", *, took: bool = False, status: Json = READY) -> Json:
        owner = self.owner
        reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid} if owner else None
        allocated = {RESERVATION_ALLOCATED: '{"name": "job-job-uid", "uid": "r-uid"}'} if took else {}
        return {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid,
                "labels": {"app": "web"},
                "annotations": allocated,
                "creationTimestamp": text_of(moment(self.now)),
                **({"ownerReferences": [{**reference, "controller": True}]} if reference else {}),
            },
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}], "nodeName": node},
            "status": status,
        }

    def given(self, **spec: Any) -> Json:
        """A reservation that somebody else made, for pods with the label app=web, on node b."""
        container = {"name": "c", "resources": {"requests": {"cpu": spec.pop("cpu", "1")}}}
        template = {"metadata": {"namespace": "default"}, "spec": {"containers": [container]}}
        status = spec.pop("status", {"phase": "Available", "nodeName": "b"})
        metadata = {"name": "mine", "uid": "mine-uid", **spec.pop("metadata", {})}
        owners = spec.pop("owners", [{"labelSelector": {"matchLabels": {"app": "web"}}}])
        return {"metadata": metadata, "spec": {"template": template, "owners": owners, **spec}, "status": status}

    def comes(self, name: str = "web-2", uid: str = "pod-2", node: str = "b", *, took: bool = True, status: Json = READY) -> None:
        """A pod of the same controller; one that took the reservation, unless said otherwise."""
        self.others.append(self.pod(name, uid, node, took=took, status=status))
        if took and self.reservation is not None:
            owner = {"kind": "Pod", "namespace": "default", "name": name, "uid": uid}
            self.reservation["status"] = {"phase": "Succeeded", "nodeName": node, "currentOwners": [owner]}

    def place(self, node: str = "b") -> None:
        assert self.reservation is not None
        self.reservation["status"] = {"phase": "Available", "nodeName": node}

    # --- steps -------------------------------------------------------------------------------------------------------------------

    def admit(self) -> Stage:
        assert self.old is not None
        pod = msgspec.convert(self.old, Pod)
        workload = None
        if self.owner is not None:
            workload = Workload(
                api_version=self.owner.api_version,
                kind=self.owner.kind,
                namespace="default",
                name=self.owner.name,
                uid=self.owner.uid,
                controller=self.owner,
                replicas=self.wanted,
            )
        self.job["status"] = admitted_status(self.view, pod, workload, self.config, self.now, machine=False, surges=False)
        return self

    def wait(self, reason: str, pod_uid: str = "pod-1") -> None:
        """As arbitration says it."""
        self.job["status"] = waiting_status(self.view, reason, "it waits", self.now, pod_uid=pod_uid)

    def look(self) -> JobPlan:
        """And carries it out."""
        plan = self.plan()
        self.carry_out(plan)
        return plan

    def plan(self) -> JobPlan:
        return plan_job(self.snapshot(), self.now)

    def carry_out(self, plan: JobPlan) -> None:
        self.plans.append(plan)
        if plan.hold:
            self.job["metadata"]["finalizers"] = [labels.JOB_FINALIZER]
        if plan.refer:
            self.job["spec"].setdefault("reservationOptions", {})["reservationRef"] = {"name": plan.refer}
        if plan.create_reservation is not None:
            made = plan.create_reservation
            self.reservation = {**made, "metadata": {**made["metadata"], "uid": "r-uid"}, "status": {"phase": "Pending"}}
        if plan.status is not None:
            self.job["status"] = plan.status
        if plan.open_reservation and self.reservation is not None:
            self.reservation["spec"]["unschedulable"] = False
        if plan.evict is not None and self.old is not None:
            assert plan.evict.uid == self.old["metadata"]["uid"]
            self.old["metadata"]["deletionTimestamp"] = text_of(moment(self.now))
        if plan.delete_reservation is not None:
            self.reservation = None
        if plan.let_go:
            self.job["metadata"].pop("finalizers", None)

    def until_evicted(self) -> Stage:
        """Admitted, reserved on node b, evicted."""
        self.admit().look()
        self.look()
        self.place()
        assert self.look().evict is not None
        return self

    def ends(self) -> Stage:
        """The old pod."""
        self.old = None
        return self

    # --- what there is -----------------------------------------------------------------------------------------------------------

    @property
    def view(self) -> PodMigrationJob:
        return msgspec.convert(self.job, PodMigrationJob)

    @property
    def status(self) -> Json:
        return self.job.get("status", {})

    @property
    def phase(self) -> str:
        return self.status["phase"]

    @property
    def reason(self) -> str | None:
        return self.status.get("reason")

    def conditions(self) -> dict[str, tuple[str, str]]:
        return {one["type"]: (one["status"], one["reason"]) for one in self.status.get("conditions", ())}

    def snapshot(self) -> JobSnapshot:
        old = msgspec.convert(self.old, Pod) if self.old is not None else None
        others = tuple(msgspec.convert(one, Pod) for one in self.others)
        reservation = msgspec.convert(self.reservation, ReservationView) if self.reservation is not None else None
        takers = tuple(pod for pod in others if reservation is not None and RESERVATION_ALLOCATED in pod.annotations)
        return JobSnapshot(
            job=self.view,
            config=self.config,
            pod=old,
            written_pod=self.old,
            written_template=(self.job["spec"].get("reservationOptions") or {}).get("template"),
            reservation=reservation,
            reserved_node=node_of(reservation, self.node) if self.node is not None else None,
            takers=takers,
            reservation_used_by=self.used_by,
            siblings=(*((old,) if old is not None else ()), *others),
            wanted_replicas=self.wanted,
            controller_gone=self.gone,
            replacements_due=self.due,
            leaving=self.leaving,
        )

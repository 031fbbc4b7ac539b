"""A small cluster that reacts: a ReplicaSet, a scheduler, nodes, a garbage collector and a budget, each one step at a time. What
the ReplicaSet does is decided by the rules of the real one."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Deployment, Pod, ReplicaSet
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.execution.lifecycle import held_plan, plan_job
from herder.rules.jobs.execution.plan import Evict, JobPlan
from herder.rules.jobs.execution.pod_release import is_released
from herder.rules.jobs.execution.snapshot import JobSnapshot
from herder.rules.jobs.execution.status import admitted_status, is_over, phase_of
from herder.rules.jobs.execution.surge import surges
from herder.rules.jobs.workload import Controller, Workload
from herder.rules.workloads import ReplicaSetSnapshot, claim, plan_replica_set
from herder.rules.workloads.pods import is_ready
from tests.unit.rules.jobs.execution.stage import node_of

Json = dict[str, Any]
HASH = "pod-template-hash"
SELECTED = {"app": "web", HASH: "h1"}
SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-h1", "uid": "rs"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployment"}
OLD = "web-h1-0"
TTL = 300.0
# That of a reservation is longer than its job's.
ROOM_TTL = TTL + 1800.0


class Crash(Exception):
    """The controller ends here; what it has written stays."""


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    def __init__(
        self,
        replicas: int = 1,
        min_available: int | None = None,
        *,
        surge: int | str = "25%",
        has_room: bool = True,
        comes_up: bool = True,
        min_ready: int = 0,
    ) -> None:
        self.now = 10_000.0
        self.wanted = self.least = replicas
        self.min_available = min_available
        self.surge = surge
        # Whether there is room to reserve, and whether what comes gets ready.
        self.has_room, self.comes_up, self.min_ready = has_room, comes_up, min_ready
        self.set_there = self.deployment_there = True
        self.pods: dict[str, Json] = {}
        self.reservation: Json | None = None
        self.job: Json | None = {
            "metadata": {"name": "move", "uid": "job", "generation": 1, "annotations": {labels.SURGE: "true"}, "finalizers": []},
            "spec": {"podRef": {"namespace": "shop", "name": OLD}},
        }
        self.reserved_at = 0.0
        self.made = 0
        self.refused = 0
        # Called after each write: what must always hold.
        self.watch: Callable[[], None] = lambda: None
        for _ in range(replicas):
            self._make_pod()
        for number, pod in enumerate(self.pods.values()):
            pod["spec"]["nodeName"] = f"n{number}"
            self._get_ready(pod, self.now - 5000)

    # --- what one sees -----------------------------------------------------------------------------------------------------------

    @property
    def old(self) -> Json | None:
        return self.pods.get(OLD)

    def views(self) -> list[Pod]:
        return [self.view(pod) for pod in self.pods.values()]

    def view(self, pod: Json) -> Pod:
        return msgspec.convert(pod, Pod)

    @property
    def serving(self) -> list[str]:
        """Ready pods that the Service finds: all of its labels are those of the template but the hash."""
        found = [pod for pod in self.views() if pod.labels.get("app") == "web"]
        return [pod.name for pod in found if is_ready(pod) and not pod.being_deleted]

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.views() if not pod.being_deleted]

    @property
    def view_of_job(self) -> PodMigrationJob:
        assert self.job is not None
        return msgspec.convert(self.job, PodMigrationJob)

    def condition(self, kind: str) -> tuple[str, str] | None:
        assert self.job is not None
        conditions = self.job.get("status", {}).get("conditions", ())
        return next(((one["status"], one["reason"]) for one in conditions if one["type"] == kind), None)

    @property
    def replica_set(self) -> ReplicaSet | None:
        if not self.set_there:
            return None
        document = {
            "metadata": {"name": "web-h1", "namespace": "shop", "uid": "rs", "labels": SELECTED, "generation": 1},
            "spec": {"replicas": self.wanted, "minReadySeconds": self.min_ready, "selector": {"matchLabels": SELECTED}},
        }
        return msgspec.convert(document, ReplicaSet)

    @property
    def deployment(self) -> Deployment:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.surge, "maxUnavailable": 0}}
        metadata = {"name": "web", "namespace": "shop", "uid": "deployment", "generation": 1}
        return msgspec.convert({"metadata": metadata, "spec": {"replicas": self.wanted, "strategy": rolling}}, Deployment)

    def snapshot(self) -> JobSnapshot:
        pods = self.views()
        pod = next((one for one in pods if one.name == OLD), None)
        took = [one for one in pods if one.annotations.get(labels.RESERVATION_ALLOCATED) == "room" and one.spec.node_name]
        reservation = msgspec.convert(self.reservation, ReservationView) if self.reservation is not None else None
        return JobSnapshot(
            job=self.view_of_job,
            config=JobsConfig(),
            pod=pod,
            written_pod=self.pods.get(OLD),
            reservation=reservation,
            reserved_node=node_of(reservation, {}),
            takers=tuple(took),
            siblings=tuple(one for one in pods if one.controller_uid == "rs"),
            wanted_replicas=self.wanted if self.set_there else None,
            controller_gone=not self.set_there,
            replica_set=self.replica_set,
            deployment=self.deployment if self.deployment_there else None,
        )

    # --- the controller ----------------------------------------------------------------------------------------------------------

    def look(self, crash_after: int | None = None, held: Wait | None = None) -> JobPlan:
        """One look of the job's controller, which may end after so many writes."""
        if self.job is None:
            return JobPlan()
        snapshot = self.snapshot()
        plan = plan_job(snapshot, self.now)
        if plan.disrupts and held is not None:
            plan = held_plan(snapshot, held, self.now)
        steps = self._steps(plan)
        for step in steps[:crash_after]:
            step()
            self.watch()
        if crash_after is not None and crash_after < len(steps):
            raise Crash
        return plan

    def _steps(self, plan: JobPlan) -> list[Callable[[], None]]:
        """In the order of a plan's fields."""
        steps: list[Callable[[], None]] = []
        if plan.hold:
            steps.append(lambda: self._meta(finalizers=[labels.JOB_FINALIZER]))
        if plan.create_reservation is not None:
            steps.append(self._reserve)
        if plan.status is not None:
            steps.append(lambda: self._write_status(plan.status))
        if plan.open_reservation:
            steps.append(self._open)
        evict = plan.evict
        if evict is not None:
            steps.append(lambda: self._evict(evict))
        steps += [lambda one=one: self._patch(*one) for one in plan.patch_pods]
        if plan.delete_reservation is not None:
            steps.append(self._unreserve)
        if plan.let_go:
            steps.append(lambda: self._meta(finalizers=[]))
        return steps

    def arbitrate(self) -> None:
        """Admits the job, if it waits and may."""
        if self.job is None:
            return
        job, pod = self.view_of_job, self.pods.get(OLD)
        if phase_of(job) != "Pending" or job.spec.paused or job.being_deleted or pod is None or is_over(job):
            return
        view = self.view(pod)
        if view.being_deleted or is_released(job, view) or view.controller is None:
            return
        controller = Controller("apps/v1", "ReplicaSet", "web-h1", "rs")
        workload = Workload(
            api_version="apps/v1", kind="Deployment", namespace="shop", name="web", uid="deployment", controller=controller
        )
        asked = surges(job, view, self.deployment if self.deployment_there else None)
        status = admitted_status(job, view, workload, JobsConfig(), self.now, machine=False, surges=asked)
        self._write_status({**status, "ttl": f"{TTL:g}s"})

    def _meta(self, **metadata: Any) -> None:
        assert self.job is not None
        self.job["metadata"].update(metadata)
        self._collect_job()

    def _collect_job(self) -> None:
        if self.job is not None and self.job["metadata"].get("deletionTimestamp") and not self.job["metadata"]["finalizers"]:
            self.job = None

    def _write_status(self, status: Json | None) -> None:
        assert self.job is not None
        self.job["status"] = status

    def _reserve(self) -> None:
        if self.reservation is None:
            self.reserved_at = self.now
            owner = {"apiVersion": "v1", "kind": "PodMigrationJob", "name": "move", "uid": "job", "controller": True}
            self.reservation = {
                "metadata": {"name": "job-job", "uid": "room", "ownerReferences": [owner]},
                "spec": {"unschedulable": True, "allocateOnce": True},
                "status": {"phase": "Pending"},
            }

    def _open(self) -> None:
        if self.reservation is not None:
            self.reservation["spec"]["unschedulable"] = False

    def _unreserve(self) -> None:
        self.reservation = None

    def _evict(self, evict: Evict) -> None:
        pod = self.pods.get(evict.name)
        if pod is None or pod["metadata"]["uid"] != evict.uid:
            return
        if self.min_available is not None and evict.name in self.serving and len(self.serving) <= self.min_available:
            self.refused += 1
            return
        self.tell_to_end(evict.name)

    def _patch(self, name: str, uid: str, patch: Json) -> None:
        """A strategic merge patch, as far as one is used here."""
        pod = self.pods.get(name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        metadata = pod["metadata"]
        merged = {**metadata["labels"], **patch["metadata"].get("labels", {})}
        metadata["labels"] = {key: value for key, value in merged.items() if value is not None}
        for owner in patch["metadata"].get("ownerReferences", ()):
            others = [one for one in metadata["ownerReferences"] if one["uid"] != owner["uid"]]
            metadata["ownerReferences"] = others if owner.get("$patch") == "delete" else [*others, owner]
        assert sum(bool(one.get("controller")) for one in metadata["ownerReferences"]) <= 1

    # --- everybody else ----------------------------------------------------------------------------------------------------------

    def sync_set(self) -> None:
        """Lets go of what its selector no longer finds, takes in what it finds, then makes or ends pods."""
        view = self.replica_set
        if view is None:
            return
        found = claim(view, self.views())
        for pod in found.release:
            owners = self.pods[pod.name]["metadata"]["ownerReferences"]
            self.pods[pod.name]["metadata"]["ownerReferences"] = [one for one in owners if one["uid"] != "rs"]
        for pod in found.adopt:
            self.pods[pod.name]["metadata"]["ownerReferences"].append({**SET, "controller": True})
        own = tuple(pod for pod in self.views() if pod.controller_uid == "rs")
        plan = plan_replica_set(ReplicaSetSnapshot(view, {}, own), self.now)
        for _ in range(plan.create):
            self._make_pod()
        for gone in plan.delete:
            self.tell_to_end(gone.name)

    def place(self) -> None:
        """Room is reserved; whoever has no node takes what is reserved for it, or goes anywhere."""
        if self.reservation is not None and self.has_room and self.reservation["status"]["phase"] == "Pending":
            self.reservation["status"] = {"phase": "Available", "nodeName": "reserved"}
        if self.reservation is not None and self.now > self.reserved_at + ROOM_TTL:
            self.reservation["status"] = {**self.reservation["status"], "phase": "Failed"}
        for pod in self.pods.values():
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            room = self.reservation
            if room is None or room["spec"]["unschedulable"] or room["status"]["phase"] != "Available":
                continue
            pod["spec"]["nodeName"] = "reserved"
            pod["metadata"]["annotations"][labels.RESERVATION_ALLOCATED] = "room"
            taken = {"currentOwners": [{"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}]}
            room["status"] = {"phase": "Succeeded", "nodeName": "reserved", **taken}

    def run_nodes(self) -> None:
        for name, pod in list(self.pods.items()):
            if pod["metadata"].get("deletionTimestamp"):
                del self.pods[name]
            elif pod["spec"].get("nodeName") and self.comes_up and not is_ready(self.view(pod)):
                self._get_ready(pod, self.now)

    def collect_garbage(self) -> None:
        self.set_there = self.set_there and self.deployment_there
        known = {"rs": self.set_there, "rs2": self.deployment_there, "deployment": self.deployment_there}
        there = {uid for uid, is_there in known.items() if is_there}
        for pod in list(self.pods.values()):
            owners = [one["uid"] for one in pod["metadata"]["ownerReferences"]]
            if owners and not there.intersection(owners):
                self.tell_to_end(pod["metadata"]["name"])

    def everybody(self) -> list[Callable[[], object]]:
        return [self.sync_set, self.place, self.run_nodes, self.collect_garbage, self.arbitrate]

    def settle(self) -> None:
        """Until nothing changes any more, whatever the time."""
        for _ in range(40):
            self.now += 10
            self.look()
            self.watch()
            for react in self.everybody():
                react()
                self.watch()

    # --- what people do ----------------------------------------------------------------------------------------------------------

    def tell_to_end(self, name: str) -> None:
        self.pods[name]["metadata"].setdefault("deletionTimestamp", _time(self.now))

    def abort(self) -> None:
        if self.job is not None:
            self.job["metadata"]["annotations"][labels.ABORT] = "true"

    def delete_job(self) -> None:
        if self.job is not None:
            self.job["metadata"]["deletionTimestamp"] = _time(self.now)
            self._collect_job()

    def pause(self, paused: bool = True) -> None:
        if self.job is not None:
            self.job["spec"]["paused"] = paused

    def scale(self, replicas: int) -> None:
        self.wanted, self.least = replicas, min(self.least, replicas)

    def delete_deployment(self) -> None:
        self.deployment_there, self.least = False, 0

    def roll_out(self) -> None:
        """To the end: one of the new template is ready, and the old ReplicaSet is to have none."""
        for number in range(self.wanted):
            self._make_pod(f"web-h2-{number}", {"app": "web", HASH: "h2"}, {**SET, "name": "web-h2", "uid": "rs2"})
            self.pods[f"web-h2-{number}"]["spec"]["nodeName"] = "other"
            self._get_ready(self.pods[f"web-h2-{number}"], self.now)
        self.wanted = 0

    def restore_label(self) -> None:
        if self.old is not None:
            self.old["metadata"]["labels"][HASH] = "h1"

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def _make_pod(self, name: str = "", given: Json | None = None, owner: Json | None = None) -> None:
        name = name or f"web-h1-{self.made}"
        self.made += 1
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "labels": dict(given or SELECTED),
                "annotations": {},
                "creationTimestamp": _time(self.now),
                "ownerReferences": [{**(owner or SET), "controller": True}],
            },
            "spec": {},
            "status": {"phase": "Pending"},
        }

    def _get_ready(self, pod: Json, since: float) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": _time(since)}
        pod["status"] = {"phase": "Running", "conditions": [ready]}

"""A job that moves a guest, and what a look at it sees."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels, registry
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob, ReservationView
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.snapshot import JobSnapshot
from tests.unit.rules.jobs.execution.stage import node_of
from tests.unit.rules.machines import Json, instance, instance_view, later
from tests.unit.rules.migrations import migration, view

SOURCE, TARGET = "virt-launcher-web-aaaaaaaa", "virt-launcher-web-aaaaaaaa-feedface"
OWN = "job-job-uid"
OWNER = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "name": "web",
    "uid": "aaaaaaaa-0001",
    "controller": True,
}
RUNTIME = "simulated"
HOST = {labels.RUNTIME: RUNTIME, labels.SCHEDULABLE: "true"}


def guest(phase: str = "Running", *, pod: str = SOURCE, node: str = "node-1", **more: Any) -> Json:
    return instance(phase, launcherPodName=pod, nodeName=node, runtime=RUNTIME, **more)


def launcher(name: str = SOURCE, on: str = "node-1", *, deleted: bool = False, **annotations: str) -> Pod:
    metadata: Json = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": [OWNER], "labels": {"app": "web"}}
    metadata |= {"annotations": annotations, **({"deletionTimestamp": later(0)} if deleted else {})}
    resources = {"requests": {"cpu": "100m"}}
    spec = {"nodeName": on, "containers": [{"name": "compute", "image": "i", "resources": resources}]}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}, Pod)


def job(options: Json | None = None, **status: Any) -> PodMigrationJob:
    """One that runs."""
    spec: Json = {"podRef": {"namespace": "shop", "name": SOURCE}, **({"reservationOptions": options} if options else {})}
    known = {
        "phase": "Running",
        "strategy": "LiveMigration",
        "podUID": f"uid-{SOURCE}",
        "sourceNode": "node-1",
        "controllerRef": {name: OWNER[name] for name in ("apiVersion", "kind", "name", "uid")},
        "startTime": later(0),
        "ttl": "300s",
    }
    metadata = {"name": "move", "uid": "job-uid", "generation": 1, "creationTimestamp": later(-5)}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {**known, **status}}, PodMigrationJob)


def after(before: PodMigrationJob, plan: JobPlan) -> PodMigrationJob:
    """The job as it is once the plan's status is written."""
    assert plan.status is not None
    return msgspec.structs.replace(before, status=msgspec.convert(plan.status, type(before.status)))


def own(phase: str = "", *, handed_over: bool = False, **more: Any) -> Json:
    """The migration that the job made."""
    return known(migration(phase, name=OWN, **more), handed_over, {labels.JOB: "job-uid"})


def others(phase: str = "", *, handed_over: bool = False, name: str = "users", uid: str = "u-1", **more: Any) -> Json:
    return known(migration(phase, name=name, uid=uid, **more), handed_over, {})


def known(document: Json, handed_over: bool, said: Json) -> Json:
    document["metadata"]["labels"] = said
    status = document.get("status", {})
    if status.get("phase") not in (None, "Pending", "Scheduling"):
        status["targetNode"] = "node-2"
    if handed_over:
        status["migrationState"]["handedOverTimestamp"] = later(0)
    return document


def reference(name: str = OWN, uid: str = "") -> Json:
    kind = {"apiVersion": registry.MIGRATION.api_version, "kind": registry.MIGRATION.kind}
    return {**kind, "namespace": "shop", "name": name, **({"uid": uid} if uid else {})}


def looked(of: PodMigrationJob | None = None, *migrations: Json, document: Json | None = None, **more: Any) -> JobSnapshot:
    """The guest runs in the job's pod, unless said otherwise. An empty document: there is no instance."""
    whole = guest() if document is None else document
    node = node_of(more.get("reservation"), {}, **HOST)
    seen: Json = {"pod": launcher(), "reserved_node": node, **more}
    return JobSnapshot(
        job=of or job(),
        config=JobsConfig(),
        instance=instance_view(whole) if whole else None,
        written_instance=whole or None,
        migrations=tuple(view(one) for one in migrations),
        **seen,
    )


def reservation(document: Json, **status: Any) -> ReservationView:
    """As it is stored."""
    metadata = {**document["metadata"], "uid": "r-1", "creationTimestamp": later(0)}
    return msgspec.convert({"metadata": metadata, "spec": document["spec"], "status": status}, ReservationView)


def conditions(plan: JobPlan) -> dict[str, tuple[str, str]]:
    assert plan.status is not None
    return {one["type"]: (one["status"], one["reason"]) for one in plan.status.get("conditions", ())}

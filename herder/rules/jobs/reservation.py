"""The reservation that a job makes for the pod that will take its pod's place (seed 004, ReservationFirst, step 1).

It asks for what the pod asks for, anywhere but where the pod is; it is for pods of the pod's own controller, and closed until the
job is about to evict: a scale-up, or another job's replacement, must not take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from herder.api import registry
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.template_merge import merged_spec
from herder.rules.jobs.workload import STATEFUL_SET, controller_named
from herder.rules.plans import Document

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# Of a pod's spec: what is about this one pod, and not about pods of its kind; and what the API server put there.
_OF_THIS_POD: Final = ("nodeName", "schedulingGates", "ephemeralContainers", "hostname", "subdomain", "serviceAccount")
# The token that every pod is given: a volume of no claim, and nothing that a node has or has not.
_TOKEN: Final = "kube-api-access-"


def reservation_name(job: PodMigrationJob) -> str:
    """By the job's uid alone: made again after a return to Pending, it is the same one."""
    return f"job-{job.uid}"


def reservation_document(job: PodMigrationJob, pod: Pod, written: Document, given: Document | None, ttl: str) -> Document:
    """`written`: the pod as it is stored, with all that views leave out; `given`: the job's reservation template, so too. `ttl`:
    how long the room is held where nobody takes it."""
    template = {"metadata": _metadata(written), "spec": _spec(written)}
    given = given or {}
    merged = merged_spec({"template": template, "owners": owners_of(pod), "ttl": ttl}, given.get("spec"))
    # After all that was given: a job does not put its pod back where it is.
    away = {**merged["template"], "spec": elsewhere(merged["template"]["spec"], pod.spec.node_name)}
    return {
        "apiVersion": f"{registry.RESERVATION.group}/{registry.RESERVATION.version}",
        "kind": registry.RESERVATION.kind,
        "metadata": {
            **_given_metadata(given.get("metadata") or {}),
            "name": reservation_name(job),
            "ownerReferences": [_owner_reference(job)],
        },
        # Whatever was given: one pod takes it, and not before it is opened.
        "spec": {**merged, "template": away, "allocateOnce": True, "unschedulable": True},
    }


def owners_of(pod: Pod) -> list[Document]:
    """A pod that waits for its first place takes the room itself; any other one leaves it to who comes after it. Of a StatefulSet
    that is the one of its name."""
    this = {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name}
    if not pod.spec.node_name:
        return [{"object": {**this, "uid": pod.uid}}]
    if pod.controller is None:
        return []
    owner = controller_named(pod.controller)
    controller = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": pod.namespace,
        "name": owner.name,
        "uid": owner.uid,
    }
    named = {"object": this} if owner.group_kind == STATEFUL_SET else {}
    return [{**named, "controller": controller}]


def elsewhere(spec: Document, node: str) -> Document:
    """On any other node. Terms are OR: each of them gets it."""
    if not node:
        return spec
    other = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    affinity: Document = dict(spec.get("affinity") or {})
    of_nodes: Document = dict(affinity.get("nodeAffinity") or {})
    terms: list[Document] = list((of_nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [])
    # An empty term fits no node, and must not begin to.
    kept = [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]
    wanted = [{**term, "matchFields": [*(term.get("matchFields") or ()), other]} for term in kept]
    if terms and not kept:
        return spec
    required = {"nodeSelectorTerms": wanted or [{"matchFields": [other]}]}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**of_nodes, _REQUIRED: required}}}


def _spec(written: Document) -> Document:
    spec = {name: value for name, value in written["spec"].items() if name not in _OF_THIS_POD}
    volumes = [one for one in spec.get("volumes") or () if not str(one.get("name", "")).startswith(_TOKEN)]
    containers = {
        kind: [_container(one) for one in spec.get(kind) or ()] for kind in ("containers", "initContainers") if spec.get(kind)
    }
    return {**spec, **containers, **({"volumes": volumes} if volumes else {"volumes": []})}


def _container(container: Mapping[str, Any]) -> Document:
    """What decides where it fits; not its secrets, its commands or its environment, which whoever may see reservations need not."""
    kept = ("name", "image", "resources", "ports", "restartPolicy")
    return {name: container[name] for name in kept if name in container}


def _metadata(written: Document) -> Document:
    metadata = written["metadata"]
    labels = metadata.get("labels")
    return {"namespace": metadata["namespace"], **({"labels": labels} if labels else {})}


def _given_metadata(metadata: Document) -> Document:
    return {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}


def _owner_reference(job: PodMigrationJob) -> Document:
    kind = {"apiVersion": f"{registry.JOB.group}/{registry.JOB.version}", "kind": registry.JOB.kind}
    return {**kind, "name": job.name, "uid": job.uid, "controller": True, "blockOwnerDeletion": True}

"""A pod of a StatefulSet, and the claims that it mounts, as they are made."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.core import Pod, StatefulSet
from herder.rules.plans import Document
from herder.rules.workloads.claiming import controller_reference
from herder.rules.workloads.ordinals import claim_name, pod_name
from herder.rules.workloads.retention import Member, owners_for
from herder.rules.workloads.revisions import Revision

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"


def identity(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    return {POD_NAME: pod_name(stateful_set.name, ordinal), POD_INDEX: str(ordinal)}


def revision_name(pod: Pod) -> str:
    return pod.labels.get(REVISION, "")


def pod_document(stateful_set: StatefulSet, templates: Iterable[Document], revision: Revision, ordinal: int) -> Document:
    """`templates`: of its claims."""
    written = revision.template.get("metadata") or {}
    kept = {part: written[part] for part in ("annotations", "finalizers") if written.get(part)}
    labels = {**(written.get("labels") or {}), **identity(stateful_set, ordinal), REVISION: revision.name}
    name = pod_name(stateful_set.name, ordinal)
    spec: Document = {**(revision.template.get("spec") or {}), "hostname": name}
    volumes = _volumes(stateful_set, templates, spec.get("volumes") or (), ordinal)
    return {
        "metadata": {
            "name": name,
            "generateName": f"{stateful_set.name}-",
            "namespace": stateful_set.namespace,
            "labels": labels,
            **kept,
            "ownerReferences": [controller_reference(stateful_set, "apps/v1", "StatefulSet")],
        },
        "spec": {**spec, "subdomain": stateful_set.spec.service_name, **({"volumes": volumes} if volumes else {})},
    }


def _volumes(stateful_set: StatefulSet, templates: Iterable[Document], own: Iterable[Document], ordinal: int) -> list[Document]:
    """A claim comes in place of a volume of its name."""
    names = [template_name(one) for one in templates]
    claims = [{"name": one, "persistentVolumeClaim": {"claimName": claim_name(one, stateful_set.name, ordinal)}} for one in names]
    return [*claims, *(one for one in own if one.get("name") not in names)]


def claim_document(stateful_set: StatefulSet, template: Document, ordinal: int) -> Document:
    written = template.get("metadata") or {}
    kept = {part: written[part] for part in ("annotations", "finalizers") if written.get(part)}
    selector = stateful_set.spec.selector
    labels = {**(written.get("labels") or {}), **((selector.match_labels if selector is not None else None) or {})}
    # A pod that is made stays: its claims are never made to go with it.
    owners = owners_for(stateful_set, Member(pod_name(stateful_set.name, ordinal)))
    return {
        "metadata": {
            "name": claim_name(template_name(template), stateful_set.name, ordinal),
            "namespace": stateful_set.namespace,
            **({"labels": labels} if labels else {}),
            **kept,
            **({"ownerReferences": owners} if owners else {}),
        },
        "spec": template.get("spec") or {},
    }


def template_name(template: Document) -> str:
    return (template.get("metadata") or {}).get("name") or ""

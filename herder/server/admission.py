"""What must hold beyond the object itself before something new is stored: its namespace is there, and open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from herder.api.quantity import parse_quantity
from herder.server import status
from herder.server.defaults import CLASSES, default_class
from herder.server.served import Served
from herder.server.store import Record, Store

if TYPE_CHECKING:
    from herder.server.engine import Engine

# Nodes that are away for a moment keep their pods: they are evicted after so long, unless they say something else.
PATIENCE_WITH_NODES = 300
AWAY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
# Without these nothing else works, so they cannot be deleted.
IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


def admit_create(engine: Engine, served: Served, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
    """What the cluster fills into the spec. It is nobody's field: whoever created the object did not ask for it."""
    metadata = document["metadata"]
    name = metadata.get("name") or metadata.get("generateName", "")
    if served.terminating:
        raise status.ApiError(
            405, "MethodNotAllowed", f"create not allowed while custom resource definition {served.table} is terminating", {}
        )
    if not served.resource.namespaced:
        return {}
    check_namespace_open(engine, served, namespace, name)
    if served.table == "persistentvolumeclaims":
        return _storage_class(engine, document)
    if served.table != "pods":
        return {}
    return {**patience_with_nodes(document), **_priority(engine, served, name, document)}


def _storage_class(engine: Engine, claim: dict[str, Any]) -> dict[str, Any]:
    """A claim that names no class, not even the empty one, gets the default."""
    spec = claim.get("spec")
    if not isinstance(spec, dict) or spec.get("storageClassName") is not None:
        return {}
    found = default_class(engine.store)
    return {"storageClassName": found.name} if found is not None else {}


def check_claim_growth(store: Store, served: Served, new: dict[str, Any], old: dict[str, Any]) -> None:
    """As Kubernetes' PersistentVolumeClaimResize: only claims that are bound may ask for more, and only where their class allows
    it. The words are Kubernetes' own, which tools look for."""
    if served.table != "persistentvolumeclaims" or _storage(new) <= _storage(old):
        return
    name = new["metadata"].get("name", "")
    if (old.get("status") or {}).get("phase") != "Bound":
        raise status.forbidden(served.resource, name, "Only bound persistent volume claims can be expanded")
    chosen, before = (one["spec"].get("storageClassName") or "" for one in (new, old))
    record = store.latest(CLASSES, chosen) if chosen and chosen == before else None
    if record is None or not record.document().get("allowVolumeExpansion"):
        why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
        raise status.forbidden(served.resource, name, why)


def _storage(claim: dict[str, Any]) -> int:
    """What it asks for, in billionths of a byte. It was found to be a quantity before."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return parse_quantity(requests.get("storage", 0)).nanos


def check_namespace_open(engine: Engine, served: Served, namespace: str, name: str) -> None:
    """Nothing comes into a namespace that is not there, or that is going; not even an order to one of its objects."""
    record = engine.store.latest("namespaces", namespace)
    if record is None:
        raise status.not_found(engine.namespaces, namespace)
    if record.terminating:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise status.forbidden(served.resource, name, why, [cause])


def _priority(engine: Engine, served: Served, name: str, pod: dict[str, Any]) -> dict[str, Any]:
    """A pod's number comes from its class; without one from the class that is everyone's default, or it is 0."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return {}
    wanted = spec.get("priorityClassName")
    found = engine.store.latest(PRIORITY_CLASSES, wanted) if wanted else _default_class(engine)
    if wanted and found is None:
        raise status.forbidden(served.resource, name, f"no PriorityClass with name {wanted} was found")
    document = found.document() if found else {}
    value = document.get("value", 0)
    if spec.get("priority", value) != value:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; its class makes it {value}"
        raise status.forbidden(served.resource, name, why)
    given: dict[str, Any] = {"priorityClassName": found.name} if found is not None else {}
    policy = spec.get("preemptionPolicy") or document.get("preemptionPolicy", "PreemptLowerPriority")
    return {**given, "priority": value, "preemptionPolicy": policy}


def patience_with_nodes(pod: dict[str, Any]) -> dict[str, Any]:
    """As Kubernetes' DefaultTolerationSeconds. A spec that is empty is one that is known already, with all that it was given."""
    spec = pod.get("spec")
    said = spec.get("tolerations") or [] if isinstance(spec, dict) else None
    if not spec or not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
        return {}
    added = [_patience(taint) for taint in AWAY_TAINTS if not any(_covers(one, taint) for one in said)]
    return {"tolerations": [*said, *added]} if added else {}


def _patience(taint: str) -> dict[str, Any]:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE_WITH_NODES}


def _covers(toleration: dict[str, Any], taint: str) -> bool:
    return toleration.get("key") in (taint, "", None) and toleration.get("effect") in ("NoExecute", "", None)


def _default_class(engine: Engine) -> Record | None:
    """The lowest of those that call themselves the default, should there be several."""
    defaults = [record for record in engine.store.scan(PRIORITY_CLASSES) if b'"globalDefault":true' in record.raw]
    return min(defaults, key=lambda record: record.document().get("value", 0), default=None)

"""What a node may make of the objects that it is let to: seen here, where the object is known before it is written."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from herder.api.labels import NODE_FINALIZER
from herder.server.access.nodes.authorizer import LEASE_NAMESPACE
from herder.server.access.nodes.identity import node_of
from herder.server.access.nodes.labels import forbidden_labels
from herder.server.access.nodes.simulated import SimulatedNodes, is_fleet
from herder.server.request import User
from herder.server.served import Served
from herder.server.status import forbidden
from herder.server.store import Store

Document = dict[str, Any]
LEASES: Final = "leases.coordination.k8s.io"
MIRROR: Final = "kubernetes.io/config.mirror"
# Of a claim's status, what a node finds out.
CLAIM_STATUS: Final = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")


class _Spec(msgspec.Struct, gc=False):
    nodeName: str = ""


_decode_spec = msgspec.json.Decoder(_Spec).decode


class NodeRestriction:
    def __init__(self, store: Store) -> None:
        self.simulated = SimulatedNodes(store)

    def check_write(self, served: Served, new: Document, old: Document | None, user: User, subresource: str) -> None:
        node = node_of(user)
        if node is not None:
            _refuse(served, new, _unidentified(node, user) or _write(node, served.table, new, old, subresource))
        elif is_fleet(user):
            _refuse(served, new, self._why_not_fleet(served.table, new, old))

    def check_delete(self, served: Served, old: Document, user: User) -> None:
        node = node_of(user)
        if node is not None:
            _refuse(served, old, _unidentified(node, user) or _delete(node, served.table, old))
        elif is_fleet(user):
            _refuse(served, old, self._why_not_fleet(served.table, old, old))

    def _why_not_fleet(self, table: str, new: Document, old: Document | None) -> str:
        if table == "pods":
            return self.simulated.why_not_pod(_place(old) if old is not None else "")
        if table == "nodes":
            return self.simulated.why_not_node(new["metadata"].get("name", ""), new if old is None else None)
        return self.simulated.why_not_node(new["metadata"].get("name", ""), None) if table == LEASES else ""

    def check_eviction(self, served: Served, pod: Document, user: User) -> None:
        node = node_of(user)
        if node is not None and _place(pod) != node:
            _refuse(served, pod, f"node {node} can only evict pods with spec.nodeName set to itself")

    def check_token(self, served: Served, account: str, spec: Document, pod: Document | None, user: User) -> None:
        """A node asks for tokens on behalf of its pods, and for what they mount."""
        node = node_of(user)
        if node is None:
            return
        why = _token_without_pod(spec.get("boundObjectRef") or {}) or _token_of_pod(node, spec, pod, user)
        if why:
            raise forbidden(served.resource, account, why)


def _refuse(served: Served, obj: Document, why: str) -> None:
    if why:
        raise forbidden(served.resource, (obj.get("metadata") or {}).get("name", ""), why)


def _unidentified(node: str, user: User) -> str:
    return "" if node else f'could not determine node from user "{user.name}"'


def _place(pod: Document) -> str:
    """Of one that was not read whole, too: writes of a status leave the spec as bytes."""
    spec = pod.get("spec") or {}
    if isinstance(spec, Raw):
        return _decode_spec(spec).nodeName
    return spec.get("nodeName") or ""


def _whole(obj: Document) -> Document:
    return {field: msgspec.json.decode(part) if isinstance(part, Raw) else part for field, part in obj.items()}


def _write(node: str, table: str, new: Document, old: Document | None, subresource: str) -> str:
    if table == "pods":
        return _pod(node, new, old, subresource)
    new, old = _whole(new), _whole(old) if old is not None else None
    if table == "nodes":
        return _node(node, new, old)
    if table == "persistentvolumeclaims":
        return _claim(node, new, old, subresource)
    return _lease(node, new) if table == LEASES else ""


def _delete(node: str, table: str, old: Document) -> str:
    if table == "pods" and _place(old) != node:
        return f'node "{node}" can only delete pods with spec.nodeName set to itself'
    if table == "nodes" and old["metadata"]["name"] != node:
        return f'node "{node}" is not allowed to modify node "{old["metadata"]["name"]}"'
    if table == "persistentvolumeclaims":
        return "may only update PVC status"
    return _lease(node, old) if table == LEASES else ""


# --- pods ------------------------------------------------------------------------------------------------------------------------


def _pod(node: str, new: Document, old: Document | None, subresource: str) -> str:
    if old is None:
        if MIRROR in (new["metadata"].get("annotations") or {}):
            return f'node "{node}" cannot create mirror pods: this engine knows none'
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if subresource != "status":
        return f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'
    if _place(old) != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if _part(new, "labels") != _part(old, "labels"):
        return f'node "{node}" cannot update labels through pod status'
    before, after = old.get("status") or {}, new.get("status") or {}
    for field, name in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if before.get(field) != after.get(field):
            return f'node "{node}" cannot update {name}'
    return ""


def _part(obj: Document, field: str) -> Any:
    """What is empty is the same as what is not there."""
    return obj["metadata"].get(field) or None


# --- its node and its lease ------------------------------------------------------------------------------------------------------


def _node(node: str, new: Document, old: Document | None) -> str:
    name = new["metadata"].get("name", "")
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    if (new.get("spec") or {}).get("configSource") not in (None, ((old or {}).get("spec") or {}).get("configSource")):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if changed := _others_finalizers(new, old):
        return f'node "{node}" is not allowed to set or remove finalizers other than {NODE_FINALIZER}: {", ".join(changed)}'
    if old is None:
        labels = forbidden_labels(_part(new, "labels"), None)
        return f'node "{node}" is not allowed to set the following labels: {labels}' if labels else ""
    if _taints(new) != _taints(old):
        return f'node "{node}" is not allowed to modify taints'
    if _part(new, "ownerReferences") != _part(old, "ownerReferences"):
        return f'node "{node}" is not allowed to modify ownerReferences'
    labels = forbidden_labels(_part(new, "labels"), _part(old, "labels"))
    return f"is not allowed to modify labels: {labels}" if labels else ""


def _others_finalizers(new: Document, old: Document | None) -> list[str]:
    """Its own keeps the Node until its last guest has ended. Those of others are theirs."""
    before, after = ((set(_part(one, "finalizers") or ()) if one is not None else set()) for one in (old, new))
    return sorted((before ^ after) - {NODE_FINALIZER})


def _taints(node: Document) -> Any:
    return (node.get("spec") or {}).get("taints") or None


def _lease(node: str, lease: Document) -> str:
    if lease["metadata"].get("namespace") != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    if lease["metadata"].get("name") != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


# --- claims ----------------------------------------------------------------------------------------------------------------------


def _claim(node: str, new: Document, old: Document | None, subresource: str) -> str:
    if old is None or subresource != "status":
        return "may only update PVC status"
    if _bare(new) != _bare(old):
        return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'
    return ""


def _bare(claim: Document) -> Document:
    metadata = {key: value for key, value in claim["metadata"].items() if key not in ("resourceVersion", "managedFields") and value}
    status = {key: value for key, value in (claim.get("status") or {}).items() if key not in CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": status}


# --- tokens ----------------------------------------------------------------------------------------------------------------------


def _token_without_pod(reference: Document) -> str:
    if reference.get("apiVersion") != "v1" or reference.get("kind") != "Pod" or not reference.get("name"):
        return "node requested token not bound to a pod"
    return "" if reference.get("uid") else "node requested token with a pod binding without a uid"


def _token_of_pod(node: str, spec: Document, pod: Document | None, user: User) -> str:
    if pod is None or pod["metadata"]["uid"] != spec["boundObjectRef"]["uid"]:
        told = spec["boundObjectRef"]["uid"]
        why = f"the UID in the bound object reference ({told}) does not match the UID in record"
        return f"{why}. The object might have been deleted and then recreated"
    if _place(pod) != node:
        return "node requested token bound to a pod scheduled on a different node"
    audiences = spec.get("audiences") or [""]
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    if audiences[0] not in _audiences(pod):
        why = f"{user.name} is not authorized to request tokens for this audience"
        return f'audience "{audiences[0]}" not found in pod spec volume, {why}'
    return ""


def _audiences(pod: Document) -> set[str]:
    sources = [one for volume in pod["spec"].get("volumes") or () for one in (volume.get("projected") or {}).get("sources") or ()]
    return {one["serviceAccountToken"].get("audience") or "" for one in sources if one.get("serviceAccountToken")}

"""What a node may do before any role is asked: with its own Node, Lease and pods, and with what those pods name."""

from __future__ import annotations

from typing import Any, Final

from herder.api import registry
from herder.server.access.attributes import Attributes
from herder.server.access.nodes.mounts import ACCOUNTS, CLAIMS, CONFIG_MAPS, DATA_VOLUMES, SECRETS
from herder.server.access.nodes.placed import PlacedPods
from herder.server.access.rbac import Decision
from herder.server.access.rules import Grants, read_rules, slots_of

READ: Final = ("get", "list", "watch")
LEASE_NAMESPACE: Final = "kube-node-lease"
YES, NO = Decision(True), Decision(False)


def _rule(verbs: tuple[str, ...], groups: tuple[str, ...], *resources: str) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


# Every node the same.
_RULES: Final = [
    _rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
    _rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews", "localsubjectaccessreviews"),
    _rule(READ, ("",), "services"),
    _rule(("get",), ("",), "endpoints"),
    _rule(("create", "update", "patch"), ("", "events.k8s.io"), "events"),
    _rule(("create", *READ), ("certificates.k8s.io",), "certificatesigningrequests"),
    _rule(READ, ("storage.k8s.io",), "csidrivers"),
    _rule(READ, ("node.k8s.io",), "runtimeclasses"),
]


class NodeAuthorizer:
    def __init__(self, pods: PlacedPods) -> None:
        self._pods = pods
        self._everyone = Grants(read_rules(_RULES))
        self._special = {
            ("", SECRETS): self._reading,
            ("", CONFIG_MAPS): self._reading,
            ("", CLAIMS): self._claim,
            ("", "persistentvolumes"): self._volume,
            (registry.DATA_VOLUME.group, registry.DATA_VOLUME.plural): self._data_volume,
            ("", ACCOUNTS): self._account,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
            ("coordination.k8s.io", "leases"): _lease,
        }

    def decide(self, node: str, what: Attributes) -> Decision:
        if not node:
            return Decision(False, 'unknown node for user "system:node:"')
        if what.path:
            return NO
        special = self._special.get((what.group, what.resource))
        if special is not None:
            return special(node, what)
        slots = slots_of(what.verb, what.group, what.resource, what.subresource)
        return YES if self._everyone.allow(slots, what.name) else NO

    # --- what its pods name ------------------------------------------------------------------------------------------------------

    def _reading(self, node: str, what: Attributes) -> Decision:
        if what.verb not in READ:
            return Decision(False, "can only read resources of this type")
        if what.subresource:
            return Decision(False, "cannot read subresource")
        if not what.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._related(node, what)

    def _claim(self, node: str, what: Attributes) -> Decision:
        if what.subresource == "status":
            allowed = what.verb in ("update", "patch")
            return self._related(node, what) if allowed else Decision(False, "can only get/update/patch this type")
        return _only_get(what) or _found(node, self._pods.names_claim(node, what.namespace, what.name))

    def _data_volume(self, node: str, what: Attributes) -> Decision:
        return _only_get(what) or _found(node, self._pods.names(node, DATA_VOLUMES, what.namespace, what.name))

    def _volume(self, node: str, what: Attributes) -> Decision:
        return _only_get(what) or _found(node, self._pods.names_volume(node, what.name))

    def _account(self, node: str, what: Attributes) -> Decision:
        if what.verb == "get" and not what.subresource:
            return self._reading(node, what)
        if what.verb != "create" or not what.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if what.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._related(node, what)

    def _related(self, node: str, what: Attributes) -> Decision:
        if not what.name:
            return Decision(False, "No Object name found")
        return _found(node, self._pods.names(node, what.resource, what.namespace, what.name))

    # --- its pods ----------------------------------------------------------------------------------------------------------------

    def _pod(self, node: str, what: Attributes) -> Decision:
        """What it may write of them is for the restriction to say, which sees the pod."""
        if (what.subresource, what.verb) in _POD_WRITES:
            return YES
        if what.subresource or what.verb not in READ:
            return NO
        if what.verb != "get" and what.node == node:
            return YES
        if what.verb != "get" and not what.name:
            return Decision(False, "can only list/watch pods with spec.nodeName field selector")
        return _found(node, self._pods.node_of(what.namespace, what.name) == node)


_POD_WRITES: Final = frozenset(
    {("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create")},
)


def _found(node: str, related: bool) -> Decision:
    return YES if related else Decision(False, f"no relationship found between node '{node}' and this object")


def _only_get(what: Attributes) -> Decision | None:
    if what.verb != "get":
        return Decision(False, "can only get individual resources of this type")
    return Decision(False, "cannot get subresource") if what.subresource else None


def _node(node: str, what: Attributes) -> Decision:
    """By the name alone, so that it can look for itself before it is there."""
    if what.verb in ("update", "patch") and what.subresource in ("", "status"):
        return YES
    if what.subresource or what.verb not in ("create", *READ):
        return NO
    if what.verb == "create" or what.name == node:
        return YES
    if not what.name:
        return Decision(False, f"node '{node}' cannot read all nodes, only its own Node object")
    return Decision(False, f"node '{node}' cannot read '{what.name}', only its own Node object")


def _lease(node: str, what: Attributes) -> Decision:
    """The name of one that is created is in its body: the restriction looks there."""
    if what.verb not in ("get", "create", "update", "patch", "delete"):
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if what.namespace != LEASE_NAMESPACE:
        return Decision(False, f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
    if what.verb != "create" and what.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return YES

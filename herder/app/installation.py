"""What `herder install` puts into a cluster, in the order in which it is put there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml

from herder.api import account, core, node_role, roles, simulated_account
from herder.api.crds import PART_OF, PRODUCT, crd_of
from herder.api.registry import KINDS
from herder.api.storage import storage_class
from herder.kube import resources
from herder.kube.resources import Anything, Key
from herder.kube.webhook import Settings as WebhookSettings

# The second holds the settings, as KubeVirt has it.
NAMESPACES: Final = (account.SYSTEM_NAMESPACE, "kubevirt")
Document = dict[str, Any]

_RESOURCES: Final[dict[str, Anything]] = {
    one.kind: one
    for one in (
        resources.NAMESPACES,
        resources.DEFINITIONS,
        resources.SERVICE_ACCOUNTS,
        resources.CLUSTER_ROLES,
        resources.ROLES,
        resources.CLUSTER_ROLE_BINDINGS,
        resources.ROLE_BINDINGS,
        resources.STORAGE_CLASSES,
    )
}


class Piece(msgspec.Struct, frozen=True):
    """One object to be there."""

    document: Document

    @property
    def resource(self) -> Anything:
        return _RESOURCES[self.document["kind"]]

    @property
    def key(self) -> Key:
        metadata = self.document["metadata"]
        return Key(metadata.get("namespace", ""), metadata["name"])

    @property
    def shown(self) -> str:
        """As kubectl names it."""
        kind = self.resource.kind.lower()
        return f"{kind}.{self.resource.group}/{self.key.name}" if self.resource.group else f"{kind}/{self.key.name}"


def _namespaces() -> list[Document]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]


def _definitions() -> list[Document]:
    return [crd_of(info) for info in KINDS]


def _classes() -> list[Document]:
    """Not the default: that is for whoever runs the cluster to decide."""
    return [storage_class(default=False)]


# A part is a function that makes documents; what comes later may need what came before.
PARTS: Final[tuple[Callable[[], list[Document]], ...]] = (
    _namespaces,
    _definitions,
    roles.roles,
    account.documents,
    simulated_account.documents,
    node_role.documents,
    _classes,
)


# The one thing of ours that only a cluster with a network of its own has.
SERVICES: Final = resources.Resource(group="", version="v1", plural="services", kind="Service", namespaced=True, view=core.Object)


def webhook_service(webhook: WebhookSettings) -> Document:
    """By which the API server finds the replicas of the controllers."""
    metadata = {"name": webhook.service, "namespace": webhook.namespace, "labels": {PART_OF: PRODUCT}}
    ports = [{"port": 443, "targetPort": webhook.port, "protocol": "TCP"}]
    spec = {"selector": {"app.kubernetes.io/name": account.ACCOUNT}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def pieces() -> list[Piece]:
    return [Piece(document) for part in PARTS for document in part()]


class _PlainDumper(yaml.SafeDumper):
    """No anchors: people read it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml() -> str:
    """All of it, for those who install with other tools. Too large for client-side apply: `kubectl apply --server-side`."""
    documents = (piece.document for piece in pieces())
    return yaml.dump_all(documents, Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True, explicit_start=True)

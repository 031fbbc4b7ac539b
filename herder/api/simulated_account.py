"""The account of the agents of simulated nodes: one for all of them, since one process is all of them.

A real node has an identity of its own (`system:node:NAME`), which is kept to its node and pods. Simulated nodes come and go by the
thousand, as users apply them: by its roles their account may write every node and the status of every pod, and read nothing that is
secret. The embedded engine keeps it to the nodes that are labelled as simulated, and to their pods.
"""

from __future__ import annotations

from typing import Final

from herder.api.account import READ, Document, account_documents

ACCOUNT: Final = "herder-simulated-nodes"
_NAME: Final = "herder:simulated-nodes"


def _rule(group: str, resources: tuple[str, ...], *verbs: str) -> Document:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


EVERYWHERE: Final[list[Document]] = [
    _rule("", ("nodes",), *READ, "create", "patch"),
    _rule("", ("nodes/status", "pods/status"), "patch"),
    _rule("", ("pods",), *READ, "delete"),
    _rule("events.k8s.io", ("events",), "create", "patch"),
    # Who comes for a log, a console or what is used, and whether they may.
    _rule("authentication.k8s.io", ("tokenreviews",), "create"),
    _rule("authorization.k8s.io", ("subjectaccessreviews",), "create"),
]
LEASE_NAMESPACE: Final = "kube-node-lease"
ON_LEASES: Final[list[Document]] = [_rule("coordination.k8s.io", ("leases",), "get", "create", "patch")]


def documents() -> list[Document]:
    return account_documents(ACCOUNT, _NAME, EVERYWHERE, {LEASE_NAMESPACE: ON_LEASES})

"""What the account of simulated nodes may write: those nodes, their Leases, and the pods that are bound to them, and nobody else's.

One process is all of them, and it runs beside agents of real nodes: its account must not be able to say of a real guest that it
runs, or has ended. Roles cannot tell one node from another; what tells them apart is the label on the Node as it is stored.
"""

from __future__ import annotations

from typing import Any, Final

from herder.api import labels, simulated_account
from herder.api.account import SYSTEM_NAMESPACE
from herder.server.access.accounts import account_name
from herder.server.request import User
from herder.server.store import Store

ACCOUNT: Final = account_name(SYSTEM_NAMESPACE, simulated_account.ACCOUNT)
RUNTIME: Final = "simulated"
Document = dict[str, Any]


def is_fleet(user: User) -> bool:
    return user.name == ACCOUNT


class SimulatedNodes:
    def __init__(self, store: Store) -> None:
        self._store = store
        # Nodes that whoever started the engine wants simulated from now on, whatever an earlier start has made of them.
        self.asked_for: frozenset[str] = frozenset()

    def why_not_node(self, name: str, new: Document | None) -> str:
        """A new one says itself what it is; of one that is there only what is stored counts."""
        record = self._store.get("nodes", name)
        known = record.labels if record is not None else ((new or {}).get("metadata") or {}).get("labels") or {}
        if known.get(labels.RUNTIME) == RUNTIME or name in self.asked_for:
            return ""
        return f"node {name} is not simulated: it has no label {labels.RUNTIME}={RUNTIME}"

    def why_not_pod(self, node: str) -> str:
        """One whose Node is gone is nobody's."""
        if not node:
            return "the pod is bound to no node"
        return self.why_not_node(node, None) if self._store.get("nodes", node) is not None else ""

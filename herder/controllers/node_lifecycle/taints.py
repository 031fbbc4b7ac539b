"""How taints are written: the list has several writers, and is one value to the API."""

from __future__ import annotations

from herder.api.core import Node
from herder.controllers.hands import Hands
from herder.kube.cache import Cache, Stored
from herder.rules.plans import Document


async def put_taints(hands: Hands, nodes: Cache[Node], stored: Stored[Node], taints: list[Document]) -> None:
    """With the version that they were decided on: who wrote one meanwhile keeps it, and this is decided again."""
    await hands.patch(nodes, stored, {"metadata": {"resourceVersion": str(stored.version)}, "spec": {"taints": taints or None}})

"""What is shared by people who may not know of each other: nobody gets so much of it that others get none."""

from __future__ import annotations

from collections import Counter

from herder.server import status
from herder.server.request import User

_ACCOUNT = "system:serviceaccount:"


def share_of(user: User) -> str:
    """Whose share it is. The accounts of a namespace have one together: whoever may make one account may make a thousand."""
    if user.name.startswith(_ACCOUNT):
        return user.name.rpartition(":")[0]
    return user.name


class NodeWaits:
    """Requests that wait for a node or pass on what it says, from when they are sent until they have ended."""

    def __init__(self, per_node: int, in_all: int) -> None:
        self._per_node = per_node
        self._in_all = in_all
        self._nodes: Counter[str] = Counter()
        self._shares: Counter[tuple[str, str]] = Counter()
        self.open = 0

    def enter(self, node: str, user: User) -> Wait:
        """Raises 429. One user has at most half of what there is, so that a node that falls silent is not one user's alone."""
        share = share_of(user)
        for used, most, what in (
            (self._shares[node, share], self._per_node // 2, f"logs and consoles of node {node} are open for {share}"),
            (self._shares["", share], self._in_all // 2, f"logs and consoles are open for {share}"),
            (self._nodes[node], self._per_node, f"logs and consoles of node {node} are open"),
            (self.open, self._in_all, "logs and consoles are open"),
        ):
            if used >= most:
                raise status.too_many_requests(f"{used} {what}, and there may be {most}; end some, or try again later", 1)
        self._count(node, share, 1)
        return Wait(self, node, share)

    def leave(self, node: str, share: str) -> None:
        self._count(node, share, -1)

    def _count(self, node: str, share: str, step: int) -> None:
        self.open += step
        self._nodes[node] += step
        for key in ((node, share), ("", share)):
            self._shares[key] += step
            if not self._shares[key]:
                del self._shares[key]
        if not self._nodes[node]:
            del self._nodes[node]


class Wait:
    """One of them; ending it twice is ending it once."""

    def __init__(self, waits: NodeWaits, node: str, share: str) -> None:
        self._waits: NodeWaits | None = waits
        self._node = node
        self._share = share

    def end(self) -> None:
        if self._waits is not None:
            self._waits.leave(self._node, self._share)
            self._waits = None

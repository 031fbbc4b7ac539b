"""A Node that somebody deletes: what runs there is ended before it may go.

The agent keeps a finalizer on its Node. So "the Node is gone" means that nothing runs there any more: one that is deleted while its
agent lives stays until the agent has ended the last guest.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Generator
from typing import Protocol

import structlog

from herder.api import labels
from herder.api.core import Node, Pod
from herder.api.guest import ENDED
from herder.api.world import timestamp
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.errors import NotFound
from herder.kube.resources import NODES, Key
from herder.nodes.node import Document
from herder.nodes.work import HasMoves, Work

log = structlog.get_logger()
# How long guests may take to shut down when their Node is deleted; then they are switched off.
PATIENCE = 15.0
LOOK_EVERY = 0.2


class Tenants(Protocol):
    """What runs on one node, as far as its heartbeat is concerned."""

    async def end_all(self, *, polite: bool) -> None:
        """Until nothing runs there. Nothing is started any more from here on, until they are admitted again."""
        ...

    def admit(self) -> None:
        """The Node is there: what is bound to it may be started."""
        ...


class NoTenants:
    async def end_all(self, *, polite: bool) -> None:
        pass

    def admit(self) -> None:
        pass


class Ending:
    """Which nodes are being left, and what of their pods was ended because of it."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._closed: set[str] = set()
        self._busy: Counter[str] = Counter()
        # Who waits for the end of a pod's work.
        self._news: dict[str, asyncio.Event] = {}
        # Uids of pods whose work was ended with their node. They must not come to life again.
        self.lost: set[str] = set()

    def told(self, uid: str) -> None:
        """By the runtime: something about the pod's work is another."""
        if news := self._news.get(uid):
            news.set()

    def close(self, node: str) -> None:
        self._closed.add(node)

    def admit(self, node: str) -> bool:
        """Whether it was closed until now."""
        was = node in self._closed
        self._closed.discard(node)
        return was

    def holds(self, node: str, pod: Pod, work: Work | None) -> bool:
        """Whether the pod is to be left as it is: its work is being ended, or may not begin."""
        if node not in self._closed or pod.uid in self.lost:
            return False
        return not pod.being_deleted or (work is not None and work.status(pod.uid) is not None)

    @contextlib.contextmanager
    def working(self, node: str) -> Generator[None]:
        """While something may be started there."""
        self._busy[node] += 1
        try:
            yield
        finally:
            self._busy[node] -= 1
            if not self._busy[node]:
                del self._busy[node]

    async def end(self, node: str, works: list[Work], *, polite: bool) -> None:
        """All at the same time. What was about to be started when the node was closed is ended as well."""
        self.close(node)
        while self._busy[node] or any(work.uids() for work in works):
            tasks = [self._end(node, work, uid, polite=polite) for work in works for uid in work.uids()]
            failed = [one for one in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(one, Exception)]
            for error in failed:
                log.warning("what ran for a pod could not be ended yet", node=node, error=repr(error))
            if failed or self._busy[node]:
                await asyncio.sleep(LOOK_EVERY)

    async def _end(self, node: str, work: Work, uid: str, *, polite: bool) -> None:
        log.warning("the node was deleted: what ran for a pod is ended", node=node, uid=uid)
        if polite:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._shut_down(work, uid)
        await work.remove(uid)
        # Not before it is certain: who hears that it is lost may start it elsewhere.
        self.lost.add(uid)
        self._changed(uid)

    async def _shut_down(self, work: Work, uid: str) -> None:
        if isinstance(work, HasMoves):
            # What was given away waits elsewhere for our word.
            await self._until(uid, lambda: not work.moving(uid).owed)
        status = work.status(uid)
        if status is not None and status.state == "Running":
            # What is ended, waits for its memory or stands still would not hear it.
            await work.shut_down(uid)
            await self._until(uid, lambda: (now := work.status(uid)) is None or now.state in ENDED)

    async def _until(self, uid: str, done: Callable[[], bool]) -> None:
        news = self._news[uid] = asyncio.Event()
        try:
            while not done():
                news.clear()
                await news.wait()
        finally:
            del self._news[uid]


def is_left(node: Node) -> bool:
    """Whether its agent has something to do about it: it is being deleted, or anybody could take it away at once."""
    return node.being_deleted or labels.NODE_FINALIZER not in node.finalizers


async def let_go(client: Client, node: Node) -> None:
    """Only our own finalizer; others may come and go meanwhile."""
    if labels.NODE_FINALIZER not in node.finalizers:
        return
    patch: Document = {"metadata": {"uid": node.uid, "$deleteFromPrimitiveList/finalizers": [labels.NODE_FINALIZER]}}
    with contextlib.suppress(NotFound):
        await client.patch(NODES, Key("", node.name), patch, content_type=STRATEGIC_PATCH)


async def say_not_ready(client: Client, node: Node, now: float) -> None:
    """So that nothing comes any more: a scheduler need not look whether a Node is being deleted."""
    at = timestamp(now)
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "NodeDeleted",
        "message": "the Node is being deleted: its guests are ended before it goes",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
    patch: Document = {"metadata": {"uid": node.uid}, "status": {"conditions": [condition]}}
    with contextlib.suppress(NotFound):
        await client.patch(NODES, Key("", node.name), patch, subresource="status", content_type=STRATEGIC_PATCH)

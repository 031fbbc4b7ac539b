"""The moves of one node's guests, out of it and into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import MigrationOrder, MigrationReport, order_of, report_of
from herder.api.world import World
from herder.kit.tasks import watched
from herder.nodes.moving.incoming import Incoming
from herder.nodes.moving.link import Link
from herder.nodes.moving.means import Means
from herder.nodes.moving.messages import Answer, Gone, Hello, Refusal, Request
from herder.nodes.moving.moving import STAYS, Moving
from herder.nodes.moving.notes import COMING, LEAVING, Coming, Leaving, Notes
from herder.nodes.moving.outgoing import Outgoing
from herder.nodes.runtimes.base import GuestStatus, Order, Refused, Runtime
from herder.rules.convergence import without_post_copy

log = structlog.get_logger()


class Mover:
    def __init__(self, node: str, runtime: Runtime, notes: Notes, link: Link, world: World) -> None:
        self._node = node
        self._changed: Callable[[str], None] = lambda guest: None
        self._means = Means(node, runtime, notes, link, world, lambda guest: self._changed(guest))
        self._outgoing: dict[str, Outgoing] = {}
        self._incoming: dict[str, Incoming] = {}
        # Guests of which it cannot be read whether they may run here.
        self._unreadable: dict[str, GuestStatus] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, changed: Callable[[str], None]) -> None:
        """Finds again what was under way, and goes on with it: nobody else has to be asked for that."""
        self._changed = changed
        notes, runtime = self._means.notes, self._means.runtime
        for guest, why in (await notes.unreadable()).items():
            await self._give_up(guest, why)
        for guest, note in (await notes.leaving()).items():
            if guest in self._unreadable:
                continue
            found = self._outgoing[guest] = Outgoing(guest, note, self._means)
            if note.outcome or runtime.moved(guest) is not None:
                found.start()
        for guest, note in (await notes.coming()).items():
            if guest in self._unreadable:
                continue
            self._incoming[guest] = Incoming(guest, note, self._means)
            self._background(self._incoming[guest].go_on())
        await self._means.link.open(self._answer)

    async def _give_up(self, guest: str, why: str) -> None:
        """Whether it may run here is not known any more, so it does not."""
        log.error("a guest is given up", guest=guest, why=why)
        await self._means.runtime.remove(guest)
        self._unreadable[guest] = GuestStatus("Failed", reasons.GUEST_RECORD_UNREADABLE, f"{why}. Its guest was ended")

    async def close(self) -> None:
        await self._means.link.close()
        for task in tuple(self._tasks):
            task.cancel()
        for one in self._outgoing.values():
            await one.stop()

    def told(self, guest: str) -> None:
        """By the runtime: something about the guest is another."""
        if leaving := self._outgoing.get(guest):
            leaving.woken.set()
        if coming := self._incoming.get(guest):
            coming.woken.set()
            status = self._means.runtime.status(guest)
            if coming.note.granted and status is not None and status.state == "Incoming":
                self._background(coming.go_on())

    def guests(self) -> list[str]:
        """Of whom there is a note."""
        return list(self._outgoing.keys() | self._incoming.keys() | self._unreadable.keys())

    # What pods say.

    async def look(self, pod: Pod) -> None:
        order = order_of(pod)
        await self._look_out(pod, order if order is not None and order.target_pod else None)
        coming = self._incoming.get(pod.uid)
        if coming is not None:
            coming.ordered(paused=pod.annotations.get(labels.PAUSE) == "true")
            if pod.annotations.get(labels.RESUME) == coming.note.migration and not pod.being_deleted:
                await coming.take_over(paused=False)

    async def _look_out(self, pod: Pod, order: MigrationOrder | None) -> None:
        leaving = self._outgoing.get(pod.uid)
        if leaving is not None:
            told = told_of(pod)
            known = told is not None and told.handed_over and told.migration == leaving.note.order.migration
            leaving.ordered(order, being_deleted=pod.being_deleted, known=known)
            if not leaving.over or leaving.note.outcome == "HandedOver":
                return leaving.start()
            if order is None or order.migration == leaving.note.order.migration:
                return await self._clear(pod.uid, leaving) if order is None else None
        if order is not None:
            self._begin(pod, order)
        return None

    def _begin(self, pod: Pod, order: MigrationOrder) -> None:
        note = _known(pod, order)
        if not note.outcome and (pod.being_deleted or self._means.runtime.status(pod.uid) is None):
            return
        self._outgoing[pod.uid] = Outgoing(pod.uid, note, self._means)
        self._outgoing[pod.uid].start()

    async def _clear(self, guest: str, leaving: Outgoing) -> None:
        """The order was taken away, and the guest has stayed."""
        await self._means.notes.remove(guest, LEAVING)
        if self._outgoing.get(guest) is leaving:
            del self._outgoing[guest]

    async def prepare(self, pod: Pod, order: Order) -> None:
        """Instead of a start. Safe to repeat, and repeated after a crash, to learn again where the guest waits."""
        wanted = order_of(pod)
        if wanted is None:
            sentence = f"the pod is to take over a guest, but its annotation {labels.MIGRATION} does not say for which migration"
            raise Refused(reasons.UNSUPPORTED, sentence)
        if why := self._means.link.closed:
            sentence = f"agents of other nodes cannot reach that of node {self._node}: {why}"
            raise Refused(reasons.RUNTIME_NOT_LIVE_MIGRATABLE, sentence)
        coming = self._incoming.get(pod.uid)
        settings = without_post_copy(wanted.settings) if coming is not None and coming.note.no_post_copy else wanted.settings
        runtime = self._means.runtime
        address = await runtime.prepare_incoming(order, wanted.migration, settings)
        if coming is None:
            note = Coming(
                migration=wanted.migration,
                token=self._means.world.uid(),
                source_node=wanted.source_node,
                no_post_copy=self._said_of_here(runtime.no_post_copy(pod.uid)),
            )
            await self._means.notes.write(pod.uid, note)
            coming = self._incoming[pod.uid] = Incoming(pod.uid, note, self._means)
        coming.address = address
        self._changed(pod.uid)

    def _said_of_here(self, sentence: str) -> str:
        return f"node {self._node}: {sentence}" if sentence else ""

    def is_prepared(self, guest: str) -> bool:
        coming = self._incoming.get(guest)
        return coming is not None and (bool(coming.address) or coming.note.granted)

    async def found(self, pod: Pod, *, taken_over: bool) -> bool:
        """Of a guest that was simulated by a process that is gone, what the API server still knows. True where it may not run here:
        it was given away. `taken_over`: its target says so."""
        order, told = order_of(pod), told_of(pod)
        if order is not None and order.target_pod and (taken_over or (told is not None and told.handed_over)):
            note = Leaving(order=order, outcome="HandedOver", answered=taken_over, taken=taken_over)
            await self._means.notes.write(pod.uid, note)
            self._outgoing[pod.uid] = Outgoing(pod.uid, note, self._means)
            self._outgoing[pod.uid].start()
            return True
        if told is not None and told.taken_over:
            note = Coming(migration=told.migration, token="", granted=True)
            await self._means.notes.write(pod.uid, note)
            self._incoming[pod.uid] = Incoming(pod.uid, note, self._means)
        return False

    # What pods are told.

    def shown(self, guest: str, status: GuestStatus | None) -> GuestStatus | None:
        status = self._unreadable.get(guest, status)
        if leaving := self._outgoing.get(guest):
            status = leaving.shown(status)
        if coming := self._incoming.get(guest):
            status = coming.shown(status)
        return status

    def moving(self, guest: str) -> Moving:
        leaving, coming = self._outgoing.get(guest), self._incoming.get(guest)
        if leaving is not None:
            return Moving(leaving.report(), leaving.under_way, leaving.owes, leaving.given_away or leaving.note.held)
        if coming is not None:
            return Moving(coming.report(self._means.runtime.status(guest)))
        return STAYS

    async def paused(self, guest: str, paused: bool) -> None:
        """By its owner."""
        if leaving := self._outgoing.get(guest):
            await leaving.paused(paused)

    async def forget(self, guest: str) -> None:
        """Nothing of the guest is left here."""
        if leaving := self._outgoing.pop(guest, None):
            await leaving.stop()
        self._incoming.pop(guest, None)
        self._unreadable.pop(guest, None)
        await self._means.notes.remove(guest, LEAVING, COMING)

    def removing(self, guest: str) -> asyncio.Lock:
        """Held while a guest is removed: it is not let run in the same moment."""
        coming = self._incoming.get(guest)
        return coming.lock if coming is not None else asyncio.Lock()

    # What other agents say.

    async def _answer(self, request: Request, node: str | None) -> Answer:
        coming = self._incoming.get(request.guest)
        if coming is not None and node is not None and coming.note.source_node not in ("", node):
            sentence = f"node {node} is not the one that this guest comes from"
            return Refusal(reasons.INVALID, sentence)
        if isinstance(request, Hello):
            unknown = Refusal(reasons.TARGET_POD_FAILED, f"no guest waits for its memory on node {self._node}")
            return coming.hello(request) if coming is not None else unknown
        if coming is None:
            return Gone(f"no guest of that name is left on node {self._node}")
        try:
            return await coming.resume(request)
        except Exception as error:
            return coming.failed(error)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        watched(work, "a guest that comes", kept_in=self._tasks, node=self._node)


def told_of(pod: Pod) -> MigrationReport | None:
    report = report_of(pod)
    return report.migration if report is not None else None


def _known(pod: Pod, order: MigrationOrder) -> Leaving:
    """What was told to be over stays over, also where nobody has a note of it any more."""
    told = told_of(pod)
    if told is None or told.migration != order.migration or not (told.failed or told.handed_over):
        return Leaving(order=order)
    if told.handed_over:
        return Leaving(order=order, outcome="HandedOver")
    return Leaving(order=order, outcome="Stayed", failed=told.failed, message=told.message)

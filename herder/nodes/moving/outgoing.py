"""One guest on its way out of this node, from its order to the target's answer.

It does not wait for the API server at any point: what it finds out is told by `changed` and `report`, and whoever can writes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import structlog

from herder.api import reasons
from herder.api.guest import ENDED, MigrationOrder, MigrationReport
from herder.api.kinds.migration_state import MigrationProgress
from herder.kit.tasks import watched
from herder.nodes.failures import Failures, failed_again
from herder.nodes.moving.granting import grant
from herder.nodes.moving.greeting import greet
from herder.nodes.moving.judging import Judge
from herder.nodes.moving.means import Means
from herder.nodes.moving.notes import Leaving
from herder.nodes.moving.progress import told_progress
from herder.nodes.runtimes.base import GuestStatus, Moved, Refused
from herder.rules.convergence import Abort, PauseGuest, StartPostCopy, Verdict, without_post_copy

log = structlog.get_logger()
# How long the last numbers of a copy are waited for, before it is said that nothing is left to be sent.
NUMBERS_WITHIN = 0.5
# How often the copy is judged, and its progress told.
LOOK_EVERY = 1.0
GIVEN_AWAY = ("PostCopy", "Completed")
# Dead without having said goodbye: whether the target has all of it, only the target knows.
DEAD = ("Crashed", "Failed")


class Outgoing:
    def __init__(self, guest: str, note: Leaving, means: Means) -> None:
        self.guest = guest
        self.note = note
        self.over = False
        self.woken = asyncio.Event()
        # Nobody asks any more for what is owed to the target: the order was taken away.
        self.released = False
        self._unwanted = False
        self._known = False
        self._cancelled = note.order.cancelled
        self._means = means
        self._judge = Judge(note.order.settings)
        self._progress: MigrationProgress | None = None
        # When the last numbers of the copy are no longer waited for.
        self._counted_by = 0.0
        self._why_aborted: tuple[str, str] = ("", "")
        # What it met last, and tries again.
        self._failures: Failures | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = watched(self._run(), "a move", guest=self.guest)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def ordered(self, order: MigrationOrder | None, *, being_deleted: bool, known: bool) -> None:
        """As the pod says now. `known`: the API server has heard that the guest was given away."""
        self._known = known
        mine = order is not None and order.migration == self.note.order.migration
        self.released = not mine
        self._unwanted = being_deleted
        if (not mine or being_deleted or (order is not None and order.cancelled)) and not self._cancelled:
            self._cancelled = True
            self.woken.set()
        if self.released:
            self.woken.set()

    # What others see of it.

    @property
    def given_away(self) -> bool:
        return self.note.outcome == "HandedOver"

    @property
    def under_way(self) -> bool:
        return not self.over and not self.note.outcome

    @property
    def owes(self) -> bool:
        """The target waits for a word from us, or for memory. What the API server has heard, others can pass on."""
        return self.given_away and not self.over and not (self._known and self._all_sent)

    @property
    def _all_sent(self) -> bool:
        moved = self._moved()
        return moved is None or moved.state != "PostCopy" or bool(moved.why)

    def shown(self, status: GuestStatus | None) -> GuestStatus | None:
        """The end of a guest here is told when it is known whose end it is: not before the note, and of a dead one not before the
        target has answered."""
        if self.given_away and (self.note.taken or not self.note.dead):
            return msgspec.structs.replace(
                status or GuestStatus("HandedOver"), state="HandedOver", reason="", message=self.note.message
            )
        if status is not None and not self.over and status.state in ("HandedOver", *DEAD):
            return msgspec.structs.replace(status, state="Paused", reason="", message="it is being handed over to another node")
        return status

    @property
    def _counted(self) -> bool:
        """Whether the numbers are the last ones. They come a moment after the end, and nobody asks for them again."""
        moved = self._moved()
        last = moved is None or moved.progress is None or moved.progress.percent == 100
        return last or asyncio.get_running_loop().time() >= self._counted_by

    def report(self) -> MigrationReport:
        failed = self.note.failed
        # While the rest is sent, the numbers are taken once in a while: new ones in each report would call for the next report.
        if self.given_away and (moved := self._moved()) is not None and moved.state != "PostCopy":
            self._progress = told_progress(moved, self._progress, self._means.world.now())
        sent = self._all_sent and self._counted
        return MigrationReport(
            migration=self.note.order.migration,
            progress=self._progress,
            handed_over=self.given_away and not failed,
            completed=self.given_away and not failed and sent and (self.note.taken or not self.note.dead),
            failed=failed,
            message=self.note.message,
            trouble=f"{self._failures.text}; it is tried again" if self._failures is not None else "",
        )

    async def paused(self, paused: bool) -> None:
        """Its owner wishes so; the target has to know, whatever becomes of us."""
        if self.under_way and self.note.paused is not paused:
            await self._keep(paused=paused)

    # What it does.

    async def _run(self) -> None:
        while not self.over:
            try:
                await self._go()
                self.over = True
            except Exception as error:
                # The guest is as it is, and the note says how far we were.
                self._failures = failures = failed_again(self._failures, error, "a move broke off and is taken up again")
                self._tell()
                await asyncio.sleep(failures.wait)
        self._failures = None
        self._tell()

    async def _go(self) -> None:
        if not self.note.outcome:
            await self._leave()
        if self.note.outcome == "HandedOver":
            await self._hand_over()
        else:
            await self._stay()

    async def _leave(self) -> None:
        """Until it is given away, or stays."""
        if self._moved() is None:
            try:
                await self._begin()
            except Refused as refusal:
                await self._stays(refusal.reason, str(refusal))
        while not self.note.outcome:
            await self._look()
            if not self.note.outcome:
                await self.pause_for(LOOK_EVERY)

    async def _begin(self) -> None:
        status = self._status()
        if status is None or status.state in ENDED:
            raise Refused(reasons.SOURCE_STOPPED, "the guest has ended")
        order = self.note.order
        ready = await greet(self._means, self, order)
        await self._keep(token=ready.token, paused=status.state == "Paused", no_post_copy=ready.no_post_copy)
        self.check_wanted()
        settings = without_post_copy(order.settings) if ready.no_post_copy else order.settings
        await self._means.runtime.migrate_out(self.guest, order.migration, ready.address, settings)
        self._failures = None

    async def _look(self) -> None:
        """One look at the copy, and what follows from it."""
        status, moved = self._status(), self._moved()
        if moved is not None and moved.state in GIVEN_AWAY:
            return await self._given_away(dead=False)
        if status is None or status.state in ENDED:
            return await self._ended(status, moved)
        if moved is None:
            return await self._stays(reasons.COPY_FAILED, "nothing is known any more of the copy of its memory")
        if moved.state in ("Failed", "Cancelled"):
            return await self._did_not_leave(moved)
        if self._cancelled:
            return await self._means.runtime.cancel(self.guest)
        return await self._go_on(moved, status)

    async def _ended(self, status: GuestStatus | None, moved: Moved | None) -> None:
        died = status is not None and status.state in DEAD and moved is not None and moved.state == "UnderWay"
        if died and not self._unwanted:
            return await self._given_away(dead=True)
        return await self._stays(reasons.SOURCE_STOPPED, "the guest ended while it was moved")

    async def _did_not_leave(self, moved: Moved) -> None:
        reason, message = self._why_aborted
        if reason:
            return await self._stays(reason, message)
        if moved.state == "Cancelled":
            return await self._stays(reasons.CANCELLED, "it was cancelled; the guest still runs at the source")
        return await self._stays(reasons.COPY_FAILED, f"the memory could not be sent: {moved.why or 'the connection broke'}")

    async def _go_on(self, moved: Moved, status: GuestStatus) -> None:
        now = self._means.world.now()
        self._progress = told_progress(moved, self._progress, now)
        memory = status.started.memory_bytes if status.started is not None else 0
        await self._obey(self._judge.look(moved, memory, now, self.note.no_post_copy))
        self._failures = None
        self._tell()

    async def _obey(self, verdict: Verdict) -> None:
        runtime = self._means.runtime
        if isinstance(verdict, StartPostCopy):
            log.info("the guest goes on at the target", guest=self.guest, why=verdict.message)
            await runtime.start_post_copy(self.guest)
        elif isinstance(verdict, PauseGuest):
            log.info("the guest is paused for its move", guest=self.guest, why=verdict.message)
            # First the note: whoever comes after us has to let it go on, should it stay.
            if not self.note.held:
                await self._keep(held=True)
            await runtime.pause(self.guest)
        elif isinstance(verdict, Abort):
            self._why_aborted = (verdict.reason, verdict.message)
            await runtime.cancel(self.guest)

    async def _given_away(self, *, dead: bool) -> None:
        await self._keep(outcome="HandedOver", dead=dead)
        log.info("a guest is handed over", guest=self.guest, migration=self.note.order.migration, dead=dead)

    async def _stays(self, reason: str, message: str) -> None:
        """Nobody is moved by this order any more: that, too, is noted before it is said."""
        await self._keep(outcome="Stayed", failed=reason, message=message)
        log.info("a guest stays", guest=self.guest, migration=self.note.order.migration, reason=reason, message=message)

    async def _stay(self) -> None:
        if self.note.held and not self.note.paused:
            await self._means.runtime.resume(self.guest)
        if self.note.held:
            await self._keep(held=False)

    async def _hand_over(self) -> None:
        loop = asyncio.get_running_loop()
        self._counted_by = loop.time() + NUMBERS_WITHIN
        loop.call_later(NUMBERS_WITHIN, self._tell)
        self._tell()
        if not self.note.answered:
            await self._keep(**await grant(self._means, self))
        while (moved := self._moved()) is not None and moved.state == "PostCopy" and not moved.why:
            # The guest runs there, and what it has not got yet is here.
            self._progress = told_progress(moved, self._progress, self._means.world.now())
            self._tell()
            await self.pause_for(LOOK_EVERY)
        if moved is not None:
            self._progress = told_progress(moved, self._progress, self._means.world.now())
        if moved is not None and moved.state != "Completed" and moved.why and not self.note.dead:
            await self._keep(message=f"the rest of its memory could not be sent: {moved.why}")

    async def pause_for(self, seconds: float) -> None:
        """Or until something happens."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        self.woken.clear()

    def check_wanted(self) -> None:
        if self._cancelled:
            raise Refused(reasons.CANCELLED, "it was cancelled before anything was sent")

    def _moved(self) -> Moved | None:
        moved = self._means.runtime.moved(self.guest)
        return moved if moved is not None and moved.migration == self.note.order.migration else None

    def _status(self) -> GuestStatus | None:
        return self._means.runtime.status(self.guest)

    async def _keep(self, **changes: Any) -> None:
        note = msgspec.structs.replace(self.note, **changes)
        await self._means.notes.write(self.guest, note)
        self.note = note

    def _tell(self) -> None:
        self._means.changed(self.guest)

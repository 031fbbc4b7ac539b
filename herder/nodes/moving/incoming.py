"""One guest that waits here for its memory. It stands still until it is granted the resume, and the grant is noted first."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import structlog

from herder.api import reasons
from herder.api.guest import ENDED, MigrationReport
from herder.nodes.failures import Failures, failed_again
from herder.nodes.moving.greeting import difference
from herder.nodes.moving.means import Means
from herder.nodes.moving.messages import Answer, Gone, Hello, NotYet, Ready, Refusal, Resume, Resumed
from herder.nodes.moving.notes import Coming
from herder.nodes.runtimes.base import GuestStatus

log = structlog.get_logger()
# A grant may be here a moment before the last of the memory is.
PATIENCE = 1.0


class Incoming:
    def __init__(self, guest: str, note: Coming, means: Means) -> None:
        self.guest = guest
        self.note = note
        # Where the memory is to be sent; empty until it is known (again).
        self.address = ""
        self.woken = asyncio.Event()
        self._wish_paused = False
        # There is a note, so there was a guest.
        self._lost = GuestStatus("Failed", reasons.GUEST_LOST, "it came from another node, and the machine was restarted since")
        self._means = means
        # What was met when it was to go on, and is tried again.
        self._failures: Failures | None = None
        # Told to go on and removed at the same time: one after the other.
        self.lock = asyncio.Lock()

    def ordered(self, *, paused: bool) -> None:
        """As the pod says now."""
        self._wish_paused = paused

    def shown(self, status: GuestStatus | None) -> GuestStatus:
        if status is None:
            return self._lost
        if self._failures is None or status.state != "Incoming":
            return status
        message = f"it cannot be let go on: {self._failures.text}; it is tried again"
        return msgspec.structs.replace(status, reason=reasons.START_FAILED, message=message)

    def failed(self, error: Exception) -> NotYet:
        """What the source said is not done: it says it again."""
        self._failures = failed_again(self._failures, error, "a guest that came cannot be let go on, will be tried again")
        self._means.changed(self.guest)
        return NotYet(self._failures.text)

    def report(self, status: GuestStatus | None) -> MigrationReport:
        shown = self.shown(status)
        return MigrationReport(
            migration=self.note.migration,
            address=self._means.link.address if self.address else "",
            has_memory=status is not None and (status.has_memory or self.note.granted),
            taken_over=self.note.granted and shown.state not in ("Incoming", "Preparing"),
            no_post_copy=self.note.no_post_copy,
        )

    # What the source's agent says.

    def hello(self, hello: Hello) -> Answer:
        status = self._status()
        if status is None or status.state in ENDED:
            return Refusal(reasons.TARGET_POD_FAILED, f"the guest that waited on node {self._means.node} has ended")
        if hello.migration != self.note.migration or self.note.granted or status.has_memory:
            return Refusal(reasons.TARGET_POD_FAILED, "the guest at the target waits for another one")
        if not self.address:
            return Refusal(reasons.TARGET_POD_FAILED, "the guest at the target is not prepared yet")
        if differs := difference(hello.shape, self._means.runtime.shape(self.guest)):
            return Refusal(reasons.SHAPES_DIFFER, f"the guest cannot go on at the target: {differs}")
        return Ready(self.address, self.note.token, self.note.no_post_copy)

    async def resume(self, resume: Resume) -> Answer:
        if resume.migration != self.note.migration:
            return Gone("the guest at the target waits for another one")
        if self.note.granted and resume.token != self.note.token:
            # By the annotation, or by a source that had to begin anew: it runs here.
            return Resumed()
        if resume.token != self.note.token:
            await self._end("it was prepared anew, and what was sent before is gone")
            return Gone("it was prepared anew, and what was sent before is gone")
        await self._wait_for_memory()
        return await self.take_over(paused=resume.paused, now_or_never=resume.now_or_never)

    async def take_over(self, *, paused: bool, now_or_never: bool = False) -> Answer:
        """The source will never run it again. Safe to repeat."""
        async with self.lock:
            status = self._status()
            if not self.note.granted:
                if status is None or status.state in ENDED:
                    return Gone(f"the guest at the target has ended: {status.message if status else 'nothing of it is left'}")
                if not status.has_memory:
                    return await self._without_memory(status, now_or_never)
                await self._keep(granted=True, paused=paused or self._wish_paused)
                log.info("a guest is taken over", guest=self.guest, migration=self.note.migration, paused=self.note.paused)
            answer = await self._let_run()
            self._failures = None
            return answer

    async def go_on(self) -> None:
        """After a crash: what was granted before is done now."""
        async with self.lock:
            if self.note.granted:
                await self._let_run()

    async def _let_run(self) -> Answer:
        runtime = self._means.runtime
        if _waits(self._status()):
            await (runtime.pause(self.guest) if self.note.paused else runtime.resume(self.guest))
            self._means.changed(self.guest)
        return NotYet("the guest at the target does not go on yet") if _waits(self._status()) else Resumed()

    async def _without_memory(self, status: GuestStatus, now_or_never: bool) -> Answer:
        if not now_or_never:
            return NotYet("the memory has not come whole yet")
        await self._end("its source is dead and its memory has not come whole")
        return Gone("the memory has not come whole")

    async def _end(self, why: str) -> None:
        log.warning("a guest that waited for its memory is ended", guest=self.guest, why=why)
        self._lost = GuestStatus("Failed", reasons.TARGET_POD_FAILED, why)
        await self._means.runtime.remove(self.guest)
        self._means.changed(self.guest)

    async def _wait_for_memory(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (status := self._status()) is not None and status.state == "Incoming" and not status.has_memory:
                    await self.woken.wait()
                    self.woken.clear()

    def _status(self) -> GuestStatus | None:
        return self._means.runtime.status(self.guest)

    async def _keep(self, **changes: Any) -> None:
        note = msgspec.structs.replace(self.note, **changes)
        await self._means.notes.write(self.guest, note)
        self.note = note


def _waits(status: GuestStatus | None) -> bool:
    return status is not None and status.state == "Incoming"

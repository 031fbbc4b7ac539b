"""A guest on its way out of this node: QEMU's migration, what it means for the guest, and what must not be forgotten of it.

QEMU lets a guest go on by itself when its migration fails, even in the last moment of a post-copy, when it runs elsewhere
already. It does so only where the guest ran before: so it is paused first by us, and it is ours to let it go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import structlog

from herder.api.kinds.migration_state import MigrationProgress
from herder.nodes.runtimes.base import Moved, MoveState
from herder.nodes.runtimes.qemu import channels
from herder.nodes.runtimes.qemu.guest import LEAVING, Guest
from herder.nodes.runtimes.qemu.progress import capabilities, parameters, progress_of
from herder.nodes.runtimes.qemu.qmp import Gone, QMPError
from herder.nodes.runtimes.qemu.record import MoveRecord

log = structlog.get_logger()
# Only while something moves, QEMU is asked how far it is; and in the moment of a hand-over, more often.
LOOK_EVERY = 0.25
LOOK_CLOSELY_EVERY = 0.002
CANCELLED_WITHIN = 10.0
OVER = ("completed", "failed", "cancelled")
# In post-copy, and for good: nobody recovers it.
BROKEN = "postcopy-paused"
WHY_BROKEN = "the connection broke before all memory was sent"


class Move:
    """Begun here, or found again: what was settled about it is in the guest's record."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._settings = self._record.settings
        self.status = "setup"
        self.progress = MigrationProgress(mode="PreCopy", percent=0)
        self.over = asyncio.Event()
        if self._record.state in ("Completed", "Failed", "Cancelled"):
            self.over.set()

    @property
    def _record(self) -> MoveRecord:
        assert self._guest.record.move is not None, "written down before it begins"
        return self._guest.record.move

    @property
    def moved(self) -> Moved:
        kept = self._record
        progress = kept.progress if self.over.is_set() and kept.progress is not None else self.progress
        return Moved(kept.migration, kept.state, kept.why, progress, kept.began_at)

    @property
    def under_way(self) -> bool:
        return self._record.state == "UnderWay"

    async def begin(self, uri: str) -> None:
        control = self._guest.control
        await control.do("migrate-set-capabilities", capabilities=capabilities(self._settings))
        await control.do("migrate-set-parameters", **parameters(self._settings))
        await control.do("migrate", uri=uri)
        self._guest.background(self._follow())

    async def find_again(self) -> None:
        """After a crash of the agent: QEMU went on without it, and may be done."""
        if self.over.is_set():
            return await self._stay()
        status = (await self._guest.control.do("query-migrate")).get("status", "none")
        stands = (await self._guest.control.do("query-status"))["status"]
        if status == "completed" and stands not in LEAVING:
            status = "none"  # that was how it came here
        if status == "none":
            await channels.forget(self._guest.control)
        if status in ("none", *OVER):
            await self._finish(status, "" if status != "none" else "it never began: the agent ended before")
        else:
            self.heard(status)
            self._guest.background(self._follow())
        return None

    def heard(self, status: str) -> None:
        """From QEMU's event, in the moment in which it happens."""
        if self.over.is_set() or status == self.status:
            return
        self.status = status
        if status.startswith("postcopy") and self.under_way:
            self._guest.background(self._until_given_away())
        elif status == BROKEN:
            self._guest.background(self._finish("failed", WHY_BROKEN))
        elif status in OVER:
            self._guest.background(self._finish(status))

    async def pause(self) -> None:
        """So that nothing changes any more and the copy ends. Written down first: whoever comes after us lets it go on again, where
        it was not its owner who paused it."""
        if not self._record.paused and self._guest.state == "Running":
            self._guest.keep(move=msgspec.structs.replace(self._record, paused=True))
        await self._guest.control.do("stop")

    async def start_post_copy(self) -> None:
        """Before the copy has begun there is nothing to be done yet: whoever wants it asks again."""
        if self.status != "active" or not self._settings.allow_post_copy:
            return
        await self.pause()
        try:
            await self._guest.control.do("migrate-start-postcopy")
        except QMPError as problem:
            log.warning("post-copy was not begun", guest=self._guest.folder.guest, problem=str(problem))
            if self.under_way:
                await self._stay()

    async def cancel(self) -> None:
        """Not once the guest may run at the target: it could not come back."""
        if self.under_way and not self.status.startswith("postcopy"):
            await self._guest.control.do("migrate_cancel")
            # A connection that takes nothing may hold QEMU up for long: whoever wants it asks again.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), CANCELLED_WITHIN)

    def did_not_begin(self, why: str) -> None:
        self._settle("Failed", why)
        self.over.set()

    def died(self, why: str) -> None:
        """QEMU has ended without a word. Had it not given the guest away, only the target knows whether it has all of it: then it
        is neither known to be moved nor to have stayed."""
        if not self.over.is_set():
            self._settle("UnderWay" if self.under_way else "Failed", why)
            self.over.set()

    async def _until_given_away(self) -> None:
        """QEMU says that it is in post-copy before it has sent what the target needs, and may still fail at that. A page that was
        sent afterwards tells that it did not."""
        with contextlib.suppress(Gone):
            while self.under_way and not self.over.is_set():
                answer = await self._ask()
                if answer.get("status") in OVER:
                    return None
                if answer.get("ram", {}).get("postcopy-bytes", 0) or answer.get("status") == BROKEN:
                    return await self._given_away(answer)
                await asyncio.sleep(LOOK_CLOSELY_EVERY)
        return None

    async def _given_away(self, answer: dict[str, Any]) -> None:
        self.progress = progress_of(answer, self.progress, paused=False)
        self._settle("PostCopy")
        if answer.get("status") == BROKEN:
            await self._finish("failed", WHY_BROKEN)

    async def _ask(self) -> dict[str, Any]:
        """Nothing where QEMU is too busy to answer."""
        try:
            return await self._guest.control.do("query-migrate")
        except Gone:
            raise
        except QMPError:
            return {}

    async def _finish(self, status: str, why: str = "") -> None:
        if status == "completed":
            # At once: the guest stands still. The last numbers have time.
            self.over.set()
            self._settle("Completed")
            await self._last_numbers()
            self._settled(durable=False, progress=self.progress)
            self._guest.tell()
        else:
            why = await self._last_numbers() or why or "QEMU gave no reason"
            if self.over.is_set():
                return
            self.over.set()
            self._settle("Cancelled" if status == "cancelled" else "Failed", why)
        if self._guest.ended:
            self._guest.background(self._guest.quit())
        else:
            await self._stay()

    async def _last_numbers(self) -> str:
        """And why it failed, if it did."""
        with contextlib.suppress(QMPError):
            answer = await self._guest.control.do("query-migrate")
            self.progress = progress_of(answer, self.progress, self._record.paused)
            return answer.get("error-desc", "")
        return ""

    async def _stay(self) -> None:
        """It was about to leave, and goes on here as before."""
        with contextlib.suppress(QMPError):
            if self._record.paused:
                await self._guest.control.do("cont")
                self._settled(paused=False)
            await self._guest.look()

    def _settle(self, state: MoveState, why: str = "") -> None:
        """Written down before anybody hears of it: what was given away never runs here again. That need not wait for the disk: with
        the machine QEMU would be gone too, and herder/nodes/moving waits for it before it lets the guest run elsewhere."""
        move = msgspec.structs.replace(self._record, state=state, why=why, progress=self.progress)
        if state in ("PostCopy", "Completed") and not self._guest.ended:
            self._guest.end("HandedOver", "", leave=True, durable=False, move=move)
        else:
            self._guest.settle(move=move)
            self._guest.tell()

    def _settled(self, *, durable: bool = True, **changes: Any) -> None:
        self._guest.settle(durable=durable, move=msgspec.structs.replace(self._record, **changes))

    async def _follow(self) -> None:
        """The numbers; what happens is told by events."""
        with contextlib.suppress(Gone):
            while not self.over.is_set():
                answer = await self._ask()
                self.progress = progress_of(answer, self.progress, self._record.paused)
                if answer.get("status") in (*OVER, BROKEN):
                    self.heard(answer["status"])
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.over.wait(), LOOK_EVERY)

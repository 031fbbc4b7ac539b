"""One guest: its process, its control socket, and what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from herder.api import reasons
from herder.api.guest import ENDED, GuestState
from herder.kit.tasks import watched
from herder.nodes.runtimes.base import GuestStatus
from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.process import Process
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError
from herder.nodes.runtimes.qemu.record import QEMU_LOG, QMP_SOCKET, Folder, Outcome, Record

if TYPE_CHECKING:
    from herder.nodes.runtimes.qemu.moving import Move

log = structlog.get_logger()
QUIT_PATIENCE = 3.0
WRITE_AGAIN_AFTER = 1.0
LAST_WORDS_WITHIN = 1.0
# How QEMU names what the machine does, where it is not over.
STANDING = ("paused", "prelaunch", "suspended", "io-error", "watchdog", "debug", "save-vm", "restore-vm")
NO_ROOM = "the node's storage is full: the guest stands still, and goes on when there is room"
SAVING = "its memory is being saved: it stands still meanwhile"
# Given away, or about to be.
LEAVING = ("finish-migrate", "postmigrate")
_TAIL = 2000


class Guest:
    def __init__(self, folder: Folder, record: Record, changed: Callable[[], None]) -> None:
        self.folder = folder
        self.record = record
        self.state: GuestState = "Incoming" if record.incoming and record.started_at is None else "Preparing"
        self.message = ""
        self.reason = ""
        self.process: Process | None = None
        self.qmp: QMP | None = None
        self.has_memory = not record.incoming or record.started_at is not None
        self.waits_at = ""  # where the source of an incoming guest finds it
        self.no_post_copy = ""  # why it cannot come by post-copy, although that is allowed
        self.move: Move | None = None
        self.leaving = asyncio.Lock()
        self.over = asyncio.Event()
        self.received = asyncio.Event()
        self._changed = changed
        self._removing = False
        self._last_words = ""  # why QEMU says that it ends
        self._tasks: set[asyncio.Task[None]] = set()
        self._writes_later = False
        if record.outcome is not None:
            self._show(record.outcome)

    @property
    def status(self) -> GuestStatus:
        return GuestStatus(
            state=self.state,
            reason=self.reason,
            message=self.message,
            started=self.record.started,
            started_at=self.record.started_at,
            addresses=(self.record.address,) if self.record.address else (),
            not_migratable_because=self.record.not_migratable_because,
            has_memory=self.record.incoming and self.has_memory,
            resumed=self.record.resumed and self.record.started_at is not None,
            not_resumed_because=self.record.not_resumed_because,
        )

    @property
    def stands_for_its_move(self) -> bool:
        return self.record.move is not None and self.record.move.paused

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def control(self) -> QMP:
        if self.qmp is None:
            raise qmp.Gone("QEMU has ended")
        return self.qmp

    def watch(self, process: Process) -> None:
        self.process = process
        if process.ended.is_set():
            self._process_ended()
        else:
            process.on_end(self._process_ended)

    async def find_out_about_moves(self) -> None:
        """A guest that left, or came, while no agent was there to hear of it."""
        with contextlib.suppress(QMPError):
            if self.move is not None:
                await self.move.find_again()
            elif self.record.incoming:
                self.heard((await self.control.do("query-migrate")).get("status", "none"))

    def tell(self) -> None:
        self._changed()

    async def talk(self, connection: Any) -> None:
        """Until QEMU has said what its machine does. Raises `QMPError` where it ends before."""
        talking = self.qmp = QMP(connection, self.event, self.lost)
        try:
            answer = await talking.greet("query-status")
        except TimeoutError:
            # QEMU talks to one at a time: this one would be in the way of the next.
            talking.close()
            raise
        self._stands(answer["status"])

    async def look(self) -> None:
        answer = await self.control.do("query-status")
        self._stands(answer["status"])

    def keep(self, *, durable: bool = True, **changes: Any) -> None:
        """Before it is done. Raises OSError where the disk takes nothing: then nobody knows of it."""
        record = msgspec.structs.replace(self.record, **changes)
        self.folder.write(record, durable=durable)
        self.record = record

    def settle(self, *, durable: bool = True, **changes: Any) -> None:
        """What has happened already, and is so whether or not the disk takes it: it is written once it can be."""
        self.record = msgspec.structs.replace(self.record, **changes)
        try:
            self.folder.write(self.record, durable=durable)
        except OSError as error:
            log.warning("what became of a guest cannot be written down yet", guest=self.folder.guest, error=str(error))
            if not self._writes_later:
                self._writes_later = True
                self.background(self._write_later())

    async def _write_later(self) -> None:
        written = False
        while not written and not self._removing:
            await asyncio.sleep(WRITE_AGAIN_AFTER)
            with contextlib.suppress(OSError):
                self.folder.write(self.record)
                written = True
        self._writes_later = False

    def become(self, state: GuestState, message: str = "", reason: str = "") -> None:
        if self.ended or (state, message, reason) == (self.state, self.message, self.reason):
            return
        self.state, self.message, self.reason = state, message, reason
        self._changed()

    def shows_that_it_is_saved(self) -> None:
        self.become("Paused", SAVING, reasons.SAVING_MEMORY)

    @property
    def waits_for_room(self) -> bool:
        """It stands still because there is none, and not because anybody wants it to."""
        return self.state == "Paused" and self.reason == reasons.INSUFFICIENT_STORAGE

    def end(self, state: GuestState, reason: str, message: str = "", *, leave: bool = False, **changes: Any) -> None:
        """For good, and written down before anybody hears of it. `leave`: QEMU still has work. `changes`: to the record."""
        if self.ended or self._removing:
            return
        outcome = Outcome(state, reason, message)
        self.settle(outcome=outcome, **changes)
        self._show(outcome)
        self._changed()
        if not leave:
            self.background(self.quit())

    def _show(self, outcome: Outcome) -> None:
        self.state, self.reason, self.message = outcome.state, outcome.reason, outcome.message
        self.over.set()

    def event(self, name: str, data: dict[str, Any]) -> None:
        """What QEMU tells of itself."""
        if name == "RESUME":
            self.become("Running")
        elif name == "STOP":
            self.background(self._stopped())
        elif name == "SHUTDOWN":
            self._last_words = data.get("reason", "")
            if data.get("guest"):
                self.end("ShutDown", reasons.GUEST_SHUT_DOWN)
        elif name == "GUEST_PANICKED":
            self.end("Crashed", reasons.GUEST_CRASHED, "the guest's kernel panicked")
        elif name == "WATCHDOG" and data.get("action") == "poweroff":
            self._last_words = "watchdog"
        elif name == "MIGRATION":
            self.heard(data.get("status", ""))

    def heard(self, status: str) -> None:
        """Of a migration, in or out."""
        if self.move is not None:
            self.move.heard(status)
        elif status in ("completed", "postcopy-active"):
            self.arrived()
        elif status == "postcopy-paused":
            self.end("Crashed", reasons.GUEST_CRASHED, "the connection to its source broke before all its memory was here")

    def arrived(self) -> None:
        """Its memory is here (in post-copy: is coming): from now on it may be resumed."""
        if not self.has_memory:
            self.has_memory = True
            self.received.set()
            self._changed()

    async def _stopped(self) -> None:
        """Paused by somebody, or for a reason that only the status tells."""
        with contextlib.suppress(QMPError):
            await self.look()

    def _stands(self, word: str) -> None:
        leaving = self.move is not None and self.move.under_way
        if word == "running" and self.record.no_room:
            self.settle(no_room=False)  # it went on, and nobody was left to write that down
        if word == "running" or (leaving and word in LEAVING) or (leaving and self.stands_for_its_move and word in STANDING):
            self.become("Running")
        elif word == "inmigrate" or (self.state == "Incoming" and word in STANDING):
            self.become("Incoming")
        elif self.record.saving is not None and word in (*STANDING, *LEAVING):
            self.shows_that_it_is_saved()
        elif word in STANDING:
            # Of all that can happen to a disk only its end stops the guest (`werror` in command.py).
            waits = word == "io-error" or self.record.no_room
            self.become("Paused", *(NO_ROOM, reasons.INSUFFICIENT_STORAGE) if waits else ())
        elif word == "shutdown":
            self.end("ShutDown", reasons.GUEST_SHUT_DOWN)
        elif word in ("guest-panicked", "internal-error"):
            self.end("Crashed", reasons.GUEST_CRASHED, "the guest's kernel panicked" if word == "guest-panicked" else "KVM gave up")
        elif word == "postmigrate":
            self.end("HandedOver", "", leave=True)

    def lost(self) -> None:
        """Nobody answers: QEMU has ended, which its process tells, or has dropped us, and then we come again."""
        self.background(self._come_again())

    async def _come_again(self) -> None:
        while self.process is not None and not await self.process.wait(1.0):
            with contextlib.suppress(OSError, QMPError, TimeoutError):
                await self.talk(qmp.connect(self.folder / QMP_SOCKET))
                await self.find_out_about_moves()
                return

    def _process_ended(self) -> None:
        code = self.process.exit_code if self.process is not None else None
        if self.qmp is not None:
            self.qmp.close()
        if self.move is not None:
            self.move.died("QEMU has ended")
        self.process = self.qmp = None
        self.received.set()
        state, reason, message = self.how_it_ended(code)
        self.end(state, reason, message)
        self.over.set()

    def how_it_ended(self, code: int | None) -> tuple[GuestState, str, str]:
        if self.state == "Incoming" and not self.has_memory:
            return "Failed", reasons.TARGET_POD_FAILED, f"the memory did not arrive: {self.last_line() or 'QEMU has ended'}"
        if self._last_words == "watchdog":
            return "Crashed", reasons.GUEST_CRASHED, "its watchdog switched it off"
        if self._last_words.startswith("host-"):
            return "Failed", reasons.SWITCHED_OFF, "somebody on the node told QEMU to end"
        if code is not None and code < 0:
            return "Crashed", reasons.GUEST_CRASHED, f"QEMU was killed by signal {-code}"
        why = self.last_line()
        with_code = f" with exit code {code}" if code is not None else ""
        return "Crashed", reasons.GUEST_CRASHED, f"QEMU ended{with_code}{': ' + why if why else ''}"

    def last_line(self) -> str:
        """Of what QEMU itself complained about."""
        with contextlib.suppress(OSError), (self.folder / QEMU_LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = [line for line in file.read().decode(errors="replace").splitlines() if "warning:" not in line]
            return lines[-1].removeprefix("qemu-system-x86_64: ").strip() if lines else ""
        return ""

    async def why_it_ended(self) -> str:
        """Where QEMU has stopped answering because it ended: its socket tells a moment before its process does."""
        if self.qmp is None or self.qmp.closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), LAST_WORDS_WITHIN)
        return self.message if self.ended else ""

    async def quit(self) -> None:
        """The process is gone afterwards: asked first, so that disks are closed, then killed."""
        process = self.process
        if process is None:
            return
        with contextlib.suppress(QMPError, TimeoutError):
            async with asyncio.timeout(QUIT_PATIENCE):
                await self.control.do("quit")
        if not await process.wait(QUIT_PATIENCE):
            process.kill()
            await process.wait(QUIT_PATIENCE)

    async def remove(self) -> None:
        self._removing = True
        await self.quit()
        self.leave()
        self.over.set()
        await asyncio.to_thread(self.clear)

    def clear(self) -> None:
        """Its files, once nothing of it runs."""
        self.folder.remove()

    def leave(self) -> None:
        """The agent goes; QEMU stays."""
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if self.qmp is not None:
            self.qmp.close()
            self.qmp = None
        if self.process is not None:
            self.process.leave()
            self.process = None

    def background(self, work: Any) -> None:
        watched(work, "looking after a guest", kept_in=self._tasks, failed=self._neglected, guest=self.folder.guest)

    def _neglected(self, error: BaseException) -> None:
        """It runs on, and whoever looks at it shall see that its agent does not know all about it."""
        self.become(self.state, f"its agent failed to look after it: {error}")

"""A guest of which nobody can say any more what it is: its QEMU is ended, that is told, and what could not be read is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from herder.api import reasons
from herder.api.guest import GuestDefinition, GuestState, Owner, Started
from herder.api.kinds.domain import Domain
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.nodes.runtimes.base import GuestStatus
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.process import Process
from herder.nodes.runtimes.qemu.record import Folder, Record

log = structlog.get_logger()
PATIENCE = 10.0
_NOBODY = GuestDefinition(instance=Owner(namespace="", name="", uid=""), spec=VirtualMachineInstanceSpec(domain=Domain()))


class UnreadableGuest(Guest):
    def __init__(self, folder: Folder, why: str, changed: Callable[[], None]) -> None:
        super().__init__(folder, Record(definition=_NOBODY, started=Started()), changed)
        self._why = why

    @property
    def status(self) -> GuestStatus:
        return msgspec.structs.replace(super().status, started=None)

    def keep(self, *, durable: bool = True, **changes: Any) -> None:
        """In memory only: nothing is written over what could not be read."""
        self.record = msgspec.structs.replace(self.record, **changes)

    settle = keep

    def how_it_ended(self, code: int | None) -> tuple[GuestState, str, str]:
        return "Failed", reasons.GUEST_RECORD_UNREADABLE, f"{self._why}. Its QEMU was ended, so that it does not run twice"

    def clear(self) -> None:
        self.folder.set_aside()

    async def give_up(self, running: Process | None) -> None:
        """Until its process is gone. One that does not go counts as running for as long, so nobody starts it a second time."""
        log.error("a guest is given up", guest=self.folder.guest, why=self._why, pid=running.pid if running else None)
        if running is None:
            self.end("Failed", reasons.GUEST_RECORD_UNREADABLE, f"{self._why}. No QEMU runs for it")
            return
        self.watch(running)
        running.kill()
        if not await running.wait(PATIENCE):
            self.become("Running", f"{self._why}. Its QEMU was told to end, and has not yet")

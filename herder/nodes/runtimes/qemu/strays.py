"""Guests whose agent is gone and does not come back: switched off, and written down as that."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.nodes.runtimes.qemu import process
from herder.nodes.runtimes.qemu.record import Folder, Outcome

PATIENCE = 10.0


def end_strays(guests: Iterable[Path]) -> int:
    """How many there were. Only while nobody else keeps these folders."""
    folders = [Folder(path) for path in guests]
    nameless = process.find_by_folder(folder.path for folder in folders if folder.process() is None)
    return sum(_end(folder, nameless.get(folder.path)) for folder in folders)


def _end(folder: Folder, by_folder: int | None) -> bool:
    known = folder.process()
    pid = known.pid if known is not None and process.same(known) else by_folder
    if pid is None:
        return False
    record = folder.record()
    if record is not None and record.outcome is None:
        switched_off = Outcome("Failed", reasons.SWITCHED_OFF, "it ran on without an agent, and was switched off")
        folder.write(msgspec.structs.replace(record, outcome=switched_off))
    with contextlib.suppress(ProcessLookupError):
        _kill(pid)
    return True


def _kill(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], PATIENCE)
    finally:
        os.close(descriptor)

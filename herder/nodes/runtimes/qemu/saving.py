"""Memory in a file: what the guest was started as, then QEMU's own stream."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from herder.api import reasons
from herder.api.guest import Started
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu.files import sync_folder
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.progress import UNLIMITED, capabilities
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError

HEAD = 16384
# A file does not answer.
EVENTS_ONLY = [{**one, "state": one["capability"] == "events"} for one in capabilities(PolicySettings())]


async def save(guest: Guest, path: Path) -> None:
    """Whole or not at all; the guest stands still from here on, also where it fails."""
    scratch = path.with_name(f".{path.name}.new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        await guest.control.do("stop")
        head = msgspec.json.encode(guest.record.started).ljust(HEAD)
        os.pwrite(descriptor, head, 0)
        guest.keep(saved=True)
        await _stream(guest.control, descriptor)
        await asyncio.to_thread(os.fsync, descriptor)
        os.replace(scratch, path)
        sync_folder(path.parent)
    except QMPError as error:
        raise Refused(reasons.CANNOT_SAVE_MEMORY, f"its memory could not be saved: {error}") from None
    finally:
        os.close(descriptor)
        scratch.unlink(missing_ok=True)


async def _stream(control: QMP, descriptor: int) -> None:
    given = await control.do("add-fd", descriptor=descriptor)
    number = given["fdset-id"]
    try:
        await control.do("migrate-set-capabilities", capabilities=EVENTS_ONLY)
        await control.do("migrate-set-parameters", max_bandwidth=UNLIMITED)
        await control.do("migrate", uri=f"file:/dev/fdset/{number},offset={HEAD:#x}")
        await _until_written(control)
    finally:
        await control.do("remove-fd", fdset_id=number)


async def _until_written(control: QMP) -> None:
    """It takes as long as the disk does. The guest stands still, so there is nothing else that could be told of it."""
    while (answer := await control.do("query-migrate")).get("status") != "completed":
        if answer.get("status") in ("failed", "cancelled"):
            raise QMPError(answer.get("error-desc", "QEMU gave no reason"))
        await asyncio.sleep(0.02)


def started_of(path: Path) -> Started:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(HEAD), type=Started)
    except (OSError, msgspec.MsgspecError) as error:
        raise Refused(reasons.CANNOT_SAVE_MEMORY, f"{path.name} holds no saved memory: {error}") from None


async def load(guest: Guest, descriptor: int) -> None:
    """Until all of it is there."""
    try:
        await guest.control.do("migrate-set-capabilities", capabilities=EVENTS_ONLY)
        await guest.control.do("migrate-incoming", uri=f"file:/dev/fdset/{descriptor},offset={HEAD:#x}")
    except QMPError as error:
        raise Refused(reasons.CANNOT_SAVE_MEMORY, f"the saved memory cannot be read: {error}") from None
    await guest.received.wait()
    if not guest.has_memory:
        raise Refused(reasons.CANNOT_SAVE_MEMORY, f"the saved memory does not fit: {guest.message}")

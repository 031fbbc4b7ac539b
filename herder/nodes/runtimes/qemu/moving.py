"""A guest on its way out of this node: QEMU's migration, its settings and its progress."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import structlog

from herder.api import reasons
from herder.api.defaults import MAX_DOWNTIME_MS
from herder.api.kinds.migration_state import MigrationMode, MigrationProgress, PolicySettings
from herder.api.quantity import parse_quantity
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import qmp
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError

log = structlog.get_logger()
# Only while something moves, QEMU is asked how far it is.
LOOK_EVERY = 0.25
UNLIMITED = 1 << 40  # bytes a second
UNIX = "unix:"
TCP = "tcp:"
OVER = ("completed", "failed", "cancelled")


class Move:
    def __init__(self, guest: Guest, settings: PolicySettings) -> None:
        self._guest = guest
        self._settings = settings
        self.status = "setup"
        self.progress = MigrationProgress(mode="PreCopy", percent=0)
        self.paused = False
        self.failed = ""
        self.over = asyncio.Event()

    @property
    def under_way(self) -> bool:
        return not self.over.is_set()

    @property
    def in_post_copy(self) -> bool:
        return self.status.startswith("postcopy")

    async def begin(self, uri: str) -> None:
        control = self._guest.control
        await set_capabilities(control, self._settings, events=True)
        await control.do("migrate-set-parameters", **parameters(self._settings))
        await control.do("migrate", uri=uri)
        self._guest.background(self._follow())

    def heard(self, status: str) -> None:
        """From QEMU's event, in the moment in which it happens."""
        if not self.under_way:
            return
        self.status = status
        if status == "postcopy-active":
            self._guest.end("HandedOver", "", leave=True)
        elif status in OVER:
            self._guest.background(self._finish(status))

    async def _finish(self, status: str) -> None:
        with contextlib.suppress(QMPError):
            answer = await self._guest.control.do("query-migrate")
            self.progress = progress_of(answer, self.progress, self.paused)
            self.failed = answer.get("error-desc", "") if status == "failed" else ""
        self.over.set()
        if status == "completed":
            self._guest.end("HandedOver", "")
            self._guest.background(self._guest.quit())
        else:
            self._guest.message = f"it was not moved: {self.failed or status}"
            await self._guest.went_on()

    async def _follow(self) -> None:
        """The numbers; what happens is told by events."""
        with contextlib.suppress(QMPError):
            while self.under_way:
                self.progress = progress_of(await self._guest.control.do("query-migrate"), self.progress, self.paused)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.over.wait(), LOOK_EVERY)

    def broken_off(self, why: str) -> None:
        self.failed = self.failed or why
        self.over.set()

    async def cancel(self) -> None:
        """Not once the guest may run at the target: it could not come back."""
        if self.under_way and not self.in_post_copy:
            await self._guest.control.do("migrate_cancel")
            await self.over.wait()


async def set_capabilities(control: QMP, settings: PolicySettings, *, events: bool) -> None:
    wanted = {
        "events": events,
        "auto-converge": bool(settings.allow_auto_converge),
        "postcopy-ram": bool(settings.allow_post_copy),
    }
    await control.do("migrate-set-capabilities", capabilities=[{"capability": name, "state": on} for name, on in wanted.items()])


def parameters(settings: PolicySettings) -> dict[str, Any]:
    """A downtime of 0 would mean to QEMU that any is good."""
    limit = parse_quantity(settings.bandwidth_per_migration).value() if settings.bandwidth_per_migration else 0
    return {
        "max_bandwidth": limit or UNLIMITED,
        "max_postcopy_bandwidth": limit,
        "downtime_limit": max(1, settings.max_downtime_ms if settings.max_downtime_ms is not None else MAX_DOWNTIME_MS),
    }


def progress_of(answer: dict[str, Any], before: MigrationProgress, paused: bool) -> MigrationProgress:
    """QEMU's numbers in our words. The share that is done never runs backwards."""
    ram: dict[str, Any] = answer.get("ram", {})
    if not ram:
        return before
    total, remaining = int(ram["total"]), int(ram["remaining"])
    completed = answer.get("status") == "completed"
    done = 100 if completed else min(99, 100 - 100 * remaining // total if total else 0)
    speed = int(ram.get("mbps", 0) * 1e6 / 8)
    dirty = int(ram.get("dirty-pages-rate", 0)) * int(ram.get("page-size", 4096))
    mode: MigrationMode = "PostCopy" if str(answer.get("status", "")).startswith("postcopy") else "Paused" if paused else "PreCopy"
    return MigrationProgress(
        mode=before.mode if completed else mode,
        total_bytes=total,
        transferred_bytes=int(ram["transferred"]),
        remaining_bytes=remaining,
        dirty_bytes_per_second=dirty,
        bytes_per_second=speed,
        iteration=int(ram.get("dirty-sync-count", 0)) or None,
        throttle_percent=int(answer.get("cpu-throttle-percentage", 0)),
        percent=max(done, before.percent or 0),
        estimated_seconds_left=remaining // (speed - dirty) if speed > dirty else None,
        downtime_ms=answer.get("downtime", answer.get("expected-downtime")),
    )


async def connect(address: str) -> socket.socket:
    """To the target, by us: QEMU gets the open connection, and needs no right to open any."""
    try:
        if address.startswith(UNIX):
            return await asyncio.to_thread(qmp.connect, Path(address.removeprefix(UNIX)))
        host, _, port = address.removeprefix(TCP).rpartition(":")
        connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (host.strip("[]"), int(port)))
        connection.setblocking(True)
        return connection
    except (OSError, ValueError) as error:
        raise Refused(reasons.TARGET_POD_FAILED, f"nobody waits for a guest at {address}: {error}") from None


async def hand_connection(control: QMP, connection: socket.socket) -> str:
    with connection:
        await control.do("getfd", descriptor=connection.fileno(), fdname="migration")
    return "fd:migration"


async def listen(guest: Guest, path: Path, settings: PolicySettings) -> None:
    """The target waits at a socket that the agent made and QEMU inherits: by then the one or other may connect."""
    listener = qmp.listen(path)
    guest.background(_accept(guest, listener, settings))
    await set_capabilities(guest.control, settings, events=True)


async def _accept(guest: Guest, listener: socket.socket, settings: PolicySettings) -> None:
    """One source, once."""
    listener.setblocking(False)
    with listener:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
    connection.setblocking(True)
    with contextlib.suppress(QMPError):
        await guest.control.do("migrate-incoming", uri=await hand_connection(guest.control, connection))

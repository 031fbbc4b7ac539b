"""What is kept on disk of each guest, so that whoever comes after a crash knows what ran here, and what became of it.

In the guest's folder: `guest.json` is written durably before its QEMU is started, and again when something happened that must never
be forgotten. `process.json` says which process it is; a machine that was restarted makes it worthless, so it need not be durable.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TypeVar

import msgspec

from herder.api.guest import GuestDefinition, GuestState, Started
from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from herder.nodes.runtimes.base import MoveState
from herder.nodes.runtimes.qemu.files import sync_folder, write_whole

GUEST = "guest.json"
PROCESS = "process.json"
QMP_SOCKET = "qmp.socket"
AGENT_SOCKET = "guest-agent.socket"
MIGRATION_SOCKET = "migration.socket"
CONSOLE_LOG = "console.log"
CONSOLE_INPUT = "console.input"
QEMU_LOG = "qemu.log"
# Beside the folder of all guests: what could not be read of one that is gone.
UNREADABLE = "unreadable"
T = TypeVar("T")


class Outcome(msgspec.Struct, frozen=True):
    state: GuestState
    reason: str = ""
    message: str = ""


class MoveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last move out of here; durable before QEMU hears of it, and before anybody is told how it went."""

    migration: str
    began_at: float
    settings: PolicySettings
    state: MoveState = "UnderWay"
    why: str = ""
    # The guest stands still for the move's sake alone: it goes on where it is not moved after all.
    paused: bool = False
    progress: MigrationProgress | None = None


class SavingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Durable before the guest is stopped: whoever finds it knows why it stands still, and whether it is to go on."""

    path: str
    ran: bool


class ReadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that it goes on from, until nobody holds that any more: it is as large as the guest."""

    path: str
    descriptor: int  # number of it in QEMU, and of the set that it is in


class Record(msgspec.Struct, frozen=True, kw_only=True):
    definition: GuestDefinition
    started: Started
    address: str = ""
    # Of the guest's port to the one at `address`.
    ports: dict[int, int] = msgspec.field(default_factory=dict)
    started_at: float | None = None
    not_migratable_because: str = ""
    # It came from elsewhere; taken over once `started_at` says since when.
    incoming: bool = False
    # What another side must have alike.
    shape: dict[str, str] = msgspec.field(default_factory=dict)
    move: MoveRecord | None = None
    # It stands still because its memory is being saved.
    saving: SavingRecord | None = None
    # It went on from saved memory; or why it booted although it was to.
    resumed: bool = False
    not_resumed_because: str = ""
    reads: ReadRecord | None = None
    # Of its volumes: where its disks are, and digests of what small disks were made of.
    disks: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, str] = msgspec.field(default_factory=dict)
    # It took room that was not there, and stands still until there is some.
    no_room: bool = False
    outcome: Outcome | None = None


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A process, and not another one that has its number later."""

    pid: int
    start_time: int
    boot_id: str


class Folder:
    """One guest's own folder: nobody but the agent may look into it. QEMU gets what it needs as open files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.guest = path.name

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def make(self) -> None:
        """An old one of that name is what is left of a start that never happened."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, record: Record, *, durable: bool = True) -> None:
        """Not durable: it survives the agent, and not the machine."""
        new = not (self / GUEST).exists()
        write_whole(self / GUEST, msgspec.json.encode(record), durable=durable)
        if new and durable:
            sync_folder(self.path.parent)

    def write_process(self, process: ProcessRecord) -> None:
        write_whole(self / PROCESS, msgspec.json.encode(process), durable=False)

    def record(self) -> Record | None:
        return _read(self / GUEST, Record)

    def why_unreadable(self) -> str:
        """Of its record; empty where it can be read, and where there is none."""
        try:
            msgspec.json.decode((self / GUEST).read_bytes(), type=Record)
        except FileNotFoundError:
            return ""
        except (OSError, msgspec.MsgspecError) as error:
            return f"{GUEST}, which says what this guest is, cannot be read: {error}"
        return ""

    def set_aside(self) -> None:
        """Removed, but for what somebody may want to look into."""
        kept = self.path.parent.parent / UNREADABLE / self.guest
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (GUEST, PROCESS, QEMU_LOG):
            with contextlib.suppress(OSError):
                os.rename(self / name, kept / name)
        self.remove()

    def process(self) -> ProcessRecord | None:
        return _read(self / PROCESS, ProcessRecord)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None

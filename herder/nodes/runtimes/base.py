"""What an agent may ask of a runtime. Two implementations shape it: real QEMU machines, and a model of them.

A guest is known by the uid of its launcher pod. Every order is safe to repeat: starting what runs, ending what has ended, removing
what is gone does nothing. A runtime keeps what it must know on disk (or, simulated, in the process), so that guests outlive a crash
of their agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from herder.api.guest import GuestDefinition, GuestState, SavedGuest, Started
from herder.api.imports import ImportReport
from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from herder.api.kinds.probes import Probe


class Refused(Exception):
    """This cannot be run here, and trying again will not help. `reason` is one word of `herder.api.reasons`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Busy(Exception):
    """It cannot be done now, because of what the guest does, and may be soon."""


class Unfit(Exception):
    """Memory that was saved cannot be gone on from, and why. The guest can be booted from its disks."""


class HostCPU(msgspec.Struct, frozen=True):
    """The node's processor as guests can have it: the sources of the node's CPU labels."""

    model: str  # what host-model becomes here
    vendor: str
    required_features: tuple[str, ...]  # what host-model asks for beyond the model
    features: tuple[str, ...]  # all that are usable here
    models: tuple[str, ...]  # named models that can be used here


class Host(msgspec.Struct, frozen=True):
    runtime: str  # qemu or simulated
    version: str
    accelerator: str  # kvm, tcg or none
    cpu: HostCPU
    machine_types: tuple[str, ...]
    # Empty where guests can be moved; else the sentence that says why not.
    cannot_migrate: str = ""
    # Empty where guests can be suspended; else the sentence that says why not.
    cannot_save_memory: str = ""
    # Empty where a guest may go on here before all its memory has come (post-copy); else the sentence that says why not.
    cannot_post_copy: str = ""


DiskFormat = Literal["raw", "qcow2"]


class FileVolume(msgspec.Struct, frozen=True):
    """A disk image, or a block device, of a claim. Its format is known: a guest can write any header into its disk."""

    path: Path
    read_only: bool = False
    format: DiskFormat = "raw"


class EmptyVolume(msgspec.Struct, frozen=True):
    """An empty disk that goes with the guest."""

    capacity: int


class FilesVolume(msgspec.Struct, frozen=True):
    """A small read-only disk made of these files: Secrets, ConfigMaps, cloud-init."""

    files: dict[str, bytes]
    label: str = ""


Volume = FileVolume | EmptyVolume | FilesVolume


class Order(msgspec.Struct, frozen=True):
    """A guest to be run, with all that it mounts."""

    guest: str  # uid of the pod
    definition: GuestDefinition
    volumes: dict[str, Volume]
    # Of one that is booted although it was to go on from saved memory.
    not_resumed_because: str = ""


class GuestStatus(msgspec.Struct, frozen=True):
    state: GuestState
    reason: str = ""
    message: str = ""
    started: Started | None = None
    started_at: float | None = None  # seconds since the epoch
    addresses: tuple[str, ...] = ()
    not_migratable_because: str = ""
    # Of an import: how far it is.
    imported: ImportReport | None = None
    # Of an incoming guest: all has come that it needs to run.
    has_memory: bool = False
    # Of one that was to go on from saved memory: whether it did, or why it booted.
    resumed: bool = False
    not_resumed_because: str = ""


class Usage(msgspec.Struct, frozen=True):
    """What has been taken of a node."""

    cpu_seconds: float  # of one processor, since it was started here: only ever more
    memory_bytes: int  # what it works with now, and nobody could take back


MoveState = Literal["UnderWay", "PostCopy", "Completed", "Failed", "Cancelled"]


class Moved(msgspec.Struct, frozen=True):
    """The last move of a guest out of this node. Found again after a crash of the agent, as the guest itself is.

    With PostCopy and Completed the guest is given away: it stands still here for good, whatever becomes of it there. PostCopy with
    a `why` has broken off. One whose guest died stays UnderWay where nobody here can tell whether the target has all of it.
    """

    migration: str
    state: MoveState
    why: str = ""
    progress: MigrationProgress | None = None
    # Seconds since the epoch.
    began_at: float = 0.0


class Console(Protocol):
    """The guest's serial port, both ways."""

    def read(self) -> AsyncIterator[bytes]: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


def named_shape(definition: GuestDefinition, shape: Mapping[str, str]) -> dict[str, str]:
    """With whose guest it is: whatever an order says, no memory goes from one instance to another."""
    owner = definition.instance
    return {**shape, "instance": f"{owner.namespace}/{owner.name} {owner.uid}"}


class Runtime(Protocol):
    @property
    def forgets(self) -> bool:
        """Whether guests are forgotten with the process: then nobody but the API server knows what was begun."""
        ...

    async def open(self, changed: Callable[[str], None]) -> None:
        """Finds again what runs already. `changed(guest)` is called whenever the status of a guest may be another: nobody polls."""
        ...

    async def close(self) -> None:
        """The agent ends; its guests live on."""
        ...

    async def host(self) -> Host: ...

    def guests(self) -> list[str]:
        """All that there are, ended ones too, until they are removed."""
        ...

    def status(self, guest: str) -> GuestStatus | None: ...

    def usage(self, guest: str) -> Usage | None:
        """None where nothing of it runs here."""
        ...

    async def start(self, order: Order) -> None:
        """Until it runs (or waits paused, with startStrategy Paused). Raises `Refused`."""
        ...

    async def shut_down(self, guest: str) -> None:
        """Presses the power button, and does not wait."""
        ...

    async def remove(self, guest: str) -> None:
        """Off at once, and nothing of it is left: no process, no file."""
        ...

    async def pause(self, guest: str) -> None:
        """Also of an incoming guest that has its memory: it is taken over standing still."""
        ...

    async def resume(self, guest: str) -> None: ...

    # Moving: herder/nodes/moving builds the hand-over between two agents on these.

    def shape(self, guest: str) -> dict[str, str]:
        """What both sides must have alike, in words: whose it is, machine, cpu, smp, devices, memory. Compared before a byte is
        sent."""
        ...

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        """Starts the guest paused, waiting for its memory; the address is where the source sends it.

        Both sides must use the same settings: a target that knows nothing of post-copy cannot take part in it. Where it cannot be
        had here, the guest is prepared without, and `no_post_copy` says so. Raises `Refused`.
        """
        ...

    def no_post_copy(self, guest: str) -> str:
        """Why an incoming guest cannot come by post-copy although that is allowed; empty where it can, or nobody asked for it."""
        ...

    async def migrate_out(self, guest: str, migration: str, address: str, settings: PolicySettings) -> None:
        """Begins; `moved` and `changed` tell how it goes. The guest is never resumed by the runtime itself after `Completed`."""
        ...

    def moved(self, guest: str) -> Moved | None: ...

    async def cancel(self, guest: str) -> None:
        """Not once the guest is given away: it could not come back."""
        ...

    async def start_post_copy(self, guest: str) -> None: ...

    # Suspending: memory goes to a claim, and is used once.

    async def save(self, guest: str, instance: str, path: Path | None, told: Callable[[int, int], None]) -> SavedGuest:
        """The guest's memory into a file, durably; then the guest is over here, in the state `Saved`. Where it fails the guest goes
        on. `instance` is the uid of the one that it must be of; `told` is how much of how much is written. Raises `Busy` where it
        can be tried again, and `Refused`."""
        ...

    async def go_on(self, guest: str) -> None:
        """Nobody saves it any more: a guest that stands still for that goes on, and what was written of it is gone."""
        ...

    async def restore(self, order: Order, path: Path | None) -> None:
        """Starts the guest from saved memory. That it is used is durable before the guest runs. Raises `Unfit`; then there is no
        guest."""
        ...

    async def discard_memory(self, path: Path | None) -> None:
        """Durably: nobody ever goes on from it. Whoever boots a guest from its disks does this first."""
        ...

    # Looking in.

    async def console(self, guest: str) -> Console: ...

    async def log(self, guest: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        """What the guest wrote to its serial port, from the beginning."""
        ...

    async def probe(self, guest: str, probe: Probe) -> bool: ...

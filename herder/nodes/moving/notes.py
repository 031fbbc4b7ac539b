"""What an agent must never forget about guests that are moved: written down before anybody acts on it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from herder.api.guest import MigrationOrder
from herder.kit.tasks import watched
from herder.nodes.runtimes.qemu.files import sync_folder, write_whole

T = TypeVar("T")
LEAVING, COMING = "leaving", "coming"
# The folder of those that could not be read, once their guest is gone.
UNREADABLE = "unreadable"


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """Of a guest that is moved out of this node."""

    order: MigrationOrder
    token: str = ""
    # Why it does without post-copy, which the order allows: the target said so when it was ready.
    no_post_copy: str = ""
    # Its owner had paused it, or we have, so that the copy comes to its end.
    paused: bool = False
    held: bool = False
    # HandedOver: it never runs here again. Stayed: nobody was moved, and nobody ever will be by this order.
    outcome: Literal["", "HandedOver", "Stayed"] = ""
    # It was given away by dying; whether the target could take it is not known before it has answered.
    dead: bool = False
    # The target has answered, or nobody wants to know any more: nothing is owed.
    answered: bool = False
    taken: bool = False
    failed: str = ""
    message: str = ""


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """Of a guest that waits for its memory, or came by a migration."""

    migration: str
    token: str
    source_node: str = ""
    # Why the guest cannot come by post-copy although its order allows it. Settled once: its source was told.
    no_post_copy: str = ""
    # It may run: its source never will again.
    granted: bool = False
    paused: bool = False


class Notes(Protocol):
    async def leaving(self) -> dict[str, Leaving]:
        """All that there are, by guest."""
        ...

    async def coming(self) -> dict[str, Coming]: ...

    async def unreadable(self) -> dict[str, str]:
        """Guests of which there is a note that cannot be read, and why. They are in neither of the others."""
        ...

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        """When it returns, the note is there whatever happens."""
        ...

    async def remove(self, guest: str, *kinds: str) -> None: ...


class MemoryNotes:
    """For guests that are in memory themselves."""

    def __init__(self) -> None:
        self.notes: dict[tuple[str, str], Leaving | Coming] = {}

    async def leaving(self) -> dict[str, Leaving]:
        return {guest: note for (guest, _), note in self.notes.items() if isinstance(note, Leaving)}

    async def coming(self) -> dict[str, Coming]:
        return {guest: note for (guest, _), note in self.notes.items() if isinstance(note, Coming)}

    async def unreadable(self) -> dict[str, str]:
        return {}

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        self.notes[guest, _kind(note)] = note

    async def remove(self, guest: str, *kinds: str) -> None:
        for kind in kinds or (LEAVING, COMING):
            self.notes.pop((guest, kind), None)


class DiskNotes:
    """A file for each. A guest with one that cannot be read is given up: as if there were none, it could come to run twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # What is being written, by guest. A thread cannot be called off: who gave up waiting for it leaves it behind.
        self._writing: dict[str, asyncio.Future[None]] = {}

    async def leaving(self) -> dict[str, Leaving]:
        return (await asyncio.to_thread(self._read, LEAVING, Leaving))[0]

    async def coming(self) -> dict[str, Coming]:
        return (await asyncio.to_thread(self._read, COMING, Coming))[0]

    async def unreadable(self) -> dict[str, str]:
        leaving = await asyncio.to_thread(self._read, LEAVING, Leaving)
        coming = await asyncio.to_thread(self._read, COMING, Coming)
        return leaving[1] | coming[1]

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        await self._settled(guest)
        writing = asyncio.to_thread(self._write, self._path(guest, _kind(note)), msgspec.json.encode(note))
        work = self._writing[guest] = watched(writing, "writing a note of a move", guest=guest)
        await asyncio.shield(work)

    async def _settled(self, guest: str) -> None:
        """Until nobody writes any more: an older note must not come after a newer one, and none after its end."""
        if (work := self._writing.pop(guest, None)) is not None:
            await asyncio.wait([work])

    async def remove(self, guest: str, *kinds: str) -> None:
        await self._settled(guest)
        for kind in kinds or (LEAVING, COMING):
            self._remove(self._path(guest, kind), Leaving if kind == LEAVING else Coming)

    def _remove(self, path: Path, form: type[Leaving] | type[Coming]) -> None:
        """One that cannot be read is set aside: somebody may want to look into it."""
        try:
            _decoded(path, form)
            path.unlink()
        except FileNotFoundError:
            pass
        except Unreadable:
            (self._folder / UNREADABLE).mkdir(mode=0o700, exist_ok=True)
            os.rename(path, self._folder / UNREADABLE / path.name)

    def _write(self, path: Path, data: bytes) -> None:
        if not self._folder.exists():
            self._folder.mkdir(mode=0o700, parents=True)
            sync_folder(self._folder.parent)
        write_whole(path, data)

    def _read(self, kind: str, form: type[T]) -> tuple[dict[str, T], dict[str, str]]:
        """Notes by guest; and why, where one cannot be read."""
        notes: dict[str, T] = {}
        unreadable: dict[str, str] = {}
        for file in sorted(self._folder.glob(f"[!.]*.{kind}")) if self._folder.exists() else ():
            guest = file.name.removesuffix(f".{kind}")
            try:
                notes[guest] = _decoded(file, form)
            except FileNotFoundError:
                continue
            except Unreadable as why:
                unreadable[guest] = str(why)
        return notes, unreadable

    def _path(self, guest: str, kind: str) -> Path:
        return self._folder / f"{guest}.{kind}"


class Unreadable(Exception):
    """A note on disk that is none; the sentence says which."""


def _decoded(file: Path, form: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=form)
    except FileNotFoundError:
        raise
    except (OSError, msgspec.MsgspecError) as error:
        raise Unreadable(f"{file}: cannot be read ({error}); it says whether a guest may run here, and is not made up") from None


def _kind(note: Leaving | Coming) -> str:
    return LEAVING if isinstance(note, Leaving) else COMING

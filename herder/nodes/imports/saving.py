"""The memory of a guest of this node into a volume: the work of a pod that the controller of suspensions makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from herder.api import reasons
from herder.api.guest import SavedGuest
from herder.api.imports import ImportDefinition
from herder.nodes.disk_space import allocated
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.folder import PART, StorageFolder
from herder.nodes.runtimes.base import Busy, Refused

LOOK_AGAIN = 1.0
Told = Callable[[int, int], None]


class SavesMemory(Protocol):
    """The guests of this node, as far as their memory is concerned."""

    async def save(self, guest: str, instance: str, path: Path | None, told: Told) -> SavedGuest: ...


async def save_memory(
    folder: StorageFolder,
    definition: ImportDefinition,
    instance: str,
    guests: SavesMemory,
    told: Told,
    waits: Callable[[str], None],
) -> SavedGuest:
    """Into a file that no guest has for a disk. Raises ImportFailed."""
    path, size = folder.memory(definition.volume), definition.capacity
    part = path.with_name(f"{path.name}{PART}")
    if lack := folder.space.never_fits(size) or folder.space.lack(size - allocated(part), file=part):
        raise ImportFailed(reasons.INSUFFICIENT_STORAGE, lack)
    # Kept from others, who may be saved at the same time: together they must not take what is the store's.
    with folder.space.writing(part, size):
        await asyncio.to_thread(folder.make_folder, definition.volume)
        return await saved(guests, definition, instance, path, told, waits)


async def saved(
    guests: SavesMemory, definition: ImportDefinition, instance: str, path: Path | None, told: Told, waits: Callable[[str], None]
) -> SavedGuest:
    """Once the guest can be: `waits` is told what for."""
    while True:
        try:
            return await guests.save(definition.guest, instance, path, told)
        except Busy as busy:
            waits(str(busy))
            await asyncio.sleep(LOOK_AGAIN)
        except Refused as refusal:
            raise ImportFailed(refusal.reason, str(refusal)) from None

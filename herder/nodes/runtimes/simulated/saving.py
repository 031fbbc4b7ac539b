"""Simulated guests that are suspended. All that they remember is how long they have run: it fits into what is said of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from herder.api import reasons
from herder.api.guest import SavedGuest
from herder.nodes.runtimes.base import Order, Refused, Unfit
from herder.nodes.runtimes.simulated.guest import Guest

STEP = 0.5
SAVED = "its memory was saved"


class Memory(msgspec.Struct, frozen=True):
    ran: float


async def save(guest: Guest, version: str, told: Callable[[int, int], None]) -> SavedGuest:
    """It stands still for as long as its memory takes, and is over then; or goes on, where that fails or is called off."""
    if guest.state == "Saved":
        return _saved(guest, version)
    if guest.state not in ("Running", "Paused"):
        raise Refused(reasons.SAVE_FAILED, "the guest does not run")
    guest.stood = guest.state == "Paused"
    guest.stand_still()
    guest.say(reasons.SAVING_MEMORY, "its memory is being saved: it stands still meanwhile")
    try:
        await _write(guest, told)
    except BaseException:
        # Also where we are cancelled. Nothing is swallowed.
        guest.go_on(runs=not guest.stood)
        raise
    guest.end("Saved", reasons.SUSPENDED, SAVED)
    return _saved(guest, version)


async def _write(guest: Guest, told: Callable[[int, int], None]) -> None:
    total, done, settings = guest.started.memory_bytes, 0, guest.settings
    fails = settings.fails_at == "save"
    end = total * settings.fails_at_percent // 100 if fails else total
    while done < end:
        step = min(end - done, max(1, int(settings.save_bandwidth * STEP)))
        await asyncio.sleep(step / max(1, settings.save_bandwidth))
        if guest.ended or guest.gone:
            raise Refused(reasons.SAVE_FAILED, f"the guest has ended meanwhile: {guest.message or guest.state}")
        done += step
        told(done, total)
    if fails:
        raise Refused(reasons.SAVE_FAILED, "its memory could not be saved, as it was told to")


def _saved(guest: Guest, version: str) -> SavedGuest:
    content = msgspec.json.encode(Memory(guest.ran)).decode()
    memory = guest.started.memory_bytes
    return SavedGuest(started=guest.started, version=version, bytes=memory, paused=guest.stood, content=content)


def memory_of(order: Order, runtime: str) -> tuple[SavedGuest, float]:
    """What was saved, and how long the guest had run. Raises `Unfit`."""
    source = order.definition.memory
    if source is None or source.saved.started.runtime != runtime:
        raise Unfit(f"the memory that was saved is none of a guest of the runtime {runtime}")
    try:
        return source.saved, msgspec.json.decode(source.saved.content, type=Memory).ran
    except msgspec.MsgspecError as error:
        raise Unfit(f"the memory that was saved cannot be read: {error}") from None

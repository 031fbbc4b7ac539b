"""The grant: the source's word that the guest will never run there again, repeated until the target has answered."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import structlog

from herder.api import reasons
from herder.nodes.moving.link import Unreachable
from herder.nodes.moving.means import Means
from herder.nodes.moving.messages import Gone, NotYet, Resume, Resumed
from herder.nodes.moving.notes import Leaving

log = structlog.get_logger()
FIRST_WAIT = 0.02
LONGEST_WAIT = 2.0
# For what was sent before the source died to be read by the target.
DEAD_PATIENCE = 30.0
DEAD = "the guest crashed while it was moved, and its target has not got all of its memory"


class Owing(Protocol):
    @property
    def guest(self) -> str: ...

    @property
    def note(self) -> Leaving: ...

    @property
    def released(self) -> bool: ...

    async def pause_for(self, seconds: float) -> None: ...


async def grant(means: Means, owing: Owing) -> dict[str, Any]:
    """What is to be noted of the answer. Ends also when nobody asks for it any more."""
    clock = asyncio.get_running_loop().time
    began, wait = clock(), FIRST_WAIT
    while not owing.released:
        note = owing.note
        last = note.dead and clock() - began > DEAD_PATIENCE
        resume = Resume(note.order.migration, note.order.target_pod, note.token, note.paused, now_or_never=last)
        try:
            answer = await means.link.ask(note.order.address, note.order.target_node, resume)
        except Unreachable as problem:
            log.info("the grant did not arrive and is repeated", guest=owing.guest, problem=str(problem))
            answer = NotYet("")
        if isinstance(answer, Resumed):
            return {"answered": True, "taken": True}
        if isinstance(answer, Gone):
            return {"answered": True, **_lost(note, answer.message)}
        await owing.pause_for(wait)
        wait = min(LONGEST_WAIT, 2 * wait)
    return {"answered": True, **_lost(owing.note, "the migration is over")}


def _lost(note: Leaving, why: str) -> dict[str, str]:
    """A guest that had been alive is given away all the same; one that was dead has ended here."""
    return {"failed": reasons.SOURCE_STOPPED, "message": f"{DEAD}: {why}"} if note.dead else {"message": why}

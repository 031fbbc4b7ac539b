"""resourceVersion in questions: what a client may ask for, and waiting until we have it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from herder.server.status import bad_request, revision_too_large

if TYPE_CHECKING:
    from herder.server.engine import Engine

# As long as kube-apiserver waits for its cache before it says that a version is from the future.
PATIENCE = 3.0


def parse_revision(text: str | None) -> int | None:
    """None when it was not given."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise bad_request(f"resourceVersion: Invalid value: {text!r}: must be 0 or a resourceVersion that the server gave out")
    return int(text)


async def wait_for_revision(engine: Engine, revision: int) -> None:
    """A version that we have not reached yet may be just on its way to the disk."""
    if revision <= engine.store.revision:
        return
    reached = asyncio.Event()

    def look(_: object) -> None:
        if engine.store.revision >= revision:
            reached.set()

    stop = engine.store.listen("", look)
    try:
        async with asyncio.timeout(PATIENCE):
            await reached.wait()
    except TimeoutError:
        raise revision_too_large(revision, engine.store.revision) from None
    finally:
        stop()

"""What still runs on a node for pods that are gone: nobody will ever ask for it again, so it is removed when an agent starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from herder.api.backoff import doubled
from herder.kit.tasks import watched
from herder.nodes.work import Work

log = structlog.get_logger()
# How long a node that starts waits for their end. Each of them takes seconds, and they end side by side.
PATIENCE = 60.0
FIRST_RETRY = 1.0
LONGEST_RETRY = 60.0


class Orphan(NamedTuple):
    work: Work
    uid: str


class Orphans:
    def __init__(self) -> None:
        self._removing: set[asyncio.Task[None]] = set()
        self._untried = 0
        self._all_tried = asyncio.Event()

    async def remove(self, orphans: Sequence[Orphan]) -> None:
        """All at once, until each was tried. One that cannot be removed keeps neither the others nor the node from going on: it is
        said, and tried again until it is gone."""
        if not orphans:
            return
        self._untried = len(orphans)
        for orphan in orphans:
            what = "removing what ran for a pod that is gone"
            watched(self._remove(orphan), what, kept_in=self._removing, pod=orphan.uid)
        try:
            async with asyncio.timeout(PATIENCE):
                await self._all_tried.wait()
        except TimeoutError:
            log.warning("what ran for pods that are gone still ends, and is not waited for any longer", pods=self._untried)

    def close(self) -> None:
        for task in self._removing:
            task.cancel()

    async def _remove(self, orphan: Orphan) -> None:
        failures = 0
        while not await self._removed(orphan, failures):
            await asyncio.sleep(doubled(FIRST_RETRY, LONGEST_RETRY, failures))
            failures += 1

    async def _removed(self, orphan: Orphan, failures: int) -> bool:
        try:
            await orphan.work.remove(orphan.uid)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            log.error("what ran for a pod that is gone cannot be removed, will be tried again", pod=orphan.uid, error=why)
            return False
        finally:
            if not failures:
                self._untried -= 1
                if not self._untried:
                    self._all_tried.set()
        return True

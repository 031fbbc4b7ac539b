"""Several writes at once, for those who keep pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
# The first one shows whether pods can be made at all; then ever more at once.
FIRST_BATCH = 1


async def in_batches(wanted: Sequence[T], make: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    batch, done = FIRST_BATCH, 0
    while done < len(wanted):
        await all_of(make(one) for one in wanted[done : done + batch])
        done, batch = done + batch, batch * 2


async def all_of(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """At once, and to the end of each: what is still on its way would be counted wrongly. Then the first failure is raised."""
    for result in await asyncio.gather(*steps, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result

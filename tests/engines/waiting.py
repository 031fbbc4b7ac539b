"""For what becomes true a little later."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Value = TypeVar("Value")


async def eventually(look: Callable[[], Awaitable[Value]], patience: float = 15, pause: float = 0.02) -> Value:
    """Calls `look` until it returns something true without failing an assertion; that is the answer.

    When patience is over, the last failed assertion is what the test shows.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + patience
    while True:
        last = clock() > deadline
        try:
            value = await look()
            if value:
                return value
            assert not last, f"still {value!r} after {patience} s"
        except AssertionError:
            if last:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.25)

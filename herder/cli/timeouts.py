"""`--wait` and `--timeout`: how long a command waits, and what it says when it waits no longer. What was asked for goes on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from herder.cli.asking import NOT_IN_TIME, Refusal

Command = TypeVar("Command", bound=Callable[..., Any])
# In seconds. A start may have to fetch a disk first, a stop may wait for a guest that takes its time; a migration waits for its
# turn and for room (300 s) before it copies; a node is emptied a few guests at a time.
MACHINES = 600.0
MIGRATIONS = 1800.0
DRAINS = 3600.0
# A few machines at a time, each with its start.
ROLLOUTS = 3600.0
# Each waits for its turn, behind limits and budgets.
JOBS = 3600.0


class Length(click.ParamType[float]):
    """Seconds: `90`, or as kubectl takes it: `90s`, `1h30m`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from herder.api.duration import parse_seconds

        try:
            seconds = float(value)
        except ValueError:
            try:
                seconds = parse_seconds(value)
            except ValueError:
                self.fail(f"{value!r} is no length of time, such as 90, 90s or 1h30m", param, ctx)
        if not math.isfinite(seconds) or seconds < 0:
            self.fail(f"{value!r} is no length of time that can be waited for; 0 waits without end", param, ctx)
        return seconds


def timeout_option(default: float) -> Callable[[Command], Command]:
    """Who names one waits, with or without --wait."""
    said = f"Wait no longer than that, such as 90, 90s or 1h30m; 0 waits without end.  [default: {default / 60:g}m]"
    return click.option("--timeout", type=Length(), metavar="S", help=said)


def chosen(timeout: float | None, default: float) -> float | None:
    """Seconds; None is without end."""
    return default if timeout is None else timeout or None


@asynccontextmanager
async def within(seconds: float | None, said: Callable[[], str]) -> AsyncGenerator[None]:
    """`said` is what is to be said once the time is up: how things are, how to follow them, and how to end them."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise Refusal(f"after {spoken(seconds or 0)} {said()}", NOT_IN_TIME) from None


def spoken(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.4g} min"

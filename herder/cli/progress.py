"""What is under way, for the person who waits for it: rows with bars and colours on a terminal, and lines of text elsewhere.

The parts of rich that draw are imported only where there is a terminal, and only by who waits: `herder --help` and quick commands
do not pay for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

import click
import msgspec

from herder.api.problems import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

State = Literal["waits", "moves", "ready", "done", "stays"]
# Without news for so long, it is said what is waited for; and then again now and then.
QUIET = 5.0
AGAIN = 30.0
LOOK = 0.25
BAR_WIDTH = 24
SETTLED: tuple[State, ...] = ("done", "stays")
COLOURS: dict[State, str] = {"waits": "yellow", "moves": "cyan", "ready": "green", "done": "green", "stays": "red"}
# Beside the rows: what is waited for, and how many rows are not shown.
OTHER_LINES = 3


class Row(msgspec.Struct, frozen=True):
    """One thing that is waited for. `name` is empty where there is only one."""

    name: str
    state: State
    text: str
    percent: int | None = None
    # What makes it news: a line of its own where there is no terminal. The text, unless that has numbers that change all the time.
    step: str = ""

    @property
    def news(self) -> str:
        return self.step or self.text

    @property
    def line(self) -> str:
        return printable(f"{self.name}: {self.text}" if self.name else self.text)


class Display(Protocol):
    # When there was news last.
    since: float

    def show(self, rows: Sequence[Row]) -> None:
        """All rows, as they are now."""
        ...

    def remind(self, text: str) -> None:
        """Nothing has happened for a while: this is what is waited for."""
        ...


class Lines:
    """A line for each step of each row."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self.since = self._begun = self._clock()
        self._news: dict[str, str] = {}

    def show(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if self._news.get(row.name) != row.news:
                self._news[row.name] = row.news
                self.since = self._clock()
                click.echo(row.line)

    def remind(self, text: str) -> None:
        click.echo(printable(f"after {self._clock() - self._begun:.0f} s: {text}"))


class Rows:
    """On a terminal: rows that change in place, for what goes on. What is done, or cannot be, becomes a line that stays there."""

    def __init__(self, console: Console) -> None:
        self._clock = asyncio.get_running_loop().time
        self.since = self._begun = self._clock()
        self._console = console
        self._news: dict[str, str] = {}
        self._rows: tuple[Row, ...] = ()
        self._reminder = ""

    def show(self, rows: Sequence[Row]) -> None:
        news = [row for row in rows if self._news.get(row.name) != row.news]
        self._news |= {row.name: row.news for row in news}
        if news:
            self.since = self._clock()
            self._reminder = ""
        self._rows = tuple(row for row in rows if row.state not in SETTLED)
        for row in news:
            if row.state in SETTLED:
                self._console.print(row.line, style=COLOURS[row.state], markup=False, highlight=False, soft_wrap=True)

    def remind(self, text: str) -> None:
        """Where a bar moves, the rows say all there is to say."""
        self._reminder = "" if any(row.percent is not None for row in self._rows) else printable(text)

    def __rich__(self) -> RenderableType:
        """Called by the thread that draws: what it reads is replaced as a whole, and never changed."""
        from rich.console import Group
        from rich.text import Text

        rows, room = self._rows, max(1, self._console.height - OTHER_LINES)
        below: list[RenderableType] = [Text(f"and {len(rows) - room} more", style="dim")] if len(rows) > room else []
        if self._reminder:
            below.append(Text(f"after {self._clock() - self._begun:.0f} s: {self._reminder}", style="dim"))
        return Group(_grid(rows[:room]), *below)


def _grid(rows: Sequence[Row]) -> RenderableType:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    if any(row.name for row in rows):
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=None)
    if bars := any(row.percent is not None for row in rows):
        grid.add_column(width=BAR_WIDTH)
    # One reason may take some lines; many would push each other out.
    grid.add_column(no_wrap=len(rows) > 1, overflow="ellipsis" if len(rows) > 1 else "fold")
    for row in rows:
        cells: list[RenderableType] = [Text(printable(row.name))] if any(one.name for one in rows) else []
        if bars and row.percent is not None:
            cells.append(ProgressBar(total=100, completed=row.percent, width=BAR_WIDTH, complete_style=COLOURS[row.state]))
        elif bars:
            cells.append("")
        grid.add_row(*cells, Text(printable(row.text), style=COLOURS[row.state]))
    return grid


def has_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


@contextmanager
def display() -> Generator[Display]:
    """Rows on a terminal, gone at the end; elsewhere lines. rich keeps to NO_COLOR by itself."""
    if not has_terminal():
        yield Lines()
        return
    from rich.console import Console

    console = Console(file=sys.stdout)
    rows = Rows(console)
    with _live(rows, console):
        yield rows


def _live(rows: Rows, console: Console) -> Live:
    from rich.live import Live

    return Live(get_renderable=rows.__rich__, console=console, refresh_per_second=4, transient=True, redirect_stderr=False)


@asynccontextmanager
async def reminding(shown: Display, why: Callable[[], Awaitable[str]]) -> AsyncGenerator[None]:
    """As long as this lasts: says what is waited for whenever nothing has happened for a few seconds."""
    task = asyncio.create_task(_remind(shown, why))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _remind(shown: Display, why: Callable[[], Awaitable[str]]) -> None:
    clock = asyncio.get_running_loop().time
    last = -math.inf
    while True:
        await asyncio.sleep(LOOK)
        said_since = last > shown.since
        if clock() - (last if said_since else shown.since) < (AGAIN if said_since else QUIET):
            continue
        text = await why()
        last = clock()
        if text:
            shown.remind(text)

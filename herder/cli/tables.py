"""What a command answers: lines and tables, as plain text in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from herder.api.problems import printable

GAP = "   "
MOST_DETAILS = 4


class Table(msgspec.Struct, frozen=True):
    heading: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


# An answer is lines with tables between them.
Part = str | Table


def plain(parts: Iterable[Part]) -> list[str]:
    """As scripts read it: aligned with spaces, without colours and without lines."""
    return [line for part in parts for line in _lines(part)]


def _lines(part: Part) -> list[str]:
    if isinstance(part, str):
        return [printable(part)]
    return table([part.heading, *(tuple(map(printable, row)) for row in part.rows)])


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def in_few_words(details: Sequence[str]) -> str:
    """Of one row; -o json has them all."""
    more = f"; and {len(details) - MOST_DETAILS} more" if len(details) > MOST_DETAILS else ""
    return "; ".join(details[:MOST_DETAILS]) + more


def age(written: str) -> str:
    """How long ago that was, by our own clock, as kubectl says it."""
    from datetime import datetime

    from herder.api.ages import human_duration
    from herder.api.world import RealWorld

    return human_duration(RealWorld().now() - datetime.fromisoformat(written).timestamp()) if written else ""

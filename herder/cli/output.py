"""How an answer is printed. Whoever answers returns a value; only here it becomes text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from herder.cli.tables import Part, plain

V = TypeVar("V")


def show(value: V, as_text: Callable[[V], Iterable[Part]]) -> None:
    for line in plain(as_text(value)):
        click.echo(line)

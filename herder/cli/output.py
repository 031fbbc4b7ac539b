"""How an answer is printed: as text, or with -o as JSON or YAML. Whoever answers returns a value; only here it becomes text.

On a terminal, tables have colours and are folded to its width. Elsewhere they are plain columns, for scripts and files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from herder.cli.tables import Part, Table

V = TypeVar("V")
Format = Literal["json", "yaml"]
FORMATS = ("json", "yaml")
# Of cells that say nothing else.
STYLES = {"yes": "green", "no": "red", "stays": "yellow"}

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    help="As a document, with everything that the text leaves out (docs/commands.md).  [default: text for people]",
)


def show(value: V, as_text: Callable[[V], Iterable[Part]], output: Format | None = None) -> None:
    if output is not None:
        click.echo(_document(value, output), nl=False)
    elif sys.stdout.isatty():
        _show_on_terminal(as_text(value))
    else:
        from herder.cli.tables import plain

        for line in plain(as_text(value)):
            click.echo(line)


def _document(value: object, output: Format) -> str:
    """Only ASCII: what somebody else has named cannot move the cursor of who looks at it."""
    import msgspec

    builtins = msgspec.to_builtins(value)
    if output == "json":
        import json

        return json.dumps(builtins, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(builtins, sort_keys=False)


def _show_on_terminal(parts: Iterable[Part]) -> None:
    # Imported here: it takes as long as a small command does.
    from rich.console import Console

    from herder.api.problems import printable

    # By its convention any value of NO_COLOR counts; without colours there is no bold either.
    colours = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(color_system=colours, highlight=False, markup=False, emoji=False)
    for part in parts:
        if isinstance(part, str):
            click.echo(printable(part))
        else:
            _show_table(console, part)


def _show_table(console: Console, table: Table) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    from herder.api.problems import printable
    from herder.cli.tables import GAP

    shown = RichTable(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), header_style="bold")
    for heading in table.heading:
        shown.add_column(heading, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(printable(cell), STYLES.get(cell, "")) for cell in row))
    console.print(shown)

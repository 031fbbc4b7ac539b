"""`herder backup` and `herder restore`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from herder.app.data_directory import DataDirectory
from herder.app.refusal import CANNOT_USE_DATA, CANNOT_USE_FILE, Refusal
from herder.cli.main import cli

FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
DATA = click.option(
    "--data", type=click.Path(path_type=Path), default=Path(".herder"), show_default=True, help="Where everything is kept."
)


@cli.command()
@FILE
@DATA
def backup(file: Path, data: Path) -> None:
    """Write all objects, and the keys that sign for them, to FILE. Also while herder runs.

    FILE holds secrets, and is made readable by you alone.
    """
    from herder.app.backups import backup_to

    _run(backup_to(DataDirectory(data), file))


@cli.command()
@FILE
@DATA
def restore(file: Path, data: Path) -> None:
    """Make everything as it was when FILE was written. Also while herder runs.

    Whoever watches sees ordinary changes, at new resourceVersions. Objects that are not in FILE are deleted.
    """
    from herder.app.backups import restore_from

    _run(restore_from(DataDirectory(data), file))


def _run(work: Coroutine[Any, Any, str]) -> None:
    from herder.server.backup import BackupError
    from herder.server.store import DataError

    try:
        click.echo(asyncio.run(work))
    except BackupError as error:
        _refuse(str(error), CANNOT_USE_FILE)
    except DataError as error:
        _refuse(str(error), CANNOT_USE_DATA)
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)


def _refuse(sentence: str, code: int) -> None:
    click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)

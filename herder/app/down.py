"""`herder down`: stops the `herder up` of a data directory, and ends what one that was killed left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from herder.app.backup_commands import DATA
from herder.app.data_directory import DataDirectory, Held
from herder.app.refusal import CANNOT_RUN, CANNOT_USE_DATA, Refusal
from herder.cli.main import cli

# It gives its guests some seconds, and its processes some more.
PATIENCE = 60.0
LOOK_AGAIN = 0.1
Say = Callable[[str], None]


@cli.command()
@DATA
def down(data: Path) -> None:
    """Stop the herder of this folder, as Ctrl-C does, and every guest of it.

    Also where it was killed, and guests run on without it. What is stored stays.
    """
    try:
        stop(DataDirectory(data), click.echo)
    except Refusal as refusal:
        click.echo(f"herder: {refusal}", err=True)
        sys.exit(refusal.code)


def stop(directory: DataDirectory, say: Say) -> None:
    from herder.nodes.runtimes.qemu.strays import end_strays

    if not (directory.path / "lock").exists():
        raise Refusal(f"--data {directory.path}: no herder ever ran here; name its data directory", CANNOT_USE_DATA)
    stopped = _take(directory)
    try:
        ended = end_strays((directory.path / "nodes").glob("*/guests/*"))
    finally:
        directory.release()
    if ended:
        say(f"{ended} guest{'s' if ended > 1 else ''} ran on without it and {'were' if ended > 1 else 'was'} switched off")
    say(f"herder has stopped; what is stored stays in {directory.path}" if stopped else f"no herder runs in {directory.path}")


def _take(directory: DataDirectory) -> bool:
    """Afterwards it is ours, so that nobody begins meanwhile. Whether somebody had to be stopped for that."""
    holder = directory.last_holder()
    pid = holder.pid if holder is not None else 0
    listen = holder.listen if holder is not None else ""
    try:
        directory.take(listen)
        return False
    except Held:
        if _is_herder(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while _is_herder(pid) or not _taken(directory, listen):
        if time.monotonic() > deadline:
            raise Refusal(f"--data {directory.path}: its herder (pid {pid}) has not stopped in {PATIENCE:.0f} s", CANNOT_RUN)
        time.sleep(LOOK_AGAIN)
    return True


def _taken(directory: DataDirectory, listen: str) -> bool:
    try:
        directory.take(listen)
    except Held:
        return False
    return True


def _is_herder(pid: int) -> bool:
    """And not another process that has its number by now."""
    try:
        return b"herder" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False

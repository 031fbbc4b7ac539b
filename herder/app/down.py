"""`herder down`: stops the `herder up` of a data directory, and ends what one that was killed left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from herder.app.backup_commands import DATA
from herder.app.data_directory import DataDirectory, Held, is_herder
from herder.app.refusal import CANNOT_RUN, CANNOT_USE_DATA, Refusal
from herder.app.stopping import LEAVE_GUESTS
from herder.cli.main import cli

# It gives its guests some seconds, and its processes some more.
PATIENCE = 60.0
LOOK_AGAIN = 0.1
Say = Callable[[str], None]


@cli.command()
@DATA
@click.option("--keep-guests", is_flag=True, help="Leave its guests running; the next `herder up` finds them again.")
def down(data: Path, keep_guests: bool) -> None:
    """Stop the herder of this folder, as Ctrl-C does, and shut down every guest of it.

    Also where it was killed and guests run on without it. What is stored stays. With --keep-guests everything stops but the
    guests of QEMU nodes: the next `herder up` takes them up as they are, unless `herder down` ends them before.
    """
    try:
        stop(DataDirectory(data), click.echo, keep_guests=keep_guests)
    except Refusal as refusal:
        click.echo(f"herder: {refusal}", err=True)
        sys.exit(refusal.code)


def stop(directory: DataDirectory, say: Say, *, keep_guests: bool = False) -> None:
    from herder.nodes.runtimes.qemu.strays import end_strays, run_on, running

    if not (directory.path / "lock").exists():
        raise Refusal(f"--data {directory.path}: no herder ever ran here; name its data directory", CANNOT_USE_DATA)
    stopped = _take(directory, LEAVE_GUESTS if keep_guests else signal.SIGTERM)
    try:
        guests = directory.guests()
        found = len(running(guests)) if keep_guests else asyncio.run(end_strays(guests))
    finally:
        directory.release()
    if found and keep_guests:
        say(run_on(found))
    elif found:
        say(f"{found} guest{'s' if found > 1 else ''} ran on without it and {'were' if found > 1 else 'was'} shut down")
    say(f"herder has stopped; what is stored stays in {directory.path}" if stopped else f"no herder runs in {directory.path}")


def _take(directory: DataDirectory, order: signal.Signals) -> bool:
    """Afterwards it is ours, so that nobody begins meanwhile. Whether somebody had to be stopped for that."""
    holder = directory.last_holder()
    pid = holder.pid if holder is not None else 0
    listen = holder.listen if holder is not None else ""
    try:
        directory.take(listen)
        return False
    except Held:
        if is_herder(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, order)
    deadline = time.monotonic() + PATIENCE
    while is_herder(pid) or not _taken(directory, listen):
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

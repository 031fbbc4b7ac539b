"""`herder backup` and `herder restore`: through the engine while it runs, on the data directory itself while it does not."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from herder.api.world import RealWorld, timestamp
from herder.app import keys
from herder.app.data_directory import DataDirectory, Held
from herder.app.refusal import CANNOT_RUN, CANNOT_USE_DATA, CANNOT_USE_FILE, Refusal, reason_of
from herder.server.backup import FORMAT, BackupWriter, Header, Restored, is_backup, prepare, read_backup, restore
from herder.server.backup.file import end_line, object_line
from herder.server.running import DATABASE
from herder.server.store import Database, DataError, InlineWriter, Store

# As long as it takes: the engine answers when all is done.
_PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=10)
_NO_BACKUP = "the engine stopped in the middle of the backup; nothing was written"
_RESTORE_UNSURE = "the engine stopped before it could say whether all was restored, or nothing; to be sure, restore again"


# --- backup ----------------------------------------------------------------------------------------------------------------------


async def backup_to(directory: DataDirectory, file: Path) -> str:
    if file.exists() and not is_backup(file):
        raise Refusal(f"{file} exists and is not a herder backup; name another file", CANNOT_USE_FILE)
    if not (directory.path / DATABASE).exists():
        raise Refusal(f"--data {directory.path}: there is no herder data", CANNOT_USE_DATA)
    try:
        with BackupWriter(file) as out:
            await _whether_running(directory, lambda: _backup_through_engine(directory, out), lambda: _backup_data(directory, out))
            for name, data in keys.kept_files(directory).items():
                out.file(name, data)
            out.finish()
    except OSError as error:
        raise Refusal(f"{file} cannot be written: {reason_of(error)}", CANNOT_USE_FILE) from None
    return f"{out.objects} objects are in {file}; it holds secrets and keys, keep it as you would keep those."


async def _whether_running(
    directory: DataDirectory, running: Callable[[], Awaitable[Any]], stopped: Callable[[], Awaitable[Any]]
) -> Any:
    try:
        directory.take("a backup or restore")
    except Held:
        return await running()
    try:
        return await stopped()
    finally:
        directory.release()


async def _backup_through_engine(directory: DataDirectory, out: BackupWriter) -> None:
    async with _engine(directory, _NO_BACKUP) as session, session.get("/herder/backup") as answer:
        if answer.status != 200:
            raise Refusal(f"the engine gave no backup: {await _message(answer)}", CANNOT_RUN)
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line == end_line(out.objects).rstrip():
                    return
                out.line(line + b"\n", is_object=line.startswith(b'{"kind":'))
    raise Refusal(_NO_BACKUP, CANNOT_RUN)


async def _backup_data(directory: DataDirectory, out: BackupWriter) -> None:
    store = _open(directory)
    try:
        out.header(Header(FORMAT, timestamp(RealWorld().now()), store.identity, store.revision))
        for kind in sorted(store.kinds()):
            for record in store.scan(kind):
                out.line(object_line(kind, record.raw), is_object=True)
    finally:
        store.close()


# --- restore ---------------------------------------------------------------------------------------------------------------------


async def restore_from(directory: DataDirectory, file: Path) -> str:
    # Looked at before anything else is touched: a directory, an engine.
    backup = read_backup(file)
    done: Restored = await _whether_running(
        directory, lambda: _restore_through_engine(directory, file), lambda: _restore_data(directory, file)
    )
    counts = f"{done.added} added, {done.changed} changed, {done.deleted} deleted, {done.unchanged} as they were"
    told = f"Everything is as it was at {done.created}: {counts}."
    differing = {name: data for name, data in backup.files.items() if keys.kept_files(directory).get(name) != data}
    if differing:
        told += (
            f"\nThe keys of {directory.path} stay, and differ from those of the backup ({', '.join(sorted(differing))})."
            "\nTo take those over as well, stop herder and restore again."
        )
    return told


async def _restore_through_engine(directory: DataDirectory, file: Path) -> Restored:
    order = msgspec.json.encode({"file": str(file.absolute())})
    async with _engine(directory, _RESTORE_UNSURE) as session, session.post("/herder/restore", data=order) as answer:
        if answer.status == 400:
            raise Refusal(f"nothing was changed: {await _message(answer)}", CANNOT_USE_FILE)
        if answer.status != 200:
            raise Refusal(f"the engine could not restore it: {await _message(answer)}", CANNOT_RUN)
        return msgspec.json.decode(await answer.read(), type=Restored)


async def _restore_data(directory: DataDirectory, file: Path) -> Restored:
    backup = read_backup(file)
    wanted = prepare(backup)
    mark = secrets.token_hex(16)
    keys.finish(directory)
    keys.lay_beside(directory, backup.files, mark)
    store = _open(directory)
    try:
        done, _ = await restore(store, backup, wanted, mark)
    finally:
        store.close()
    keys.finish(directory)
    return done


def _open(directory: DataDirectory) -> Store:
    database = Database(directory.path / DATABASE)
    try:
        return Store(database, InlineWriter(database))
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        raise DataError(f"{directory.path / DATABASE} is damaged: {error}") from error


# --- the engine ------------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _engine(directory: DataDirectory, lost: str) -> AsyncGenerator[aiohttp.ClientSession]:
    """`lost`: what to say when it stops while it answers."""
    connector = aiohttp.UnixConnector(str(directory.socket))
    try:
        async with aiohttp.ClientSession("http://herder", connector=connector, timeout=_PATIENCE) as session:
            yield session
    except aiohttp.ClientConnectorError as error:
        why = f"--data {directory.path}: is held by another herder, whose engine does not answer: {error}"
        raise Refusal(why, CANNOT_USE_DATA) from None
    except aiohttp.ClientError:
        raise Refusal(lost, CANNOT_RUN) from None


async def _message(answer: aiohttp.ClientResponse) -> str:
    try:
        return msgspec.json.decode(await answer.read()).get("message", "")
    except (msgspec.MsgspecError, AttributeError):
        return f"it answered {answer.status}"

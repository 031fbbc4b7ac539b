"""What the engine's own programs ask of it over the unix socket, and nobody else can: backups and restores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from herder.api.world import timestamp
from herder.server import status
from herder.server.backup import FORMAT, BackupError, Header, prepare, read_backup, restore
from herder.server.backup.file import end_line, object_line
from herder.server.engine import Engine
from herder.server.request import ENGINE, Answer, Request, Response, Stream
from herder.server.store import Change, StorageFullError, StoreStopped

OBJECTS_A_CHUNK = 50


class RestoreOrder(msgspec.Struct, forbid_unknown_fields=True):
    """`file`: a path on this machine, which is the same for both sides of a unix socket."""

    file: str


class Upkeep:
    """`restored` is called with what a restore has changed, before anybody is answered."""

    def __init__(self, engine: Engine, restored: Callable[[list[Change]], Awaitable[None]]) -> None:
        self._engine = engine
        self._restored = restored
        self._restoring = asyncio.Lock()

    async def answer(self, request: Request) -> Answer:
        if request.user != ENGINE:
            raise status.no_such_path()
        match request.method, request.path:
            case "GET", "/herder/backup":
                return Stream(self._backup, "application/jsonlines")
            case "POST", "/herder/restore":
                return await self._restore(request)
            case _:
                raise status.no_such_path()

    async def _backup(self) -> AsyncIterator[bytes]:
        """One moment: all objects that are durable now. They do not change while they are sent, whatever is written meanwhile."""
        store = self._engine.store
        header = Header(FORMAT, timestamp(self._engine.world.now()), store.identity, store.revision)
        records = [(kind, record) for kind in sorted(store.kinds()) for record in store.scan(kind)]
        yield msgspec.json.encode(header) + b"\n"
        for start in range(0, len(records), OBJECTS_A_CHUNK):
            yield b"".join(object_line(kind, record.raw) for kind, record in records[start : start + OBJECTS_A_CHUNK])
            await asyncio.sleep(0)
        yield end_line(len(records))

    async def _restore(self, request: Request) -> Answer:
        try:
            order = msgspec.json.decode(request.body, type=RestoreOrder)
        except msgspec.MsgspecError as error:
            raise status.bad_request(f"the order to restore cannot be read: {error}") from None
        async with self._restoring:
            try:
                backup = await asyncio.to_thread(read_backup, Path(order.file))
                wanted = await asyncio.to_thread(prepare, backup)
                done, changes = await restore(self._engine.store, backup, wanted)
            except (BackupError, OSError) as error:
                raise status.bad_request(str(error)) from None
            except StorageFullError as error:
                raise status.internal(str(error)) from None
            except StoreStopped as error:
                raise status.unavailable(f"the store has stopped: {error}") from None
            await self._restored(changes)
        return Response(200, msgspec.json.encode(done) + b"\n")

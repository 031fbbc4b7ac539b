"""Old history is given up by itself, also where the disk was full for a while."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from herder.server.housekeeping.compaction import Compaction
from herder.server.store.database import Row
from tests.unit.kube.virtual import in_virtual_time
from tests.unit.server.store.rig import BreakableDatabase, Rig, inline
from tests.unit.server.store.rig import Compaction as Slice

HOUR = 3600.0


class FullForCompaction(BreakableDatabase):
    """Small writes still fit; what is given up takes room of the log first, and there is none."""

    full = True
    tried = 0

    def write(self, rows: Sequence[Row], compactions: Sequence[Slice] = (), meta: Sequence[tuple[str, str]] = ()) -> None:
        if compactions:
            self.tried += 1
            if self.full:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
        super().write(rows, compactions, meta)


class FullRig(Rig):
    def make_database(self, path: Path) -> FullForCompaction:
        return FullForCompaction(path)


def test_on_a_full_disk_it_is_tried_ever_more_seldom_and_done_once_there_is_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        rig = FullRig(tmp_path / "herder.db", inline)
        database = rig.database
        assert isinstance(database, FullForCompaction)
        for _ in range(3):
            await rig.put("pods", "a", "web")
        compaction = asyncio.create_task(Compaction(rig.store).run())
        await asyncio.sleep(HOUR)
        # Twice a minute in the end, and not a hundred times a second.
        assert 50 < database.tried < 130
        assert rig.store.superseded() == 2
        await rig.put("pods", "a", "web")
        database.full = False
        await asyncio.sleep(HOUR / 2)
        assert (rig.store.superseded(), rig.store.compaction_failures) == (0, 0)
        compaction.cancel()
        rig.store.close()

    in_virtual_time(scenario())

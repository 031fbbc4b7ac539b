"""Random lives of a store, crashes and full disks included, beside a model that is too simple to be wrong."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from herder.server.store import CompactedError, StorageFullError, StoreStopped
from herder.server.store import store as store_module
from herder.server.store.database import DELETE, Row
from herder.server.store.history import History
from herder.server.store.records import key_of
from tests.examples import examples
from tests.unit.server.store.model import Model
from tests.unit.server.store.rig import MakeWriter, Rig, copy_as_if_killed, inline, outcomes, threaded

TABLES = ("pods", "nodes")
# What one step of a burst does: to which object, how large (larger than a page among them), and whether others get a turn first.
STEP = st.tuples(
    st.sampled_from(TABLES),
    st.sampled_from(("", "a", "b")),
    st.sampled_from(("one", "two")),
    st.sampled_from(("put", "remove")),
    st.sampled_from((10, 300, 40_000)),
    st.booleans(),
)
PART = st.sampled_from((1.0, 0.9, 0.6, 0.3, 0.0))
# A kill loses nothing that a power cut would: the disk need not be waited for here.
MEMORY = Path("/dev/shm")
Step = tuple[str, str, str, str, int, bool]


class StoreMachine(RuleBasedStateMachine):
    make_writer: MakeWriter = staticmethod(inline)

    @initialize(memory=st.sampled_from((0, 2_000, 1_000_000)), slice_size=st.sampled_from((1, 3, 500)))
    def begin(self, memory: int, slice_size: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="herder-store-", dir=MEMORY if MEMORY.exists() else None))
        self.path = self.folder / "herder.db"
        self.lives = 0
        self.memory = memory
        self.slicing = mock.patch.object(store_module, "COMPACT_SLICE", slice_size)
        self.slicing.start()
        self.model = Model()
        self.runner = asyncio.Runner()
        self.runner.run(self._open())

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        self.runner.run(self.rig.close())
        self.runner.close()
        self.slicing.stop()
        shutil.rmtree(self.folder)

    async def _open(self) -> None:
        self.rig = Rig(self.path, self.make_writer)
        self.rig.store.history = History(self.rig.store.revision, limit=self.memory)
        self.known_at_start = len(self.model.steps)
        # What the log of the last life said last may be in no row any more: a deletion, compacted away.
        assert self.rig.store.revision >= self.model.revision
        assert self.rig.store.compacted <= self.model.compacted
        self.model.compacted = self.rig.store.compacted

    # --- writing -----------------------------------------------------------------------------------------------------------------

    @rule(steps=st.lists(STEP, min_size=1, max_size=12))
    def write(self, steps: list[Step]) -> None:
        self.runner.run(self._write(steps))

    async def _write(self, steps: list[Step]) -> None:
        """One after another without waiting for any: each is decided on what those before it are about to make."""
        submitted: list[tuple[Row, asyncio.Future[None]]] = []
        for table, namespace, name, operation, size, pause in steps:
            exists = self.rig.store.latest(table, key_of(namespace, name)) is not None
            if operation == "remove" and not exists:
                continue
            try:
                if operation == "put":
                    future = self.rig.put(table, namespace, name, size=size)
                else:
                    future = self.rig.remove(table, namespace, name)
            except StoreStopped:
                break
            submitted.append((self._row(table, namespace, name, operation), future))
            if pause:
                await asyncio.sleep(0)
        self._learn(submitted, await outcomes([future for _, future in submitted]))

    def _row(self, table: str, namespace: str, name: str, operation: str) -> Row:
        """Only what the model needs of it; the bytes are looked up once the write is known to be stored."""
        return Row(self.rig.last_revision, None, DELETE if operation == "remove" else 0, table, namespace, name, self.rig.last_raw)

    def _learn(self, submitted: list[tuple[Row, "asyncio.Future[None]"]], results: list[BaseException | None]) -> None:
        for (row, _), error in zip(submitted, results, strict=True):
            if error is None:
                self._commit(row)
            else:
                assert isinstance(error, (StorageFullError, StoreStopped)), error

    def _commit(self, row: Row) -> None:
        key = key_of(row.namespace, row.name)
        self.model.commit(row.revision, row.kind, key, row.data, deleted=row.operation == DELETE)

    # --- what can go wrong -------------------------------------------------------------------------------------------------------

    @rule()
    def fill_the_disk(self) -> None:
        self.rig.database.fill()

    @rule()
    def make_room(self) -> None:
        self.rig.database.make_room()

    @rule(steps=st.lists(STEP, min_size=1, max_size=6), stored=st.booleans())
    def the_disk_fails(self, steps: list[Step], stored: bool) -> None:
        """An error that leaves open what was stored: the store stops, and finds out when it is started anew."""
        self.rig.database.fails_after_commit = stored
        self.rig.database.fails_before_commit = not stored
        before = self.rig.store.revision
        self.write(steps)
        assert self.rig.store.revision == before
        for row in self.rig.database.stored_although_failed:
            self._commit(row)
        self.restart()

    @rule()
    def restart(self) -> None:
        self.runner.run(self._restart())

    async def _restart(self) -> None:
        await self.rig.close()
        await self._open()

    @rule()
    def crash(self) -> None:
        self.runner.run(self._crash())

    async def _crash(self) -> None:
        self.lives += 1
        left_behind = copy_as_if_killed(self.path, self.folder / f"life-{self.lives}")
        await self.rig.close()
        self.path = left_behind
        await self._open()

    # --- compaction --------------------------------------------------------------------------------------------------------------

    @rule(part=PART, slices=st.sampled_from((1, 2, 100)), then=st.sampled_from(("go on", "restart", "crash")))
    def compact(self, part: float, slices: int, then: str) -> None:
        """All of it, or a few slices only, and what comes next may be a crash."""
        self.runner.run(self._compact(int(self.rig.store.revision * part), slices))
        if then == "restart":
            self.restart()
        elif then == "crash":
            self.crash()

    async def _compact(self, upto: int, slices: int) -> None:
        for _ in range(slices):
            if not self.rig.store.compact(upto):
                return
            self.model.compacted = max(self.model.compacted, upto)
            await self.rig.compacted()

    # --- looking -----------------------------------------------------------------------------------------------------------------

    @invariant()
    def what_is_acknowledged_is_there_and_nothing_else(self) -> None:
        if not hasattr(self, "rig"):
            return
        for table in TABLES:
            expected = self.model.state(table)
            assert list(self.rig.contents(table).items()) == list(expected.items())
            for key, raw in expected.items():
                newest = self.rig.store.latest(table, key)
                assert newest is not None and newest.raw == raw

    @invariant()
    def listeners_were_told_each_step_once_and_in_order(self) -> None:
        if hasattr(self, "rig"):
            assert self.rig.told == self.model.steps[self.known_at_start :]

    @invariant()
    def revisions_only_grow(self) -> None:
        if hasattr(self, "rig"):
            revisions = [step.revision for step in self.model.steps]
            assert revisions == sorted(set(revisions))
            assert self.rig.store.revision >= self.model.revision

    @rule(table=st.sampled_from(TABLES), part=PART)
    def history_is_whole_from_every_kept_revision(self, table: str, part: float) -> None:
        self.runner.run(self._history(table, int(self.rig.store.revision * part)))

    async def _history(self, table: str, revision: int) -> None:
        if revision < self.model.compacted:
            with pytest.raises(CompactedError):
                await self.rig.history(table, revision)
            with pytest.raises(CompactedError):
                await self.rig.contents_at(table, revision)
            return
        assert await self.rig.history(table, revision) == self.model.after(table, revision)
        assert list((await self.rig.contents_at(table, revision)).items()) == list(self.model.state(table, revision).items())

    @rule(
        table=st.sampled_from(TABLES), prefix=st.sampled_from(("", "a/", "b/")), after=st.sampled_from(("", "a/one", "b/z", "one"))
    )
    def scans_are_cut_to_what_was_asked(self, table: str, prefix: str, after: str) -> None:
        found = [record.key for record in self.rig.store.scan(table, prefix, after)]
        assert found == [key for key in self.model.state(table) if key.startswith(prefix) and key > after]

    @precondition(lambda self: hasattr(self, "rig"))
    @rule()
    def the_view_for_people_agrees(self) -> None:
        current = self.rig.database.current()
        expected = {(table, key): raw for table in TABLES for key, raw in self.model.state(table).items()}
        assert current == expected


class ThreadedMachine(StoreMachine):
    make_writer = staticmethod(threaded)


_SETTINGS: dict[str, Any] = {
    "max_examples": examples(60),
    "stateful_step_count": 30,
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
TestStoreWithInlineWriter = StoreMachine.TestCase
TestStoreWithInlineWriter.settings = settings(**_SETTINGS)
TestStoreWithThread = ThreadedMachine.TestCase
TestStoreWithThread.settings = settings(**_SETTINGS)

"""kill -9 at many points of a restore through the running engine: all as before or as in the backup, and watchers miss nothing."""

import asyncio
from pathlib import Path

import pytest

from herder.app.backups import backup_to, restore_from
from herder.app.data_directory import DataDirectory
from herder.app.refusal import Refusal
from tests.behaviour.crds import install, widgets_definition
from tests.crash.lives import Lives, many_lives
from tests.crash.observing import Snapshot, Watching, replayed
from tests.crash.writing import NAMESPACE, body_of, value_of
from tests.engines.api import Api, connect
from tests.engines.resources import CONFIG_MAPS, CRDS, NAMESPACES, Resource

pytestmark = pytest.mark.slow
# Of the calls up to the commit: most of the kills come before it and close around it, some far behind, when kinds are served anew.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.05, 1.1, 1.5, 3.0, 30.0)
OBJECTS = 30
NEVER = 10**12
WIDGETS = Resource("restored.example.com", "v1", "widgets", "Widget")
HERD = "herd"


class Restoring:
    """A data directory with two backups of it, one of a first state and one of a second, which share little."""

    def __init__(self, lives: Lives, api: Api, folder: Path) -> None:
        self.lives, self.api = lives, api
        self.directory = DataDirectory(folder / "data")
        self.files = {"first": folder / "first", "second": folder / "second"}
        self._file = folder / "calls"
        self.calls = 0
        self.snapshots: list[Snapshot] = []

    async def write_both(self) -> None:
        for number in range(OBJECTS):
            await self.api.create(CONFIG_MAPS, body_of(f"both-{number}", "first"), NAMESPACE)
            await self.api.create(CONFIG_MAPS, body_of(f"first-{number}", "first"), NAMESPACE)
        await backup_to(self.directory, self.files["first"])
        for number in range(OBJECTS):
            await self.api.update(CONFIG_MAPS, body_of(f"both-{number}", "second"), NAMESPACE)
            await self.api.create(CONFIG_MAPS, body_of(f"second-{number}", "second"), NAMESPACE)
            (await self.api.delete(CONFIG_MAPS, f"first-{number}", NAMESPACE)).ok  # noqa: B018
        # One that goes and comes back is another one.
        await self.api.delete(CONFIG_MAPS, "both-0", NAMESPACE)
        await self.api.create(CONFIG_MAPS, body_of("both-0", "second"), NAMESPACE)
        (await self.api.create(NAMESPACES, {"metadata": {"name": HERD}})).ok  # noqa: B018
        await install(self.api, widgets_definition(WIDGETS.group))
        (await self.api.create(WIDGETS, {"metadata": {"name": "one"}, "spec": {"size": 1}}, HERD)).ok  # noqa: B018
        await backup_to(self.directory, self.files["second"])

    async def state(self) -> str:
        """Which of the two it is; all of it must say so."""
        listed = (await self.api.list(CONFIG_MAPS, NAMESPACE)).ok
        objects = {item["metadata"]["name"]: value_of(item) for item in listed["items"]}
        self.snapshots.append(Snapshot(int(listed["metadata"]["resourceVersion"]), objects))
        name = objects["both-1"]
        assert objects == {f"{prefix}-{number}": name for prefix in ("both", name) for number in range(OBJECTS)}
        wanted = 200 if name == "second" else 404
        assert (await self.api.get(NAMESPACES, HERD)).code == wanted
        assert (await self.api.get(CRDS, f"{WIDGETS.plural}.{WIDGETS.group}")).code == wanted
        assert (await self.api.get(WIDGETS, "one", HERD)).code == wanted
        return name

    async def restore_other(self, calls: int) -> tuple[bool, bool]:
        """In a life that ends at so many calls: whether the restore was told to be done, and whether it was."""
        await self.lives.start(calls)
        await self.lives.ready()
        before = await self.state()
        other = "first" if before == "second" else "second"
        try:
            await restore_from(self.directory, self.files[other])
            told = True
            self.calls = self.calls or int.from_bytes(self._file.read_bytes(), "little")
        except Refusal as refusal:
            assert "all was restored, or nothing" in str(refusal)
            told = False
        await self.lives.kill()
        await self.lives.start()
        await self.lives.ready()
        after = await self.state()
        await self.lives.kill()
        return told, after == other


async def kill_all_over(restoring: Restoring) -> None:
    assert await restoring.restore_other(NEVER) == (True, True)
    assert restoring.calls > 1000
    seen: list[tuple[bool, bool]] = []
    for share in SHARES:
        told, done = await restoring.restore_other(max(1, round(restoring.calls * share)))
        assert done or not told, "it was told to be done, and was not"
        seen.append((told, done))
    assert seen[0] == (False, False)
    # Killed before it was told, and done all the same.
    assert (False, True) in seen


async def test_a_restore_that_is_killed_is_done_or_not_begun_and_watchers_miss_nothing(tmp_path: Path) -> None:
    holder = DataDirectory(tmp_path / "data")
    async with many_lives(tmp_path) as lives, connect(lives.engine) as api, connect(lives.engine) as other:
        # As `herder up` would: a restore then goes through the engine.
        holder.take("the test")
        restoring = Restoring(lives, api, tmp_path)
        await lives.start()
        await lives.ready()
        start = (await api.list(CONFIG_MAPS, NAMESPACE)).ok["metadata"]["resourceVersion"]
        watchers = [Watching(other, start, bookmarks=False), Watching(other, start, bookmarks=True)]
        upto: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            for watcher in watchers:
                group.create_task(watcher.run(upto))
            await restoring.write_both()
            await lives.kill()
            await kill_all_over(restoring)
            await lives.start()
            await lives.ready()
            last = (await api.update(CONFIG_MAPS, body_of("both-1", "end"), NAMESPACE)).ok
            upto.set_result(int(last["metadata"]["resourceVersion"]))
        await lives.kill()
        holder.release()
    for watcher in watchers:
        assert watcher.connections > len(SHARES)
        for snapshot in restoring.snapshots:
            assert snapshot.objects == replayed(watcher.saw, snapshot.revision)

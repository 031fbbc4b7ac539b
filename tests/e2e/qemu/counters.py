"""Real guests that count under `herder up`, and a witness who keeps every word that any of them ever said."""

from __future__ import annotations

import base64
import io
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.e2e.guest.machine import assert_unbroken, ticks_of
from tests.e2e.program import Up, is_running
from tests.e2e.qemu.test_up import down, machine
from tests.engines.api import Api, Json, connect
from tests.engines.resources import CONFIG_MAPS, PODS, Resource
from tests.engines.waiting import eventually

HERE = "default"
PATIENCE = 90.0
LOOK_EVERY = 0.02
MACHINES, INSTANCES = resource_of(registry.MACHINE), resource_of(registry.INSTANCE)
MIGRATIONS, POLICIES = resource_of(registry.MIGRATION), resource_of(registry.POLICY)


class Witness:
    """Opens every console as soon as it is there: what was said can be read when its pod, and its folder, are long gone."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._said: dict[str, tuple[str, io.BufferedReader]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            for log in self._data.glob("nodes/*/guests/*/console.log"):
                # Not whole yet, or gone again: the next look will tell.
                with suppress(OSError, json.JSONDecodeError):
                    # A pod that is tried once more has a new console in the same place.
                    console = f"{log.parent.name}/{log.stat().st_ino}"
                    if console not in self._said:
                        known = json.loads((log.parent / "guest.json").read_bytes())
                        self._said[console] = known["definition"]["instance"]["name"], log.open("rb")

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        for _, log in self._said.values():
            log.close()

    def _logs(self, name: str) -> list[io.BufferedReader]:
        return [log for owner, log in list(self._said.values()) if owner == name]

    def places(self, name: str) -> int:
        """In how many pods this machine has been, or should have come to."""
        return len(self._logs(name))

    def text(self, name: str) -> str:
        """All that it has said, in all its pods, one after the other; up to the last whole line."""
        said = b"".join(os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0) for log in self._logs(name))
        text = said.decode(errors="replace").replace("\r", "")
        return text[: text.rfind("\n") + 1]

    def assert_one_counter(self, name: str) -> None:
        """Two that ran at once would have said a number twice; one that was started anew would begin with 1 again."""
        text = self.text(name)
        assert text.count("boot ") == 1, text
        assert_unbroken(text)


class Counters:
    def __init__(self, up: Up, api: Api, witness: Witness, start: Callable[..., Up]) -> None:
        self.up = up
        self.api = api
        self.witness = witness
        self._start = start

    def start_again(self, *options: str) -> None:
        """Somebody types `herder up` once more."""
        self.up = self._start(self.up.port, *options)
        self.up.wait_ready()

    async def make(self, name: str, settings: str, memory: str = "64Mi", **spec: Any) -> None:
        document = machine(name, settings, terminationGracePeriodSeconds=5, **spec)
        document["spec"]["template"]["spec"]["domain"]["memory"] = {"guest": memory}
        # Little: ten of them shall find room on a third of two processors.
        document["spec"]["template"]["spec"]["domain"]["resources"] = {"requests": {"cpu": "20m"}}
        (await self.api.create(MACHINES, document, HERE)).ok  # noqa: B018

    async def all(self, resource: Resource) -> list[Json]:
        """An engine that is not there at the moment is asked again by who waits."""
        try:
            return (await self.api.list(resource, HERE)).items
        except aiohttp.ClientError as problem:
            raise AssertionError(f"the engine does not answer: {problem!r}") from problem

    async def counts(self, name: str) -> None:
        """It says two numbers more than it had said."""
        before = len(ticks_of(self.witness.text(name)))

        async def look() -> bool:
            return len(ticks_of(self.witness.text(name))) >= before + 2

        await eventually(look, PATIENCE)

    async def runs(self, name: str) -> Json:
        async def look() -> Json:
            (one,) = [one for one in await self.all(INSTANCES) if one["metadata"]["name"] == name] or [{}]
            assert one.get("status", {}).get("phase") == "Running", one
            return one

        found = await eventually(look, PATIENCE)
        await self.counts(name)
        return found

    def left(self) -> dict[str, list[str]]:
        """What is on this machine for guests: processes, and files by the uid of their pod."""
        nodes = self.up.data / "nodes"
        return {
            "processes": sorted(folder.name for folder in processes_in(self.up.data)),
            "folders": sorted(folder.name for folder in nodes.glob("*/guests/*")),
            "notes": sorted(note.name for note in nodes.glob("*/moves/*")),
        }

    async def nothing_is_left(self) -> None:
        async def look() -> bool:
            assert await self.all(PODS) == []
            assert self.left() == {"processes": [], "folders": [], "notes": []}
            return True

        await eventually(look, PATIENCE)


def processes_in(folder: Path) -> list[Path]:
    """The folder of each QEMU below it: they run where their files are."""
    found: list[Path] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            current = (process / "cwd").readlink()
            if current.is_relative_to(folder.resolve() / "nodes"):
                found.append(current)
    return found


@asynccontextmanager
async def counters(
    folder: Path, guest: Path, nodes: int, *, tireless: bool = False, settings: tuple[str, ...] = ()
) -> AsyncGenerator[Counters]:
    def start(port: int | None = None, *options: str) -> Up:
        return Up(folder, *(options or ("--runtime", "qemu", *settings)), nodes=nodes, tireless=tireless, port=port)

    up = start().wait_ready()
    witness = Witness(up.data)
    herd: Counters | None = None
    try:
        async with connect(up.connection(folder)) as api:
            content = base64.b64encode(guest.read_bytes()).decode()
            kernel = {"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
            (await api.create(CONFIG_MAPS, kernel, HERE)).ok  # noqa: B018
            herd = Counters(up, api, witness, start)
            yield herd
    finally:
        witness.close()
        last = herd.up if herd is not None else up
        last.end() if is_running(last.pid) else down(up.data)
    assert processes_in(up.data) == [], "no guest outlives the program"

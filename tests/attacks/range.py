"""Where attacks are fired: an engine of their own, its users, and the namespace that they may work in; and what each shot did."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from tests.attacks.attack import ADMINISTRATOR, ANYONE, EDITOR, NAMESPACE, OWNER, Attack, Plan, Shot, config_map, create
from tests.attacks.classes.definitions import GROUP
from tests.attacks.onlooker import Onlooker
from tests.engines.api import Api, connect
from tests.engines.credentials import bind, grant, rule, user, with_certificate
from tests.engines.embedded import run_embedded
from tests.engines.engine import Engine
from tests.engines.resources import NAMESPACES
from tests.engines.waiting import eventually

PATIENCE = aiohttp.ClientTimeout(total=180)
STREAM_ENDS = 3.0
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
# As many keys as an object can have and be stored with the list of who manages which.
KEYS = 24_000


class Outcome(NamedTuple):
    """What one shot did: how long others waited meanwhile, how much memory the engine took, and what it answered."""

    stall: float
    growth: int
    code: int
    answered: int


class Result(NamedTuple):
    """The worst of an attack's shots, and what each was answered."""

    name: str
    stall: float
    growth: int
    codes: tuple[int, ...]


class Range:
    def __init__(self, engine: Engine, people: dict[str, Api], onlooker: Onlooker, pid: int) -> None:
        self.engine = engine
        self._people = people
        self._onlooker = onlooker
        self._pid = pid

    async def attack(self, attack: Attack, size: int, times: int = 1) -> Result:
        """All shots, so many times. Of each the best time counts: what else the machine does is not the engine's doing."""
        plan = attack.make(size)
        before = await self.revision()
        for shot in plan.prepare:
            await self._send(shot, attack.who, before)
        if plan.served:
            await eventually(lambda: self._is_served(plan.served))
        rounds = [[await self._fire(shot, attack.who, before) for shot in plan.shots] for _ in range(times)]
        codes = tuple(outcome.code for outcome in rounds[0])
        assert all(tuple(outcome.code for outcome in again) == codes for again in rounds), f"{attack.name} cannot be repeated"
        best = [min(outcomes, key=lambda outcome: outcome.stall) for outcomes in zip(*rounds, strict=True)]
        return Result(attack.name, max(one.stall for one in best), max(one.growth for one in best), codes)

    async def _fire(self, shot: Shot, who: str, before: str) -> Outcome:
        self._onlooker.longest()
        memory = _memory(self._pid)
        _forget_peak(self._pid)
        code, answered = await self._send(shot, who, before)
        # What follows a write (others who hear of it, the garbage collector) is part of it.
        stall = max(self._onlooker.longest(), self._onlooker.longest())
        return Outcome(stall, _peak(self._pid) - memory, code, answered)

    async def _send(self, shot: Shot, who: str, before: str) -> tuple[int, int]:
        api = self._people[shot.who or who]
        headers = [("Content-Type", shot.content_type), *shot.headers] if shot.body else [*shot.headers]
        url = api.engine.server + shot.path.replace("{before}", before)
        async with api.session.request(shot.method, url, data=shot.body or None, headers=headers, timeout=PATIENCE) as answer:
            return answer.status, await _read(answer, shot.enough)

    async def _is_served(self, path: str) -> bool:
        return (await self._people[ADMINISTRATOR].request("GET", path)).code == 200

    async def revision(self) -> str:
        listed = await self._people[ADMINISTRATOR].list(NAMESPACES, limit=1)
        return listed.ok["metadata"]["resourceVersion"]

    async def baseline(self, times: int, keys: int = KEYS) -> Result:
        """What a valid ConfigMap does, as large as one can be: made, replaced, patched and applied, which all must be taken."""
        attack = Attack("a valid ConfigMap", EDITOR, lambda _: _valid(keys))
        result = await self.attack(attack, 0, times)
        assert set(result.codes) <= {200, 201}, result.codes
        return result


def _valid(keys: int) -> Plan:
    data = {f"key-{number:05d}": "x" * 16 for number in range(keys)}
    name = f"valid-{keys}"
    path, whole = f"{MAPS}/{name}?dryRun=All", config_map(name, data={**data, "one": "more"})
    other = {**data, "key-00000": "y"}
    apply = f"{path}&fieldManager=other&force=true"
    return Plan(
        [
            create(f"{MAPS}?dryRun=All", config_map("new", data=data)),
            Shot("PUT", path, create(path, whole).body),
            Shot("PATCH", path, create(path, {"data": other}).body, "application/merge-patch+json"),
            Shot("PATCH", apply, create(path, config_map(name, data=other)).body, "application/apply-patch+yaml"),
        ],
        [create(MAPS, config_map(name, data=data))],
    )


async def _read(answer: aiohttp.ClientResponse, enough: int) -> int:
    """How many bytes came. A stream is left when it was enough, or says nothing for a while."""
    if not enough:
        return len(await answer.read())
    read, ends = 0, time.monotonic() + STREAM_ENDS
    while read < enough and time.monotonic() < ends:
        chunk = await answer.content.readany()
        if not chunk:
            break
        read += len(chunk)
    answer.close()
    return read


# --- the engine's memory ---------------------------------------------------------------------------------------------------------


def _memory(pid: int) -> int:
    return _status(pid, "VmRSS")


def _peak(pid: int) -> int:
    return _status(pid, "VmHWM")


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _pid_of(folder: Path) -> int:
    """The process that serves: the one whose data is there, and that has the store open."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and any(_is_store(link, str(folder / "data")) for link in _open_files(process)):
            return int(process.name)
    raise AssertionError("no process has the store open")


def _open_files(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        return []


def _is_store(link: Path, folder: str) -> bool:
    try:
        file = os.readlink(link)
    except OSError:
        # Closed since: connections come and go.
        return False
    return file.startswith(folder) and file.endswith(".db")


# --- making it -------------------------------------------------------------------------------------------------------------------


@contextmanager
def engine_under_attack(folder: Path) -> Generator[tuple[Engine, int]]:
    with run_embedded(folder) as engine:
        yield engine, _pid_of(folder)


@asynccontextmanager
async def shooting_range(engine: Engine, pid: int) -> AsyncGenerator[Range]:
    async with AsyncExitStack() as stack:
        administrator = await stack.enter_async_context(connect(engine))
        await _allow(administrator)
        people = {ADMINISTRATOR: administrator}
        for name in (ANYONE, EDITOR, OWNER):
            people[name] = await stack.enter_async_context(with_certificate(engine, name))
        onlooker = stack.enter_context(Onlooker(engine))
        yield Range(engine, people, onlooker, pid)


async def _allow(api: Api) -> None:
    (await api.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})).ok  # noqa: B018
    example = rule("create", "configmaps")
    await bind(api, NAMESPACE, "edit", user(EDITOR), example)
    await bind(api, NAMESPACE, "admin", user(OWNER), example)
    await grant(api, NAMESPACE, user(EDITOR), rule("*", "*", GROUP))

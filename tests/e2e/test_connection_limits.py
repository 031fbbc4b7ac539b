"""More connections than the engine has files for: administrators get in, health is told, and our own processes notice nothing."""

import asyncio
import re
import ssl
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.attacks.connections import ATTACKS, Attack, many
from tests.e2e.program import Up
from tests.engines import credentials
from tests.engines.api import Api, connect
from tests.engines.credentials import grant, rule
from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.engine import Engine
from tests.engines.processes import client_context
from tests.engines.resources import CONFIG_MAPS, LEASES
from tests.engines.waiting import eventually

FILES = 1024
MANY = 1100
PATH = CONFIG_MAPS.path("default")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("crowded"), "--heartbeat", "0.5", nodes=1, limit=f"ulimit -n {FILES}") as running:
        yield running


@pytest.fixture(scope="module")
def admin(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return up.connection(tmp_path_factory.mktemp("admin"))


def limits_of(pid: int) -> tuple[str, str]:
    """Soft and hard, of open files."""
    found = re.search(r"Max open files +(\d+) +(\d+)", Path(f"/proc/{pid}/limits").read_text())
    assert found is not None
    return found[1], found[2]


def files_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def health(up: Up, path: str) -> tuple[int, str]:
    """As somebody without credentials, over a connection of its own."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=context)
    timeout = aiohttp.ClientTimeout(30)
    async with (
        aiohttp.ClientSession(f"https://127.0.0.1:{up.port}", connector=connector, timeout=timeout) as session,
        session.get(path) as answer,
    ):
        return answer.status, await answer.text()


@asynccontextmanager
async def watching(engine: Engine, count: int) -> AsyncGenerator[list[aiohttp.ClientResponse]]:
    """So many watches of one user, each a connection that is in use."""
    connector = aiohttp.TCPConnector(ssl=client_context(engine), limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as session:
        answers: list[aiohttp.ClientResponse] = []
        for _ in range(0, count, 50):
            answers += await asyncio.gather(*(session.get(f"{engine.server}{PATH}?watch=1") for _ in range(50)))
        yield answers
        for answer in answers:
            answer.close()


async def heartbeat(api: Api) -> str:
    return (await api.get(LEASES, "node-1", "kube-node-lease")).ok["spec"]["renewTime"]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_an_administrator_gets_in_however_many_say_nothing(up: Up, admin: Engine, attack: Attack) -> None:
    log_before = len(up.err)
    engine = up.child("engine")
    async with connect(admin) as early, many(attack, ("127.0.0.1", up.port), MANY):
        for number in range(5):
            async with connect(admin) as api, asyncio.timeout(30):
                assert (await api.list(CONFIG_MAPS, "default", limit=1)).code == 200, number
        assert await health(up, "/readyz") == (200, "ok")
        assert await health(up, "/livez") == (200, "ok")
        assert files_of(engine) < FILES
        # Who was connected before still is, and the node's agent is heard.
        last = await heartbeat(early)

        async def goes_on() -> bool:
            return await heartbeat(early) != last

        await eventually(goes_on)
    said = up.err[log_before:]
    assert "Traceback" not in said
    assert len(said) < 10_000
    assert up.child("engine") == engine


def user(up: Up, folder: Path, name: str) -> Engine:
    """With a kubeconfig as `herder user add` makes it."""
    own = folder / name
    own.mkdir()
    command = [str(find_program()), "user", "add", name, "--data", str(up.data), "--kubeconfig", str(own / "config")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return read_kubeconfig("embedded", own / "config", own)


async def test_the_connections_of_one_user_leave_room_for_others(up: Up, admin: Engine, tmp_path: Path) -> None:
    anna, bert = user(up, tmp_path, "anna"), user(up, tmp_path, "bert")
    async with connect(admin) as api:
        for name in ("anna", "bert"):
            await grant(api, "default", credentials.user(name), rule("list watch", "configmaps"))
        async with watching(anna, 500) as answers:
            codes = [answer.status for answer in answers]
            refusals = [await answer.text() for answer in answers if answer.status != 200]
            assert set(codes) == {200, 429}
            assert all("connections of anna are in use" in one for one in refusals), refusals[:3]
            # Nobody else notices: neither another user, nor an administrator.
            async with connect(bert) as other, asyncio.timeout(30):
                assert (await other.list(CONFIG_MAPS, "default", limit=1)).code == 200
            async with connect(admin) as late, asyncio.timeout(30):
                assert (await late.list(CONFIG_MAPS, "default", limit=1)).code == 200
            assert await health(up, "/healthz") == (200, "ok")


def test_every_process_takes_as_many_files_as_it_may_have(tmp_path: Path) -> None:
    with Up(tmp_path, nodes=1, limit="ulimit -S -n 300; ulimit -H -n 2000") as up:
        for name in ("engine", "controllers", "agents"):
            assert limits_of(up.child(name)) == ("2000", "2000")

"""`herder backup` and `herder restore`, as a person types them: while it runs, while it does not, and elsewhere."""

import asyncio
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

from tests.e2e.program import Ended, Up
from tests.engines.api import Api, connect
from tests.engines.embedded import find_program
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, NODES, SECRETS

REFUSED_DATA, REFUSED_FILE = 3, 6


def herder(*arguments: str | Path) -> Ended:
    command = [str(find_program()), *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Ended(answer.returncode, answer.stdout, answer.stderr)


async def in_background(*arguments: str | Path) -> str:
    ended = await asyncio.to_thread(herder, *arguments)
    assert ended.code == 0, ended.err
    return ended.out


def body(name: str, value: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"value": value}}


async def write_on(api: Api, stop: asyncio.Event) -> int:
    """Pairs that are only ever right together: both have the same number."""
    number = 0
    while not stop.is_set():
        number += 1
        await api.create(CONFIG_MAPS, body(f"left-{number:05}", "x"), "busy")
        await api.create(CONFIG_MAPS, body(f"right-{number:05}", "x"), "busy")
    return number


async def test_a_backup_and_a_restore_while_everything_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    with Up(tmp_path) as up:
        async with connect(up.connection(tmp_path)) as api:
            await api.create(NAMESPACES, {"metadata": {"name": "busy"}})
            await api.create(SECRETS, {"metadata": {"name": "kept"}, "stringData": {"a": "b"}}, "default")
            kept = (await api.get(SECRETS, "kept", "default")).ok
            stop = asyncio.Event()
            writing = asyncio.create_task(write_on(api, stop))
            told = await in_background("backup", file, "--data", up.data)
            assert "objects are in" in told
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            stop.set()
            await writing
            await api.delete(SECRETS, "kept", "default")
            start = (await api.list(CONFIG_MAPS, "busy")).ok
            async with api.watch(CONFIG_MAPS, "busy", resourceVersion=start["metadata"]["resourceVersion"]) as watch:
                await in_background("restore", file, "--data", up.data)
                after = (await api.list(CONFIG_MAPS, "busy")).ok
                gone = {one["metadata"]["name"] for one in start["items"]} - {one["metadata"]["name"] for one in after["items"]}
                events = await watch.take(len(gone))
                assert {event.brief for event in events} == {("DELETED", name) for name in gone}
                assert min(int(event.version) for event in events) > int(start["metadata"]["resourceVersion"])
            names = sorted(one["metadata"]["name"] for one in after["items"])
            lefts = {name.removeprefix("left-") for name in names if name.startswith("left-")}
            rights = {name.removeprefix("right-") for name in names if name.startswith("right-")}
            # One moment: at most the pair that was just being written is half there.
            assert rights <= lefts
            assert len(lefts - rights) <= 1
            back = (await api.get(SECRETS, "kept", "default")).ok
            assert (back["metadata"]["uid"], back["data"]) == (kept["metadata"]["uid"], kept["data"])
            # The nodes of this machine go on as well.
            assert (await api.get(NODES, "node-1")).ok["metadata"]["name"] == "node-1"


async def test_a_restore_elsewhere_keeps_kubeconfigs_working(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with Up(tmp_path / "first", nodes=0) as up:
        old = up.connection(tmp_path / "first")
        async with connect(old) as api:
            made = (await api.create(CONFIG_MAPS, body("a", "x"), "default")).ok
    assert herder("backup", file, "--data", up.data).code == 0
    elsewhere = tmp_path / "second" / "data"
    assert herder("restore", file, "--data", elsewhere).code == 0
    with Up(tmp_path / "second", data=elsewhere, nodes=0) as moved:
        server = f"https://127.0.0.1:{moved.port}"
        async with connect(replace(old, server=server)) as api:
            found = (await api.get(CONFIG_MAPS, "a", "default")).ok
            assert found["metadata"]["uid"] == made["metadata"]["uid"]
            assert int(found["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
            async with api.watch(CONFIG_MAPS, "default", resourceVersion=made["metadata"]["resourceVersion"]) as watch:
                assert (await watch.next()).object["code"] == 410


async def test_what_cannot_be_restored_is_said_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    with Up(tmp_path, nodes=0) as up:
        assert herder("backup", file, "--data", up.data).code == 0
        async with connect(up.connection(tmp_path)) as api:
            await api.create(CONFIG_MAPS, body("later", "x"), "default")
            version = (await api.list(CONFIG_MAPS)).ok["metadata"]["resourceVersion"]
            whole = file.read_bytes()
            for content, sentence in ((whole[:-20], "not whole"), (b"PK\x03\x04", "not a herder backup")):
                file.write_bytes(content)
                ended = herder("restore", file, "--data", up.data)
                assert (ended.code, ended.out) == (REFUSED_FILE, "")
                assert sentence in ended.err
            assert (await api.list(CONFIG_MAPS)).ok["metadata"]["resourceVersion"] == version
    # A directory that is not there yet stays so.
    assert herder("restore", file, "--data", tmp_path / "none").code == REFUSED_FILE
    assert not (tmp_path / "none").exists()


def test_a_backup_writes_over_nothing_else(tmp_path: Path) -> None:
    letter = tmp_path / "letter"
    letter.write_text("dear")
    ended = herder("backup", letter, "--data", tmp_path)
    assert (ended.code, letter.read_text()) == (REFUSED_FILE, "dear")
    assert "exists and is not a herder backup" in ended.err


def test_there_must_be_something_to_back_up(tmp_path: Path) -> None:
    ended = herder("backup", tmp_path / "b", "--data", tmp_path / "none")
    assert (ended.code, list(tmp_path.iterdir())) == (REFUSED_DATA, [])
    assert "there is no herder data" in ended.err

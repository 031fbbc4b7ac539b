"""How the engine asks the other processes what they count."""

import asyncio
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from herder.app import scrape
from herder.app.data_directory import DataDirectory
from herder.app.health import serve_health
from herder.app.scrape import Scraper, listen_for_scrapes, metrics_socket


@asynccontextmanager
async def process(directory: DataDirectory, name: str) -> AsyncGenerator[list[None]]:
    """One that answers; how often it was asked."""
    asked: list[None] = []
    registry = CollectorRegistry()
    Gauge("alive", "It answers.", registry=registry).set_function(lambda: asked.append(None) or 1)
    async with serve_health(listen_for_scrapes(directory, name), registry, lambda: "", lambda: ""):
        yield asked


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path)


def scraper(directory: DataDirectory, *names: str) -> Scraper:
    return Scraper({name: metrics_socket(directory, name) for name in names}, patience=0.3)


async def test_one_that_hangs_one_that_died_and_one_that_never_was_keep_nobody_from_the_others(directory: DataDirectory) -> None:
    hangs = listen_for_scrapes(directory, "hangs")
    hangs.listen()
    listen_for_scrapes(directory, "died").close()
    with hangs:
        async with process(directory, "answers"):
            async with asyncio.timeout(20):
                texts = await scraper(directory, "hangs", "answers", "died", "never-was").scrape()
    answer = texts["answers"]
    assert answer is not None and b"\nalive 1.0\n" in answer
    assert texts == {"hangs": None, "answers": answer, "died": None, "never-was": None}


async def test_one_that_says_too_much_is_left_out(directory: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    async with process(directory, "talks"):
        whole = (await scraper(directory, "talks").scrape())["talks"]
        assert whole is not None
        monkeypatch.setattr(scrape, "MOST_BYTES", len(whole) - 1)
        assert (await scraper(directory, "talks").scrape())["talks"] is None


async def test_however_many_ask_at_once_each_process_is_asked_once(directory: DataDirectory) -> None:
    async with process(directory, "one") as asked:
        scraping = scraper(directory, "one")
        first = asyncio.create_task(scraping.scrape())
        others = [asyncio.create_task(scraping.scrape()) for _ in range(20)]
        await asyncio.sleep(0)
        # Who goes away takes the answer from nobody.
        first.cancel()
        assert all(one["one"] for one in await asyncio.gather(*others))
        assert len(asked) == 1
        await scraping.scrape()
        assert len(asked) == 2, "who asks later hears what is so later"


async def test_only_our_user_can_ask_and_a_new_process_takes_the_place_of_one_that_died(tmp_path: Path) -> None:
    # A name that is too long for a socket of its own, too.
    directory = DataDirectory(tmp_path / ("d" * 120))
    directory.path.mkdir()
    for _ in range(2):
        async with process(directory, "one"):
            path = directory.path / "metrics-one.sock"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (await scraper(directory, "one").scrape())["one"]
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
        client.connect(str(metrics_socket(directory, "one")))

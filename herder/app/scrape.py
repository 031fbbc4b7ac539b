"""What the processes of one `herder up` count: each says it on a unix socket of its own, and the engine asks them all.

The sockets lie in the data directory, which nobody but its user can enter. A process that is gone, hangs or says too much has no
text this time; those of the others are shown all the same, and nobody waits for it for longer than a moment.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from herder.app.data_directory import DataDirectory
from herder.kit.tasks import watched

# Seconds for a process to answer. A loop that is busy answers within that; whoever scrapes has ten times as long.
PATIENCE = 1.0
MOST_BYTES = 8 << 20
Texts = Mapping[str, bytes | None]


def metrics_socket(directory: DataDirectory, process: str) -> Path:
    return directory.socket_named(f"metrics-{process}")


def listen_for_scrapes(directory: DataDirectory, process: str) -> socket.socket:
    """In place of the one of a process that died. Readable by our user alone, whatever the umask says."""
    path = metrics_socket(directory, process)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    return listener


class Scraper:
    def __init__(self, sockets: Mapping[str, Path], patience: float = PATIENCE) -> None:
        self._sockets = sockets
        self._patience = aiohttp.ClientTimeout(total=patience)
        self._asking: asyncio.Task[Texts] | None = None

    async def scrape(self) -> Texts:
        """All at once. Who asks while they are being asked gets the same answer: however many ask, each process is asked once."""
        if self._asking is None or self._asking.done():
            self._asking = watched(self._ask_all(), "asking the other processes for their numbers")
        return await asyncio.shield(self._asking)

    async def _ask_all(self) -> Texts:
        texts = await asyncio.gather(*(_ask(path, self._patience) for path in self._sockets.values()))
        return dict(zip(self._sockets, texts, strict=True))


async def _ask(path: Path, patience: aiohttp.ClientTimeout) -> bytes | None:
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=patience) as session,
            session.get("http://herder/metrics") as answer,
        ):
            text = await _read(answer)
            return text if answer.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None


async def _read(answer: aiohttp.ClientResponse) -> bytes | None:
    text = bytearray()
    async for chunk in answer.content.iter_any():
        text += chunk
        if len(text) > MOST_BYTES:
            return None
    return bytes(text)

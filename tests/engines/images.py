"""A folder of disk images, over HTTP."""

from __future__ import annotations

import functools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Images(SimpleHTTPRequestHandler):
    """Told to nobody's terminal."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def images_of(folder: Path) -> Generator[str]:
    """Yields the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Images, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()

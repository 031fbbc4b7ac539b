"""Somebody else, while an attack goes on: asks for `/readyz` and one small object again and again, and notes how long it waited.

A process of its own, which does nothing else: what it measures is the engine, and not the attacker that prepares its next shot.
"""

from __future__ import annotations

import http.client
import json
import selectors
import ssl
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.engines.engine import Engine
from tests.engines.processes import die_with_parent

PATHS = ("/readyz", "/api/v1/namespaces/default")
PATIENCE = 120.0
ROOT = Path(__file__).resolve().parents[2]


class Onlooker:
    """`with Onlooker(engine) as onlooker`: what it saw since it was last asked is told by `longest`."""

    def __init__(self, engine: Engine) -> None:
        where = [engine.server, engine.ca, engine.client_certificate, engine.client_key]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attacks.onlooker", *map(str, where)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            preexec_fn=die_with_parent,
        )

    def __enter__(self) -> Onlooker:
        self.longest()  # it is there, and its connection is made
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def longest(self) -> float:
        """The longest that one answer took since the last time, in seconds. Waits for the one that is under way."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("?\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the onlooker has ended: the engine did not answer it"
        return json.loads(line)


def look(server: str, ca: str, certificate: str, key: str) -> None:
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(certificate, key)
    connection = http.client.HTTPSConnection(server.removeprefix("https://"), context=context, timeout=PATIENCE)
    asked = selectors.DefaultSelector()
    asked.register(sys.stdin, selectors.EVENT_READ)
    longest = 0.0
    while True:
        for path in PATHS:
            began = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, (path, answer.status)
            longest = max(longest, time.perf_counter() - began)
        if asked.select(0.001):
            sys.stdin.readline()
            sys.stdout.write(f"{longest}\n")
            sys.stdout.flush()
            longest = 0.0


if __name__ == "__main__":
    look(*sys.argv[1:])

"""One engine of each kind per test run, started by the first test that asks, in whichever process it runs."""

import contextlib
import secrets
import shutil
import tempfile
import threading
from contextlib import ExitStack
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from tests.engines.embedded import run_embedded
from tests.engines.engine import Engine, Unavailable
from tests.engines.herd import run_herd
from tests.engines.install import install_on
from tests.engines.kubernetes import run_kubernetes

STARTERS = {"embedded": run_embedded, "kubernetes": run_kubernetes}
HERD = "herd-on-"
Answer = Engine | Unavailable | RuntimeError


class Pool:
    """Engines of this process. What happened at the first try is the answer to all that follow."""

    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}
        self._running = ExitStack()
        self._lock = threading.Lock()

    def ask(self, name: str) -> Answer:
        with self._lock:
            if name not in self._answers:
                self._answers[name] = self._start(name)
            return self._answers[name]

    def _start(self, name: str) -> Answer:
        folder = Path(tempfile.mkdtemp(prefix=f"herder-{name}-"))
        self._running.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            engine = self._running.enter_context(STARTERS[name.removeprefix(HERD)](folder))
            if name.startswith(HERD):
                self._add_herd(engine, folder)
            return engine
        except (Unavailable, RuntimeError) as problem:
            return problem

    def _add_herd(self, engine: Engine, folder: Path) -> None:
        """Nodes, and who makes machines of what is written. An engine of its own: elsewhere nobody else may touch the objects."""
        install_on(engine)
        self._running.enter_context(run_herd(engine, folder))

    def close(self) -> None:
        with self._lock:
            self._running.close()
            self._answers.clear()


class Broker:
    """Lets the workers of a parallel run ask the pool of the process that started them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._key = secrets.token_bytes(16)
        self._listener = Listener(family="AF_UNIX", authkey=self._key)
        self.address = {"address": str(self._listener.address), "key": self._key.hex()}
        # Daemon: it lives as long as the process, and so do the engines that it starts.
        threading.Thread(target=self._serve, daemon=True, name="engine-broker").start()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError), self._listener.accept() as connection:
                self._answer(connection)

    def _answer(self, connection: Connection) -> None:
        connection.send(self._pool.ask(connection.recv()))


def ask_broker(address: dict[str, str], name: str) -> Answer:
    with Client(address["address"], family="AF_UNIX", authkey=bytes.fromhex(address["key"])) as connection:
        connection.send(name)
        return connection.recv()

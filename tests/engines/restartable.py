"""An engine of a test's own, whose API server can be killed and started again on the same address and the same data."""

import json
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from herder.server.store import Database, InlineWriter, Store
from tests.engines.certificates import Authority, write_key
from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.engine import Engine
from tests.engines.kubernetes import api_server_command, engine_at, etcd_command, find_programs
from tests.engines.processes import Child, client_context, free_ports, wait_until_file, wait_until_ready


class Restartable:
    def __init__(self, engine: Engine, start: Callable[[], Child], child: Child, compact: Callable[[int], None]) -> None:
        self.engine = engine
        self._start = start
        self._child = child
        self._compact = compact

    def kill(self) -> None:
        self._child.stop()

    def start(self) -> None:
        self._child = self._start()
        wait_until_ready(self.engine, [self._child], 60)

    def forget_history(self, revision: int) -> None:
        """Only while it is not running."""
        self._compact(revision)


@contextmanager
def restartable(name: str, folder: Path) -> Generator[Restartable]:
    with (_embedded if name == "embedded" else _kubernetes)(folder) as made:
        try:
            yield made
        finally:
            made.kill()


@contextmanager
def _embedded(folder: Path) -> Generator[Restartable]:
    (port,) = free_ports(1)
    kubeconfig, data = folder / "kubeconfig", folder / "data"
    arguments = [
        "up",
        "--data",
        str(data),
        "--listen",
        f"127.0.0.1:{port}",
        "--nodes",
        "0",
        "--no-controllers",
        "--kubeconfig",
        str(kubeconfig),
    ]

    def start() -> Child:
        return Child([str(find_program()), *arguments], folder / "herder.log")

    def compact(revision: int) -> None:
        database = Database(next(data.rglob("*.db")))
        store = Store(database, InlineWriter(database))
        while store.compact(revision):
            pass
        store.close()

    child = start()
    wait_until_file(kubeconfig, child, 20)
    engine = read_kubeconfig("embedded", kubeconfig, folder)
    wait_until_ready(engine, [child], 20)
    yield Restartable(engine, start, child, compact)


@contextmanager
def _kubernetes(folder: Path) -> Generator[Restartable]:
    programs = find_programs()
    etcd_port, peer_port, port = free_ports(3)
    authority = Authority(folder)
    admin, serving = authority.sign("admin", "system:masters"), authority.sign("serving")
    write_key(folder / "accounts.key")
    engine = engine_at(folder, f"https://127.0.0.1:{port}", authority, admin)

    def start(command: list[str]) -> Child:
        return Child([str(programs / command[0]), *command[1:]], folder / f"{command[0]}.log")

    def start_server() -> Child:
        return start(api_server_command(folder, port, etcd_port, authority, serving))

    def compact(revision: int) -> None:
        body = json.dumps({"revision": str(revision), "physical": True}).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{etcd_port}/v3/kv/compaction", body)
        urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=client_context(engine))
        ).open(request, timeout=30).close()

    etcd = start(etcd_command(folder, etcd_port, peer_port, authority, serving))
    try:
        child = start_server()
        wait_until_ready(engine, [etcd, child], 60)
        yield Restartable(engine, start_server, child, compact)
    finally:
        etcd.stop()

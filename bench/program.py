"""The installed program with nodes and controllers, as a person starts it."""

import os
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import cpu_seconds, descendants, resident_bytes
from bench.sides import OURS, Side
from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.processes import Child, free_ports, wait_until_file, wait_until_ready

PATIENCE = 600


@dataclass(frozen=True)
class Up:
    side: Side
    # From the start of the program until it says that it is up.
    seconds: float

    def _named(self, word: str) -> set[int]:
        return {one for one in self.side.processes() if word in _command(one)}

    def cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(self._named(name)) for name in ("engine", "controllers", "agents")}

    def controllers(self) -> set[int]:
        """The process itself, and no other that was told about them."""
        return {one for one in self.side.processes() if "herder.app controllers " in f"{_command(one)} "}

    def memory(self) -> dict[str, int]:
        return {name: resident_bytes(self._named(name)) for name in ("engine", "controllers", "agents")}


@contextmanager
def herder_up(folder: Path, nodes: int, runtime: str = "simulated", *options: str) -> Generator[Up]:
    folder.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    kubeconfig = folder / "kubeconfig"
    where = ["--data", str(folder / "data"), "--listen", f"127.0.0.1:{port}", "--kubeconfig", str(kubeconfig)]
    before = descendants([os.getpid()])
    began = time.perf_counter()
    child = Child([str(find_program()), "up", *where, "--nodes", str(nodes), "--runtime", runtime, *options], folder / "herder.log")
    try:
        wait_until_file(kubeconfig, child, 30)
        engine = read_kubeconfig("embedded", kubeconfig, folder)
        wait_until_ready(engine, [child], 30)
        _wait_until_up(child)
        took = time.perf_counter() - began
        yield Up(Side(OURS, engine, frozenset(descendants([os.getpid()]) - before)), took)
    finally:
        child.stop(patience=30)


def _wait_until_up(child: Child) -> None:
    deadline = time.monotonic() + PATIENCE
    while not re.search(r"^herder is up", child.log.read_text(errors="replace"), re.MULTILINE):
        child.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"herder is not up after {PATIENCE} s:\n{child.tail()}")
        time.sleep(0.05)


def _command(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    # Of `python -m herder.app agents --data …` the name of the part, and nothing of the paths.
    return " ".join(word.decode(errors="replace") for word in words if b"/" not in word)

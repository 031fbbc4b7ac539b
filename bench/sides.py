"""The two sides of a measurement, both running, each with the processes that it costs."""

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import cpu_seconds, descendants
from bench.real import run_real
from tests.engines.embedded import run_embedded
from tests.engines.engine import Engine, Unavailable

OURS = "herder"
THEIRS = "kubernetes"


@dataclass(frozen=True)
class Side:
    name: str
    engine: Engine
    roots: frozenset[int]

    def processes(self) -> set[int]:
        return {*self.roots, *descendants(self.roots)}

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.processes())


@dataclass(frozen=True)
class Options:
    quick: bool
    # Where the servers keep their data: it should be on a disk, or durability costs neither side anything.
    folder: Path

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @property
    def rounds(self) -> int:
        return self.pick(5, 2)

    @property
    def seconds(self) -> float:
        return self.pick(5, 2)


@contextmanager
def temporary(options: Options) -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="herder-bench-", dir=options.folder, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def start(name: str, run: Callable[[Path], AbstractContextManager[Engine]], folder: Path) -> Generator[Side]:
    folder.mkdir(exist_ok=True)
    before = descendants([os.getpid()])
    with run(folder) as engine:
        yield Side(name, engine, frozenset(descendants([os.getpid()]) - before))


@contextmanager
def herder(folder: Path) -> Generator[Side]:
    """The installed program, as a person starts it, without nodes; on the data that `folder` already holds."""
    (folder / "kubeconfig").unlink(missing_ok=True)  # of an earlier start, on another port
    with start(OURS, run_embedded, folder) as side:
        yield side


@contextmanager
def both(options: Options) -> Generator[tuple[list[Side], list[str]]]:
    """Each side that this machine can run, and a note for each that it cannot."""
    with temporary(options) as folder, ExitStack() as stack:
        sides = [stack.enter_context(start(OURS, run_embedded, folder / OURS))]
        notes: list[str] = []
        try:
            sides.append(stack.enter_context(start(THEIRS, run_real, folder / THEIRS)))
        except Unavailable as reason:
            notes.append(f"only one side was measured: {reason}")
        yield sides, notes

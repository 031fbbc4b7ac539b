"""The installed program, started the way a person starts it: what it printed, who its processes are, how it ended."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.engines.embedded import find_program, read_kubeconfig
from tests.engines.engine import Engine
from tests.engines.processes import free_ports

READY = "Ctrl-C stops it."
# The same program, except that a process of it that dies is always started again at once: a test may kill it more often than a
# supervisor would think healthy.
TIRELESS = "from herder.app import children, main; children.HEALTHY_AFTER = 0.0; main.main()"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
Value = TypeVar("Value")


def until(look: Callable[[], Value], what: str, patience: float = 20.0, pause: float = 0.02) -> Value:
    """The first true answer of `look`; what is still false when patience is over fails the test."""
    deadline = time.monotonic() + patience
    while not (value := look()):
        assert time.monotonic() < deadline, f"after {patience:.0f} s: {what}"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
    return value


def _die_with_the_tests() -> None:
    # As in a terminal, also where the tests run under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Told so, and not killed: it ends its guests, which would outlive it.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def run_up(*arguments: str, cwd: Path, program_path: str | None = None) -> Ended:
    """`herder up` where it is expected to end by itself."""
    environment = os.environ | ({"PATH": program_path} if program_path is not None else {})
    command = [str(find_program()), "up", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=30, check=False)
    return Ended(answer.returncode, answer.stdout, answer.stderr)


class Up:
    """`herder up` in the foreground of a shell of its own."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        data: Path | None = None,
        port: int | None = None,
        nodes: int = 1,
        tireless: bool = False,
        limit: str = "",
    ) -> None:
        """`limit` is what a shell does before, such as `ulimit -n 1024`."""
        self.data = data or folder / "data"
        self.port = port or free_ports(1)[0]
        self._out, self._err = folder / "out", folder / "err"
        program = [sys.executable, "-c", TIRELESS] if tireless else [str(find_program())]
        command = [*program, "up", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}", "--nodes", str(nodes)]
        if "--runtime" not in options:
            # The same on every machine, whether QEMU is installed or not.
            command += ["--runtime", "simulated"]
        if limit:
            command = ["sh", "-c", f'{limit}; exec "$@"', "sh", *command]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*command, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                start_new_session=True,
                preexec_fn=_die_with_the_tests,
            )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self.wait_ready()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.end()

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def kubeconfig(self) -> Path:
        found = re.search(r"export KUBECONFIG=(.+)", self.out)
        assert found, self.out
        return Path(found.group(1).strip("'"))

    def connection(self, folder: Path) -> Engine:
        return read_kubeconfig("embedded", self.kubeconfig, folder)

    def wait_ready(self) -> Self:
        def ready() -> bool:
            assert self._process.poll() is None, f"herder up ended with {self._process.returncode}: {self.out}{self.err}"
            return READY in self.out

        try:
            until(ready, "herder up had not said that it is up")
        except AssertionError:
            if self._process.poll() is None:
                self.end()
            raise
        return self

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends the signal and waits; the exit code."""
        self._process.send_signal(number)
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def child(self, name: str) -> int:
        """The process id of the engine or of the agents."""
        until(lambda: name in self.children(), f"there is no {name} process")
        return self.children()[name]

    def children(self) -> dict[str, int]:
        return children_of(self.pid)


def children_of(parent: int) -> dict[str, int]:
    """Which of our processes this one has started, by what they are."""
    found: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue  # gone between the look at the list and the look at it
        if int(status.rpartition(")")[2].split()[1]) == parent and "herder.app" in words:
            found[words[words.index("herder.app") + 1]] = int(folder.name)
    return found


def is_running(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

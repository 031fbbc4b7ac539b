"""Child processes that never outlive the test run, however it ends."""

import ctypes
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.engines.engine import Engine

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all are held until the last is known, so they differ."""
    holders = [socket.socket() for _ in range(count)]
    for holder in holders:
        holder.bind(("127.0.0.1", 0))
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def die_with_parent() -> None:
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A program with its output in a log file. The kernel kills it when the thread that started it is gone, kill -9 included."""

    def __init__(self, command: list[str], log: Path, folder: Path | None = None) -> None:
        """Runs in the folder of its log unless told otherwise."""
        self.program = Path(command[0]).name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder or log.parent,
                start_new_session=True,  # Ctrl-C in the terminal is for pytest, which then stops us in order
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.program} ended with {self._process.returncode}:\n{self.tail()}")

    def ended(self) -> int | None:
        """Its exit code, once there is one."""
        return self._process.poll()

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def stop(self, patience: float = 0.0) -> None:
        """Ask first when there is patience; kill otherwise."""
        if patience:
            self._process.terminate()
            try:
                self._process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                pass
        self._process.kill()
        self._process.wait()


def server_context(engine: Engine) -> ssl.SSLContext:
    """Trusts the engine and shows nothing of ourselves."""
    return ssl.create_default_context(cafile=str(engine.ca))


def client_context(engine: Engine) -> ssl.SSLContext:
    context = server_context(engine)
    context.load_cert_chain(engine.client_certificate, engine.client_key)
    return context


def wait_until_ready(engine: Engine, children: list[Child], patience: float) -> None:
    deadline = time.monotonic() + patience
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=client_context(engine))
    )
    while True:
        try:
            with opener.open(engine.server + "/readyz", timeout=2):
                return
        except (OSError, urllib.error.URLError) as problem:
            for child in children:
                child.check()
            if time.monotonic() > deadline:
                logs = "\n".join(f"{child.program}:\n{child.tail()}" for child in children)
                raise RuntimeError(f"{engine.name} was not ready after {patience:.0f} s ({problem})\n{logs}") from problem
        time.sleep(0.05)


def wait_until_file(path: Path, child: Child, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not (path.exists() and path.stat().st_size):
        child.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{child.program} did not write {path.name} in {patience:.0f} s\n{child.tail()}")
        time.sleep(0.02)

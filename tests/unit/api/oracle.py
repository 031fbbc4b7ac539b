"""Programs that answer what Kubernetes' own code makes of an input. They are in tools/kube/oracle and built when first needed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parents[3] / "tools" / "kube"


class Oracle:
    """A running oracle: a batch of questions in, their answers out."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert self.process.stdout
        # Asked beside reading: with more of both than the pipes hold, each side would wait for the other.
        asking = threading.Thread(target=self._write, args=(questions,), daemon=True)
        asking.start()
        answers = [json.loads(self.process.stdout.readline()) for _ in questions]
        asking.join()
        return answers

    def _write(self, questions: list[dict[str, Any]]) -> None:
        assert self.process.stdin
        for one in questions:
            self.process.stdin.write(json.dumps(one).encode() + b"\n")
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def program_for(package: str) -> Path:
    """Where the program of these sources is, or will be: a cache outside the tree, so that nothing stale is ever asked."""
    files = [SOURCES / "go.mod", SOURCES / "go.sum", *sorted((SOURCES / package).glob("*.go"))]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "herder" / "kube"
    cache.mkdir(parents=True, exist_ok=True)
    return cache / f"{package.replace('/', '-')}-{key}"


def build(package: str) -> Path:
    program = program_for(package)
    with open(program.parent / ".oracle.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side build once
        if not program.exists():
            new = program.with_name(f".{program.name}.new")
            # The same flags as for the real API server, so that what was compiled for one serves the other.
            command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(new), f"./{package}"]
            subprocess.run(command, cwd=SOURCES, check=True, env={**os.environ, "CGO_ENABLED": "0"})
            new.rename(program)  # whole or not at all
    return program


def running_oracle(package: str, slow_to_build: bool = False) -> Iterator[Oracle]:
    """A started oracle, stopped at the end. Where it cannot be had the test is skipped; in CI that is a failure."""
    in_ci = bool(os.environ.get("CI"))
    if not program_for(package).exists():
        missing = ""
        if shutil.which("go") is None:
            missing = "Go is not installed: not compared with Kubernetes' own code"
        elif slow_to_build and not in_ci:
            missing = f"not compared with Kubernetes' own code: build it once with `python -m tests.unit.api.oracle {package}`"
        if missing:
            pytest.fail(missing) if in_ci else pytest.skip(missing)
    oracle = Oracle(build(package))
    yield oracle
    oracle.close()


if __name__ == "__main__":
    import sys

    for wanted in sys.argv[1:] or ["oracle", "oracle/objects", "oracle/autoscaling"]:
        print(build(wanted))

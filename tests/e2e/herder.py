"""The installed `herder` as a person types it, in a shell without anybody's settings."""

import os
import subprocess
from pathlib import Path

from tests.e2e.program import Ended
from tests.engines.embedded import find_program

PATIENCE = 60


class Herder:
    """`herder` beside a kubeconfig and inside a namespace."""

    def __init__(self, kubeconfig: Path | None, home: Path, namespace: str = "", patience: float = PATIENCE) -> None:
        self._kubeconfig = kubeconfig
        self._home = home
        self._namespace = namespace
        self._patience = patience

    @property
    def environment(self) -> dict[str, str]:
        named = {"KUBECONFIG": str(self._kubeconfig)} if self._kubeconfig else {}
        return {"PATH": os.environ["PATH"], "HOME": str(self._home), **named}

    def command(self, verb: str, *words: str) -> list[str]:
        return [str(find_program()), verb, *words, *(["-n", self._namespace] if self._namespace else [])]

    def run(self, *words: str, stdin: str | None = None, cwd: Path | None = None) -> Ended:
        answer = subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=cwd or self._home,
            timeout=self._patience,
            check=False,
        )
        assert "Traceback" not in answer.stderr, answer.stderr
        return Ended(answer.returncode, answer.stdout, answer.stderr)

    def __call__(self, *words: str, stdin: str | None = None) -> str:
        """What a command that must succeed printed."""
        ended = self.run(*words, stdin=stdin)
        assert ended.code == 0, f"herder {' '.join(words)}: {ended}"
        return ended.out

    def refused(self, *words: str, code: int = 8) -> str:
        """What a command that must fail said."""
        ended = self.run(*words)
        assert ended.code == code, f"herder {' '.join(words)}: {ended}"
        return ended.err.strip()

    def start(self, *words: str, stdin: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        """One that runs on; the caller ends it."""
        return subprocess.Popen(
            self.command(*words),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            cwd=self._home,
        )

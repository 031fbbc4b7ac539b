"""kubectl in a shell of its own: no settings of the person who runs the tests, and every answer looked at."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

Json = dict[str, Any]
PATIENCE = 30


class Kubectl:
    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str = "") -> None:
        self.program = program
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace

    def inside(self, namespace: str) -> "Kubectl":
        return Kubectl(self.program, self.kubeconfig, self.home, namespace)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.program.parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.home / "cache"),
        }

    def command(self, *words: str) -> list[str]:
        return [str(self.program), *([f"--namespace={self.namespace}"] if self.namespace else []), *words]

    def run(self, *words: str, stdin: Any = None, **environment: str) -> "subprocess.CompletedProcess[str]":
        """What is not text is sent as JSON."""
        text = stdin if isinstance(stdin, str) or stdin is None else json.dumps(stdin)
        return subprocess.run(
            self.command(*words),
            input=text,
            capture_output=True,
            text=True,
            env=self.environment | environment,
            cwd=self.home,
            timeout=PATIENCE,
            check=False,
        )

    def __call__(self, *words: str, stdin: Any = None, **environment: str) -> str:
        """What a command that must succeed printed."""
        answer = self.run(*words, stdin=stdin, **environment)
        assert answer.returncode == 0, f"kubectl {' '.join(words)}: {answer.returncode}\n{answer.stdout}{answer.stderr}"
        return answer.stdout

    def refused(self, *words: str, stdin: Any = None) -> str:
        """What a command that must fail said."""
        answer = self.run(*words, stdin=stdin)
        assert answer.returncode == 1, f"kubectl {' '.join(words)}: {answer.returncode}\n{answer.stdout}{answer.stderr}"
        return answer.stderr.strip()

    def json(self, *words: str, stdin: Any = None) -> Json:
        return json.loads(self(*words, "-o", "json", stdin=stdin))

    def create(self, *documents: Json) -> None:
        self("create", "-f", "-", stdin="\n---\n".join(json.dumps(document) for document in documents))

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """One that runs on, such as a watch; the caller ends it."""
        return subprocess.Popen(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            env=self.environment,
            cwd=self.home,
        )

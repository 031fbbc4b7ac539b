"""`herder completion bash` in a bash that somebody types in, beside every engine."""

import asyncio
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herder.api import registry
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api
from tests.engines.embedded import find_program
from tests.engines.engine import Engine

MACHINES = resource_of(registry.MACHINE)


class Bash:
    """An interactive one. What it shows is read until something is there."""

    def __init__(self, engine: Engine, home: Path) -> None:
        ours, theirs = pty.openpty()
        path = f"{find_program().parent}:{os.environ['PATH']}"
        # Without a bell and without a prompt of its own: all that is shown is what was typed, or completed.
        environment = {"PATH": path, "HOME": str(home), "KUBECONFIG": str(engine.kubeconfig), "TERM": "dumb", "PS1": "$ "}
        (home / ".inputrc").write_text("set bell-style none\nset enable-bracketed-paste off\nset show-all-if-ambiguous on\n")
        command = ["bash", "--norc", "--noprofile", "-i"]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=home, start_new_session=True
        )
        os.close(theirs)
        self._terminal = ours
        self._shown = ""

    def types(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    async def shows(self, pattern: str) -> None:
        """Waits for what has been shown since it was last asked."""
        async with asyncio.timeout(60):
            while not (found := re.search(pattern, self._shown)):
                self._shown += (await asyncio.to_thread(os.read, self._terminal, 65536)).decode()
        self._shown = self._shown[found.end() :]

    def end(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def bash(engine: Engine, tmp_path: Path) -> Iterator[Bash]:
    started = Bash(engine, tmp_path)
    yield started
    started.end()


@pytest.mark.slow
async def test_tab_completes_commands_flags_and_names_of_the_cluster(
    api: Api, bash: Bash, namespace: str, unique: Callable[..., str]
) -> None:
    await install_crds(api)
    name = unique("web")
    body = {"metadata": {"name": name}, "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {}}}}}
    (await api.create(MACHINES, body, namespace)).ok  # noqa: B018
    bash.types("source <(herder completion bash); echo sour''ced\n")
    await bash.shows(r"\nsourced")
    bash.types("herder und\t")
    await bash.shows("herder undrain ")
    bash.types("\x15herder explain placement --sco\t")
    await bash.shows("--scoring ")
    bash.types("Mo\t")
    await bash.shows("MostAllocated ")
    bash.types(f"-n {namespace[:-1]}\t")
    await bash.shows(f"-n {namespace} ")
    bash.types(f"vm/{name[:3]}\t")
    await bash.shows(f"vm/{name} ")
    bash.types(f"\x15herder logs -n {namespace} {name[:3]}\t")
    await bash.shows(f"herder logs -n {namespace} {name} ")

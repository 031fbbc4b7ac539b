"""The tour of the README, pasted into a shell as it is written."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.manifests import ROOT
from tests.e2e.program import Up
from tests.e2e.tours import environment, like_a_clone

README = (ROOT / "README.md").read_text()
PASTED = re.compile(r"```sh\n(.*?)```", re.DOTALL)
# What is followed is ended by its time; then a value and a field that are refused.
MEANT_TO_FAIL = [
    "timeout 5 .venv/bin/herder logs counter -f",
    "timeout 5 .venv/bin/herder console counter",
    """kubectl patch vm web --type merge -p '{"spec":{"runStrategy":"Sometimes"}}'""",
    "kubectl apply -f -",
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return like_a_clone(tmp_path)


def steps() -> list[str]:
    """All but the two that are about another start of the program."""
    tour = README[README.index("## Five minutes") : README.index("## What works today")]
    return [text for text in PASTED.findall(tour) if text != "kubectl get vm,vmpool\n"]


def test_everything_in_the_tour_can_be_pasted(clone: Path, kubectl_program: Path) -> None:
    script = "\n".join(["trap 'echo \"FAILED: $BASH_COMMAND\"' ERR", *steps()])
    with Up(clone, data=clone / ".herder", nodes=3):
        shell = ["bash", "-c", script]
        ended = subprocess.run(
            shell, cwd=clone, env=environment(kubectl_program), capture_output=True, text=True, timeout=240, check=False
        )
    said = ended.stdout + ended.stderr
    assert [line.removeprefix("FAILED: ") for line in said.splitlines() if line.startswith("FAILED: ")] == MEANT_TO_FAIL, said
    stopped, moved = "VirtualMachine counter is Stopped", "Succeeded to node-"
    for words in ("you said: hello", "VirtualMachine counter is Paused", stopped, moved, "did you mean"):
        assert words in said

"""The tour of the README, pasted into a shell as it is written."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.guest.conftest import accelerator, guest, migrations, qemu  # fixtures
from tests.e2e.manifests import ROOT
from tests.e2e.program import Up
from tests.e2e.tours import environment, like_a_clone

__all__ = ["accelerator", "guest", "migrations", "qemu"]

README = (ROOT / "README.md").read_text()
PASTED = re.compile(r"```sh\n(.*?)```", re.DOTALL)
# What is followed is ended by its time; then a value and a field that are refused, and a rollout that does not get through.
MEANT_TO_FAIL = [
    "timeout 5 .venv/bin/herder logs counter -f",
    "timeout 5 .venv/bin/herder console counter",
    """kubectl patch vm web --type merge -p '{"spec":{"runStrategy":"Sometimes"}}'""",
    "kubectl apply -f -",
    ".venv/bin/herder pool rollout status counters",
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return like_a_clone(tmp_path)


def steps() -> list[str]:
    """All but the two that are about another start of the program."""
    tour = README[README.index("## Five minutes") : README.index("## What works today")]
    return [text for text in PASTED.findall(tour) if text != "kubectl get vm,vmpool\n"]


# What a person has in the namespace, but for events, which go by themselves.
OBJECTS = """objects() {
  kubectl api-resources --verbs=list --namespaced -o name | grep -v '^events' | paste -sd, | xargs kubectl get -o name | sort
  kubectl get pv -o name
}"""


def _played(steps: list[str]) -> str:
    """The tour as one script, which tells what failed and what is there before the first machine and after the clean-up."""
    around, last = steps[0], steps[-1]
    look = ["echo OBJECTS BEGIN", "objects", "echo OBJECTS END"]
    left = ['echo LEFT: $(jobs -p) $KUBECONFIG $before $(compgen -G "$TMPDIR/*") $(compgen -G ".h*")']
    trap = "trap 'echo \"FAILED: $BASH_COMMAND\"' ERR"
    return "\n".join([OBJECTS, trap, around, *look, *steps[1:-1], *look, last, "trap - ERR", *left])


@pytest.mark.parametrize("runtime", ["simulated", "qemu"])
def test_everything_in_the_tour_can_be_pasted_and_leaves_nothing_behind(
    request: pytest.FixtureRequest, clone: Path, tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path, runtime: str
) -> None:
    if runtime == "qemu":
        request.getfixturevalue("migrations")
    temporary = tmp_path_factory.mktemp("temporary")
    with Up(clone, "--runtime", runtime, data=clone / ".herder", nodes=3):
        shell = ["bash", "-c", _played(steps())]
        surroundings = environment(kubectl_program) | {"TMPDIR": str(temporary)}
        ended = subprocess.run(shell, cwd=clone, env=surroundings, capture_output=True, text=True, timeout=900, check=False)
    said = ended.stdout + ended.stderr
    assert [line.removeprefix("FAILED: ") for line in said.splitlines() if line.startswith("FAILED: ")] == MEANT_TO_FAIL, said
    stopped, moved = "VirtualMachine counter is Stopped", "Succeeded to node-"
    for words in ("you said: hello", "VirtualMachine counter is Paused", stopped, moved, "did you mean"):
        assert words in said
    # Of the pool: its machine that was healed, its rollout, and the one that was halted and undone.
    assert "did not start: deleted with its volumes, to be made again: VirtualMachine counters-2" in said
    assert len(re.findall(r"^rollout of counters-\w+ is complete: 4 of 4 have it$", said, re.MULTILINE)) == 2, said
    assert re.search(r"counters-\d did not become available with revision counters-\w+ in time; 1 of 4 has", said), said
    # Of the one that follows its load: two that work, and one that sleeps.
    assert re.search(r"^autoscaler busy: wants 2, between 1 and 2, last scaled", said, re.MULTILINE), said
    assert re.search(r"^pool busy: 2 of 2 machines, 2 ready, 2 updated, 1 on standby", said, re.MULTILINE), said
    before, after = re.findall(r"^OBJECTS BEGIN\n(.*?)^OBJECTS END$", said, re.DOTALL | re.MULTILINE)
    assert (before, re.findall(r"^LEFT:\s*$", said, re.MULTILINE)) == (after, ["LEFT:"]), said

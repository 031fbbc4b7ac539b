"""What `herder up` prints where QEMU is, pasted as it is printed: a real guest is moved, and does not miss a number."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.program import Up
from tests.e2e.tours import environment, like_a_clone

pytestmark = pytest.mark.usefixtures("migrations")


def test_a_newcomer_sees_a_guest_move_without_missing_a_number(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path
) -> None:
    clone = like_a_clone(tmp_path)
    there, temporary = {path.name for path in clone.iterdir()}, tmp_path_factory.mktemp("temporary")
    with Up(clone, "--runtime", "qemu", data=clone / ".herder", nodes=2) as up:
        printed = "\n".join(line.strip() for line in up.out.splitlines() if line.startswith("  "))
        shell = ["bash", "-ec", printed]
        surroundings = environment(kubectl_program) | {"TMPDIR": str(temporary)}
        ended = subprocess.run(shell, cwd=clone, env=surroundings, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^Succeeded to node-[12]$", ended.stdout, re.MULTILINE)
    ticks = [int(number) for number in re.findall(r"^tick (\d+) ok", ended.stdout, re.MULTILINE)]
    assert len(ticks) >= 3, ended.stdout
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    assert {path.name for path in clone.iterdir()} - there <= {".herder", "out", "err"}
    assert list(temporary.iterdir()) == []

"""The kubectl that the tests use: the pinned release, built once where the machine has none."""

import subprocess
from pathlib import Path

from tests.engines.engine import Unavailable

_BUILD = Path(__file__).parents[2] / "tools" / "kube" / "build.sh"


def find_kubectl() -> Path:
    answer = subprocess.run([str(_BUILD), "kubectl"], capture_output=True, text=True, check=False)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or ["no reason given"]
        raise Unavailable(f"kubectl is not available: {lines[-1]}")
    return Path(answer.stdout.strip()) / "kubectl"

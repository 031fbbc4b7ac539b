"""Which runtime the nodes of this machine offer: QEMU where it is installed, a simulation everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess

SIMULATED = "simulated"
QEMU = "qemu"
PROGRAM = "qemu-system-x86_64"


class RuntimeMissing(Exception):
    """The asked-for runtime is not on this machine; the text is a sentence."""


def resolve(wanted: str, version: str) -> str:
    """`auto`, `qemu` or `simulated` → what the node reports, as `qemu://10.0.2`."""
    if wanted == SIMULATED or (wanted == "auto" and shutil.which(PROGRAM) is None):
        return f"{SIMULATED}://{version}"
    if shutil.which(PROGRAM) is None:
        raise RuntimeMissing(f"--runtime qemu: {PROGRAM} is not installed on this machine; install it or use --runtime simulated")
    return f"{QEMU}://{_qemu_version()}"


def _qemu_version() -> str:
    try:
        answer = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeMissing(f"--runtime qemu: {PROGRAM} does not run: {error}") from None
    found = re.search(r"version (\d+[\d.]*)", answer)
    return found.group(1) if found else "unknown"

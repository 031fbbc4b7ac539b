"""The guest, built once, and the QEMU to run it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.conftest import EngineMissing
from tests.e2e.guest.machine import PROGRAM, Machine, running
from tools.guest.build import BuildError, build

Starting = AbstractAsyncContextManager[Machine]
Start = Callable[..., Starting]


@pytest.fixture(scope="session")
def qemu() -> str:
    if shutil.which(PROGRAM) is None:
        raise EngineMissing("QEMU is not available: tools/qemu/install.sh installs it")
    return PROGRAM


@pytest.fixture(scope="session")
def guest() -> Path:
    try:
        return build()
    except BuildError as problem:
        raise EngineMissing(str(problem)) from None


@pytest.fixture(scope="session")
def accelerator(qemu: str, guest: Path) -> str:
    """KVM where a guest really boots with it: /dev/kvm may be there and not work."""
    probe = [qemu, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-accel", "kvm", "-m", "32M"]
    try:
        done = subprocess.run([*probe, "-kernel", guest, "-append", "exit-after=1"], capture_output=True, timeout=5, check=False)
    except subprocess.TimeoutExpired:
        return "tcg"
    return "tcg" if done.returncode else "kvm"


@pytest.fixture(scope="session")
def migrations(qemu: str, accelerator: str) -> None:
    """What is moved by a QEMU that forgets pages tells nothing about the guest."""
    answer = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"version (\d+)\.(\d+)", answer.stdout)
    assert version, answer.stdout
    if accelerator == "tcg" and (int(version[1]), int(version[2])) < (8, 2):
        raise EngineMissing(f"QEMU {version[1]}.{version[2]} loses pages when it migrates without KVM: 8.2 or newer is needed")


@pytest.fixture(scope="session")
def start(accelerator: str, guest: Path) -> Start:
    """A machine with the guest in it; other options of QEMU as they are."""

    def with_guest(*options: str, settings: str = "", machine: str = "q35", memory: str = "64M") -> Starting:
        basics = ["-machine", machine, "-accel", accelerator, "-m", memory, "-kernel", str(guest), "-append", settings]
        return running(*basics, *options)

    return with_guest

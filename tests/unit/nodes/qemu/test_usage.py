"""What the kernel counts for a process, and for its cgroup where it has one to itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.nodes.runtimes.qemu.usage import usage_of

MEMORY = 48 << 20
BUSY = f"""
import time
held = bytearray(b"x") * {MEMORY}
print(flush=True)
while time.process_time() < 0.4:
    pass
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def busy() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def test_the_processor_time_and_memory_of_a_real_process_are_told(busy: "subprocess.Popen[bytes]") -> None:
    assert busy.stdout is not None
    busy.stdout.readline()
    before = usage_of(busy.pid)
    busy.stdout.readline()
    after = usage_of(busy.pid)
    assert before is not None and after is not None
    assert 0.3 < after.cpu_seconds < 5
    assert before.cpu_seconds < after.cpu_seconds
    assert MEMORY < after.memory_bytes < MEMORY + (64 << 20)


def test_a_process_that_is_gone_uses_nothing(busy: "subprocess.Popen[bytes]") -> None:
    busy.kill()
    busy.wait()
    assert usage_of(busy.pid) is None


def test_memory_that_several_map_from_a_file_is_not_counted() -> None:
    """The interpreter itself has pages of its program: without them there is less than what is resident."""
    resident = int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    own = usage_of(os.getpid())
    assert own is not None and 0 < own.memory_bytes < resident


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    """As the kernel writes it; machines on which tests run seldom let one make a real one."""
    folder = tmp_path / "machine.slice" / "guest.scope"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (folder / "cpu.stat").write_text("usage_usec 12500000\nuser_usec 12000000\nsystem_usec 500000\n")
    (folder / "memory.current").write_text(f"{300 << 20}\n")
    (folder / "memory.stat").write_text(f"anon {250 << 20}\ninactive_file {40 << 20}\nactive_file 0\n")
    (tmp_path / "proc" / str(os.getpid())).mkdir(parents=True)
    (tmp_path / "proc" / str(os.getpid()) / "cgroup").write_text("0::/machine.slice/guest.scope\n")
    return folder


def test_a_cgroup_of_its_own_is_what_counts(tmp_path: Path, cgroup: Path) -> None:
    usage = usage_of(os.getpid(), tmp_path / "proc", tmp_path)
    assert usage is not None
    assert (usage.cpu_seconds, usage.memory_bytes) == (12.5, 260 << 20)


def test_a_cgroup_that_several_share_is_nobodys(tmp_path: Path, cgroup: Path) -> None:
    (cgroup / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    (tmp_path / "proc" / str(os.getpid()) / "stat").write_text(f"1 (a) b) S {' '.join(['0'] * 10)} 150 50 {' '.join(['0'] * 30)}\n")
    (tmp_path / "proc" / str(os.getpid()) / "status").write_text(
        "Name:\tqemu\nRssAnon:\t  1024 kB\nRssFile:\t 9999 kB\nRssShmem:\t 2048 kB\n"
    )
    usage = usage_of(os.getpid(), tmp_path / "proc", tmp_path)
    assert usage is not None
    assert (usage.cpu_seconds, usage.memory_bytes) == (200 / os.sysconf("SC_CLK_TCK"), 3 << 20)

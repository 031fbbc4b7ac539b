"""What the guest says of itself, and that it counts and checks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.e2e.guest.conftest import Start
from tests.e2e.guest.machine import assert_unbroken

MACHINES = pytest.mark.parametrize("machine", ["q35", "pc"])


@MACHINES
async def test_it_counts_from_one_and_misses_nothing(start: Start, machine: str) -> None:
    async with start(machine=machine) as guest:
        await guest.ticked(5)
        assert_unbroken(guest.text)


async def test_it_counts_no_faster_than_it_is_told_to(start: Start) -> None:
    async with start(settings="rate=20") as guest:
        clock = asyncio.get_running_loop().time
        first = await guest.ticked(1)
        began = clock()
        last = await guest.ticked(21)
        counted = last[-1].number - first[-1].number
        assert counted <= (clock() - began) * 20 + 2


async def test_a_paused_guest_stands_still_and_goes_on_where_it_was(start: Start) -> None:
    async with start(settings="rate=100") as guest:
        await guest.ticked(3)
        await guest.do("stop")
        before = guest.text
        clock = asyncio.get_running_loop().time
        paused = clock()
        await asyncio.sleep(0.5)
        assert guest.text == before
        await guest.do("cont")
        went_on = clock()
        await guest.ticked(len(guest.ticks) + 5)
        caught_up = len(guest.ticks) - before.count("tick ")
        assert caught_up <= (clock() - went_on) * 100 + 10, f"it made up for the {went_on - paused:.1f} s of its pause"
        assert_unbroken(guest.text)


async def test_it_says_what_it_was_given(start: Start) -> None:
    async with start("-smp", "3", settings="rate=50 dirty=3M/s working-set=512K exit-after=7", memory="96M") as guest:
        await guest.says("ram=96M usable=.*K")
        await guest.says("cpus=3 cpu=.+")
        await guest.says("settings rate=50 dirty=3M/s working-set=512K exit-after=7")


async def test_each_boot_has_its_own_mark(start: Start) -> None:
    marks: set[str] = set()
    for _ in range(3):
        async with start() as guest:
            marks.add((await guest.says("boot ([0-9a-f]{16})"))[1])
    assert len(marks) == 3


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("rate=fast", "rate=fast is not understood: rate is a number of ticks a second from 1 to 1000"),
        ("rate=0", "rate=0 is not understood: rate is a number of ticks a second from 1 to 1000"),
        ("dirty=-3M/s", "dirty=-3M/s is not understood: dirty is an amount a second such as 0, 512K/s or 64M/s"),
        ("dirty=64", "dirty=64 is not understood: dirty is an amount a second such as 0, 512K/s or 64M/s"),
        ("working-set=99999999999G", "working-set=99999999999G is not understood: working-set is an amount of memory .*"),
        ("working-set=1G", "working-set=1024M does not fit: using the .* that are free"),
        ("power-button=maybe", "power-button=maybe is not understood: power-button is obey or ignore"),
        ("exit-after=soon", "exit-after=soon is not understood: that takes a number of ticks"),
        ("colour=red", "colour=red is not understood: known are rate, dirty, .*"),
    ],
)
async def test_it_complains_about_nonsense_and_counts_all_the_same(start: Start, setting: str, complaint: str) -> None:
    async with start(settings=setting) as guest:
        await guest.says(f"complaint: {complaint}")
        await guest.ticked(2)


async def test_it_says_why_it_cannot_count_on_a_machine_without_a_clock(start: Start) -> None:
    async with start(machine="microvm") as guest:
        await guest.says("complaint: this machine has no ACPI clock, .*: use q35 or pc")


@pytest.mark.parametrize("memory", ["16M", "5G"])
async def test_it_runs_in_little_and_in_much_memory(start: Start, memory: str) -> None:
    async with start(memory=memory) as guest:
        await guest.says({"16M": "ram=16M usable=.*", "5G": "ram=5120M usable=.*"}[memory])
        await guest.ticked(2)
        assert "complaint" not in guest.text


async def test_a_disk_is_seen_with_its_size(start: Start, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(5 << 20))
    async with start("-drive", f"if=virtio,format=raw,file={disk}") as guest:
        await guest.says(r"disk virtio bus=0 slot=\d+ size=5M")

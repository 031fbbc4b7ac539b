"""What a QEMU with the tiny guest costs on this machine: `python -m tools.qemu.measure`. The numbers are in docs/qemu.md."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.guest.build import build

QEMU = [
    "qemu-system-x86_64",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-accel",
    "tcg",
    "-m",
    "64M",
    "-serial",
    "stdio",
]
LEAN = ["-machine", "q35,usb=off,vmport=off,hpet=off,smbus=off,sata=off,smm=off"]
SANDBOX = ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
VARIANTS = {
    "q35": ["-machine", "q35"],
    "pc": ["-machine", "pc"],
    "q35, sandbox": ["-machine", "q35", *SANDBOX],
    "q35, devices off": LEAN,
    "q35, devices off, qboot": [*LEAN, "-bios", "qboot.rom"],
}


class Guest:
    def __init__(self, options: list[str], settings: str) -> None:
        self.began = time.perf_counter()
        command = [*QEMU, *options, "-kernel", str(build()), "-append", settings]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.pid = self._process.pid

    def first_tick(self) -> float:
        """Seconds from the start until it has ticked."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(b"tick"):
                return time.perf_counter() - self.began
        raise RuntimeError("it ended before it ticked")

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[int, int]:
        """Resident in all, and that which is its own, in KiB."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
        return sizes["Rss"], sizes["Private_Dirty"] + sizes["Private_Clean"]

    def stop(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def start_costs(options: list[str], rounds: int = 15) -> str:
    """The least of each, too: what others do on the machine only adds to it."""
    times: list[float] = []
    cpu: list[float] = []
    for _ in range(rounds):
        guest = Guest(options, "rate=1000")
        times.append(guest.first_tick() * 1000)
        cpu.append(guest.cpu() * 1000)
        guest.stop()
    return f"{statistics.median(times):.0f} ms (least {min(times):.0f}), CPU {statistics.mean(cpu):.0f} ms"


def with_guests(options: list[str], count: int, look: Callable[[list[Guest]], None]) -> float:
    """Starts them all at once; the answer is how many a second were there."""
    began = time.perf_counter()
    guests = [Guest(options, "rate=10") for _ in range(count)]
    try:
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(Guest.first_tick, guests))
        rate = count / (time.perf_counter() - began)
        look(guests)
    finally:
        for guest in guests:
            guest.stop()
    return rate


def idle(guests: list[Guest], seconds: float = 10.0) -> None:
    before = [guest.cpu() for guest in guests]
    began = time.perf_counter()
    time.sleep(seconds)
    used = sum(guest.cpu() for guest in guests) - sum(before)
    share = used / (time.perf_counter() - began) / len(guests)
    print(f"  idle at 10 ticks/s: {share:.2%} of a core each; ", end="")
    resident, private = zip(*(guest.memory() for guest in guests), strict=True)
    print(
        f"memory each: {statistics.median(resident) / 1024:.0f} MiB resident, {statistics.median(private) / 1024:.0f} MiB its own"
    )


def main() -> None:
    print(f"the guest: {build().stat().st_size} bytes")
    for name, options in VARIANTS.items():
        print(f"{name}: first tick after {start_costs(options)}")
    for name in ("q35", "q35, devices off", "q35, devices off, qboot"):
        print(f"{name}, 20 at once:")
        rate = with_guests(VARIANTS[name], 20, idle)
        print(f"  {rate:.1f} guests a second")


if __name__ == "__main__":
    main()

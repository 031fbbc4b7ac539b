"""An agent's runtime in a process of its own, to be killed: starts one guest, says so, and stays."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from herder.api.world import RealWorld
from herder.nodes.runtimes.qemu import QemuRuntime, RunAs
from herder.nodes.runtimes.qemu.facts import Facts
from tests.e2e.qemu.node import order


async def main(folder: str, facts: str, run_as: str, guest: str, uid: str, settings: str) -> None:
    user = msgspec.json.decode(run_as, type=RunAs | None)
    runtime = QemuRuntime(Path(folder), RealWorld(), msgspec.json.decode(facts, type=Facts), user)
    await runtime.open(lambda guest: None)
    await runtime.start(order(Path(guest), settings, uid=uid))
    print("started", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""Memory saved and gone on from by QMP alone: one process, one file, and the few commands that it takes.

The file is durable before the guest counts as saved, and "used" before the guest runs, as ours are: without that it could be lost,
or be used twice. Nobody checks anything, and nobody is told.
"""

import asyncio
import os
from pathlib import Path

from bench.bare_moves import BareWay
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.qemu.progress import UNLIMITED, capabilities

_CAPABILITIES = [{**one, "state": one["capability"] == "events"} for one in capabilities(PolicySettings())]
_OFFSET = "offset=0x10000"


class BareSuspension(BareWay):
    async def save(self) -> None:
        """Until nothing of it is left but the file."""
        here = self._here
        assert here is not None
        await here.talk.do("stop")
        part = self.root / "memory.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        given = await here.talk.do("add-fd", descriptor=descriptor)
        await here.talk.do("migrate-set-capabilities", capabilities=_CAPABILITIES)
        await here.talk.do("migrate-set-parameters", max_bandwidth=UNLIMITED)
        here.completed.clear()  # by which it came
        await here.talk.do("migrate", uri=f"file:/dev/fdset/{given['fdset-id']},{_OFFSET}")
        await here.completed.wait()
        await asyncio.to_thread(os.fsync, descriptor)
        os.close(descriptor)
        self._rename(part, "memory")
        here.talk.close()
        here.child.kill()
        await asyncio.to_thread(here.child.wait)
        self._here = None

    async def resume(self) -> None:
        """Until it runs."""
        there = await self._qemu(incoming=True)
        descriptor = os.open(self.root / "memory", os.O_RDONLY)
        given = await there.talk.do("add-fd", descriptor=descriptor)
        os.close(descriptor)
        await there.talk.do("migrate-set-capabilities", capabilities=_CAPABILITIES)
        self._rename(self.root / "memory", "memory.used")
        await there.talk.do("migrate-incoming", uri=f"file:/dev/fdset/{given['fdset-id']},{_OFFSET}")
        await there.completed.wait()
        await there.talk.do("cont")
        self._here = there

    def clear(self) -> None:
        """Of no use any more; to give its room back takes a while, and is nobody's wait."""
        (self.root / "memory.used").unlink(missing_ok=True)

    def _rename(self, path: Path, name: str) -> None:
        os.rename(path, path.with_name(name))
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

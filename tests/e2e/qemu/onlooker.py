"""How far a move has come, as the API shows it, and as the two agents have noted it on their disks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import order_of, report_of
from herder.rules.migration.phases import FINISHED, ORDER
from tests.e2e.qemu.counters import HERE, MIGRATIONS, PATIENCE, Counters
from tests.engines.api import Json
from tests.engines.resources import PODS
from tests.engines.watching import Watch

GLANCE = 0.002


class Onlooker:
    """Watches one move of the only guest there is."""

    def __init__(self, data: Path, migration: str) -> None:
        self._data = data
        self._migration = migration
        self._seen: dict[tuple[str, str], Json] = {}
        self._news = asyncio.Event()

    async def follow(self, kind: str, watch: Watch) -> None:
        """Until the stream ends, as it does when the engine is killed."""
        while True:
            event = await watch.next(PATIENCE)
            name = (kind, event.name)
            if event.type == "DELETED":
                self._seen.pop(name, None)
            else:
                self._seen[name] = event.object
            self._news.set()

    async def until(self, step: Step) -> None:
        async with asyncio.timeout(PATIENCE):
            while not step(self):
                self._news.clear()
                # The disk does not say when it changes.
                with suppress(TimeoutError):
                    async with asyncio.timeout(GLANCE):
                        await self._news.wait()

    @property
    def migration(self) -> Json:
        return self._seen.get((MIGRATIONS.kind, self._migration), {})

    @property
    def _uid(self) -> str:
        return self.migration.get("metadata", {}).get("uid", "not known yet")

    def pods(self, *, target: bool) -> list[Json]:
        pods = [one for (kind, _), one in self._seen.items() if kind == PODS.kind]
        return [one for one in pods if (one["metadata"]["labels"].get(labels.MIGRATION_UID) == self._uid) == target]

    def has_phase(self, phase: str) -> bool:
        """That one or a later one: none is ever seen again."""
        now = self.migration.get("status", {}).get("phase", "Pending")
        order = [*ORDER, *FINISHED]
        return bool(self.migration) and order.index(now) >= order.index(phase)

    def noted(self, kind: str, field: str, value: Any) -> bool:
        """Of this migration, on the disk of whichever agent."""
        for path in self._data.glob(f"nodes/*/moves/[!.]*.{kind}"):
            with suppress(FileNotFoundError):
                note = path.read_bytes()
                if self._uid.encode() in note and json.loads(note)[field] == value:
                    return True
        return False

    def is_ordered(self) -> bool:
        """A guest that came by a move has the order of that one still."""
        orders = [order_of(msgspec.convert(one, Pod)) for one in self.pods(target=False)]
        return self.has_phase("Running") or any(one is not None and one.migration == self._uid for one in orders)

    def is_taken_over(self) -> bool:
        reports = [report_of(msgspec.convert(one, Pod)) for one in self.pods(target=True)]
        said = [one.migration for one in reports if one is not None and one.migration is not None]
        return self.has_phase("Succeeded") or any(one.taken_over for one in said)

    def source_goes(self) -> bool:
        return self.has_phase("Succeeded") and all("deletionTimestamp" in one["metadata"] for one in self.pods(target=False))


Step = Callable[[Onlooker], bool]


def _phase(name: str) -> Step:
    return lambda onlooker: onlooker.has_phase(name)


# In their order. Each stays true, so that none is missed.
STEPS: dict[str, Step] = {
    "it is Pending": _phase("Pending"),
    "its turn has come": _phase("Scheduling"),
    "the target pod is bound": lambda onlooker: any("nodeName" in one["spec"] for one in onlooker.pods(target=True)),
    "the target is ready": _phase("TargetReady"),
    "the order is given": Onlooker.is_ordered,
    "it is Running": _phase("Running"),
    "the source has noted that it handed over": lambda onlooker: onlooker.noted("leaving", "outcome", "HandedOver"),
    "the target has noted the grant": lambda onlooker: onlooker.noted("coming", "granted", True),
    "the target has taken over": Onlooker.is_taken_over,
    "it has Succeeded": _phase("Succeeded"),
    "the source pod goes": Onlooker.source_goes,
}


@asynccontextmanager
async def looking_on(herd: Counters, migration: str) -> AsyncGenerator[Onlooker]:
    onlooker = Onlooker(herd.up.data, migration)
    async with herd.api.watch(MIGRATIONS, HERE) as migrations, herd.api.watch(PODS, HERE) as pods:
        following = [
            asyncio.create_task(onlooker.follow(MIGRATIONS.kind, migrations)),
            asyncio.create_task(onlooker.follow(PODS.kind, pods)),
        ]
        try:
            yield onlooker
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

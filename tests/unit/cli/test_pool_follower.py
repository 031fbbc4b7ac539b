"""What `herder pool status --watch` and `herder pool rollout status` show while a rollout goes on: a bar that moves."""

import asyncio
import io
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from rich.console import Console

from herder.api.registry import INSTANCE, MACHINE, POOL
from herder.cli.asking import Refusal
from herder.cli.pool.follower import PoolFollower, RolloutFollower
from herder.cli.progress import BAR_WIDTH, Row, Rows
from herder.kube.client import Client
from herder.kube.resources import MACHINES, POOLS, Key
from tests.unit.kube.engine import engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

WEB = Key("default", "web")
MACHINE_SPEC = {"runStrategy": "Always", "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}


class Shown:
    """A display that remembers every picture."""

    def __init__(self) -> None:
        self.since = asyncio.get_running_loop().time()
        self.pictures: list[list[Row]] = []

    def show(self, rows: Sequence[Row]) -> None:
        self.pictures.append(list(rows))

    def remind(self, text: str) -> None:
        pass

    @property
    def bars(self) -> list[int | None]:
        """How far the bar of the first row was, each time it moved."""
        found = [rows[0].percent for rows in self.pictures]
        return [one for before, one in zip([-1, *found], found, strict=False) if one != before]


async def says(client: Client, updated: int, reason: str = "RollingOut", *, progressing: bool = True) -> None:
    """What the controller would write."""
    found = await client.get(POOLS, WEB)
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": f"{updated} of 4 have it"}
    condition = {"type": "Progressing", "status": str(progressing), "reason": reason, **since}
    counts = {"replicas": 4, "readyReplicas": 4, "updatedReplicas": updated, "unavailableReplicas": 0}
    status = {**counts, "observedGeneration": found.metadata.generation, "updateRevision": "web-b", "conditions": [condition]}
    await client.patch(POOLS, WEB, {"status": status}, subresource="status")
    await asyncio.sleep(1)


def play(story: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with engine_in_virtual_time(VirtualWorld(), (POOL, MACHINE, INSTANCE)) as place:
            client = place.client()
            template = {"spec": MACHINE_SPEC}
            metadata = {"name": WEB.name, "namespace": WEB.namespace}
            await client.create(POOLS, {"metadata": metadata, "spec": {"replicas": 4, "template": template}})
            await says(client, 0)
            await story(client)

    in_virtual_time(main())


def test_who_watches_a_pool_sees_its_bar_move_to_the_end_and_every_machine() -> None:
    async def story(client: Client) -> None:
        shown = Shown()
        watching = asyncio.create_task(PoolFollower(client, await client.get(POOLS, WEB), shown).run())
        await asyncio.sleep(1)
        owner = {"apiVersion": POOL.api_version, "kind": POOL.kind, "name": "web", "controller": True}
        owner["uid"] = (await client.get(POOLS, WEB)).uid
        metadata = {"name": "web-1", "namespace": "default", "ownerReferences": [owner]}
        await client.create(MACHINES, {"metadata": metadata, "spec": MACHINE_SPEC})
        for updated in (1, 2, 4):
            await says(client, updated)
        assert [row.name for row in shown.pictures[-1]] == ["web", "web-1"]
        assert shown.pictures[-1][0].state == "moves"
        await says(client, 4, "RolloutComplete")
        # Not the whole until it is complete, and then there is nothing left to wait for.
        assert shown.bars == [0, 25, 50, 99, None]
        assert (shown.pictures[-1][0].state, shown.pictures[-1][0].text[:25]) == ("ready", "4 of 4 ready, 4 updated; ")
        await client.delete(MACHINES, Key("default", "web-1"))
        await asyncio.sleep(1)
        assert shown.pictures[-1][1:] == [Row("web-1", "ready", "is gone")]
        await client.delete(POOLS, WEB)
        with pytest.raises(Refusal, match="pool web was deleted"):
            await watching

    play(story)


def test_who_waits_for_a_rollout_sees_its_bar_move_and_is_told_when_it_is_over() -> None:
    async def story(client: Client) -> None:
        shown = Shown()
        waiting = asyncio.create_task(RolloutFollower(client, await client.get(POOLS, WEB), shown).run())
        await asyncio.sleep(1)
        await says(client, 3)
        await says(client, 4, "RolloutComplete")
        await waiting
        assert shown.bars == [0, 75, None]
        assert shown.pictures[-1][0].state == "done"

    play(story)


def test_who_waits_for_a_rollout_that_halts_is_told_so() -> None:
    async def story(client: Client) -> None:
        waiting = asyncio.create_task(RolloutFollower(client, await client.get(POOLS, WEB), Shown()).run())
        await asyncio.sleep(1)
        await says(client, 1, "ProgressDeadlineExceeded", progressing=False)
        with pytest.raises(Refusal, match="the rollout of pool web failed: 1 of 4 have it"):
            await waiting

    play(story)


@pytest.mark.parametrize(("percent", "drawn"), [(0, 0), (50, BAR_WIDTH // 2), (99, BAR_WIDTH - 1)])
async def test_on_a_terminal_the_bar_is_as_long_as_the_rollout_has_come(percent: int, drawn: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=120, height=20)
    rows = Rows(console)
    rows.show([Row("web", "moves", "2 of 4 ready, 2 updated; RollingOut", percent), Row("web-1", "ready", "ready")])
    with console.capture() as frame:
        console.print(rows)
    line = next(one for one in frame.get().splitlines() if "RollingOut" in one)
    # In the colour of what moves, and the rest of the bar in that of what is not there yet.
    done = "".join(part.split("\x1b")[0] for part in line.split("\x1b[36m")[1:])
    assert done.count("━") == drawn

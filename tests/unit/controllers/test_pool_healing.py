"""Who heals a pool's machines while nodes do not answer, leaders change and clocks jump."""

import asyncio

from herder.api import labels
from herder.api.kinds.pool import Healing
from tests.unit.controllers.pools import SOON, Json, Stage, play, template

HEALS: Json = {"autohealing": {"startupFailureThreshold": 1}}
WAIT = 10.0


async def record(stage: Stage) -> Healing:
    found = (await stage.status()).healing or ()
    assert len(found) == 1
    return found[0]


async def healed_once(stage: Stage) -> str:
    """The uid of the machine that was made in place of the one that failed."""
    before = (await stage.machine("web-1")).uid
    await stage.fails("web-1")
    await asyncio.sleep(SOON)
    again = (await stage.machine("web-1")).uid
    assert again != before
    assert ((await record(stage)).name, (await record(stage)).attempts) == ("web-1", 1)
    return again


def test_healing_while_the_node_is_unreachable() -> None:
    """Its guest may still write to the disk there: nothing is wiped until the node answers, and then at once."""

    async def story(stage: Stage) -> None:
        await stage.node("node-1", answers=True)
        await stage.make(1, template(strategy="Always"), **HEALS)
        async with stage.leads():
            await asyncio.sleep(SOON)
            machine = await stage.machine("web-1")
            await stage.runs("web-1", machine.labels[labels.POOL_REVISION], "node-1", ready=False)
            await stage.node("node-1", answers=False)
            await stage.fails("web-1")
            await asyncio.sleep(600)
            spared = await stage.machine("web-1")
            assert (spared.uid, spared.being_deleted, (await stage.status()).healing) == (machine.uid, False, None)
            await stage.node("node-1", answers=True)
            found = (await stage.machines()).get("web-1")
            assert found is None or found.being_deleted or found.uid != machine.uid
            assert (await record(stage)).attempts == 1

    play(story)


def test_heal_backoff_across_leader_change() -> None:
    """Who leads next waits as long as who led before would have."""

    async def story(stage: Stage) -> None:
        await stage.make(1, template(strategy="Always"), **HEALS)
        async with stage.leads():
            await asyncio.sleep(SOON)
            again = await healed_once(stage)
        begun = (await record(stage)).last_healed_time
        assert begun is not None
        await stage.fails("web-1")
        async with stage.leads():
            await asyncio.sleep(begun.timestamp() + WAIT - 1 - stage.world.now())
            assert ((await stage.machine("web-1")).uid, (await record(stage)).attempts) == (again, 1)
            await asyncio.sleep(SOON)
            assert (await stage.machine("web-1")).uid != again
            written = await record(stage)
            assert written.last_healed_time is not None and written.retry_after_time is not None
            wait = written.retry_after_time - written.last_healed_time
            assert (written.attempts, wait.total_seconds()) == (2, 2 * WAIT)

    play(story)


def test_heal_backoff_across_clock_jump() -> None:
    """A clock that is an hour behind from now on makes nobody wait for an hour, and nobody is healed at once."""

    async def story(stage: Stage) -> None:
        await stage.make(1, template(strategy="Always"), **HEALS)
        async with stage.leads():
            await asyncio.sleep(SOON)
            again = await healed_once(stage)
        stage.world.skew -= 3600
        await stage.fails("web-1")
        async with stage.leads():
            await asyncio.sleep(WAIT - 1)
            assert ((await stage.machine("web-1")).uid, (await record(stage)).attempts) == (again, 1)
            await asyncio.sleep(SOON)
            assert (await stage.machine("web-1")).uid != again
            assert (await record(stage)).attempts == 2

    play(story)

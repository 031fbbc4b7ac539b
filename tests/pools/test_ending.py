"""Machines on their way out, or between two nodes, while their pool wants something else."""

from collections.abc import Callable

from herder.api import labels
from tests.engines.resources import CLAIMS
from tests.machines.herd import Json
from tests.machines.migrations import MIGRATIONS, Movers
from tests.machines.volumes import BLANK, becomes
from tests.pools.pool import FIRST, Pool, memory, size_of, template, uid


async def test_vm_gone_vmi_still_ending_disk_still_mounted(pool: Pool) -> None:
    """A machine that is wanted again while its guest takes its time to end waits for its number, its name and its disk."""
    slow = template(disk=BLANK, simulated={"ignores-power-button": "true"}, terminationGracePeriodSeconds=1)
    await pool.make(2, slow, scaleInStrategy={"proactive": {"statePreservation": "Offline"}})
    await pool.settled(2)
    await becomes(pool.herd, "Succeeded", "disk-1")
    claim = uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok)
    machine, instance = uid(await pool.herd.machine("web-1")), (await pool.uids())[1]
    await pool.annotate(1, FIRST)
    await pool.change(replicas=1)
    await pool.has(2)
    await pool.change(replicas=2)
    seen: list[set[str]] = []

    async def made_again() -> bool:
        machines = await pool.machines()
        instances = (await pool.uids()).values()
        seen.append(set(machines))
        again = "web-1" in machines and uid(machines["web-1"]) != machine
        assert not (again and instance in instances), "its guest had not ended"
        return again

    await pool.herd.eventually(made_again)
    assert set.union(*seen) == {"web-1", "web-2"}
    await pool.settled(2, preservedStates=0)
    assert uid((await pool.api.get(CLAIMS, "disk-1", pool.namespace)).ok) == claim


async def test_migration_and_rollout_at_once(pool: Pool, movers: Movers, unique: Callable[..., str]) -> None:
    """A machine that is being moved is restarted once it has arrived, or stays; the others are not kept waiting."""
    await movers.slow(unique("slow"))
    made_of = template(nodeSelector={movers.label: "yes"}, marked={movers.label: "slow"})
    await pool.make(2, made_of, maxUnavailable=2)
    await pool.settled(2)
    before = await pool.uids()
    await movers.move("web-1")
    await movers.phase("Running")
    await pool.roll(memory("65Mi"))
    await pool.shows(updatedReplicas=1, readyReplicas=2)
    assert "web-1" in (await pool.says("Progressing", status="True"))["message"]
    assert (await pool.uids())[1] == before[1]
    await pool.herd.delete("move", MIGRATIONS)
    await pool.settled(2)
    assert {size_of(one) for one in (await pool.instances()).values()} == {"65Mi"}


async def test_drain_migration_and_rollout_at_once(pool: Pool, movers: Movers) -> None:
    """All have moved and all are updated, and all but one were ready all the time."""
    await pool.make(3, template(nodeSelector={movers.label: "yes"}, evictionStrategy="LiveMigrate"), maxUnavailable=1)
    await pool.settled(3)
    drained = (await pool.instances())[1]["status"]["nodeName"]
    async with pool.watched() as ready:
        await pool.roll(memory("65Mi"))
        await movers.taint(drained, drained=True)
        await pool.settled(3)

        async def moved() -> bool:
            found = [one["status"]["nodeName"] for one in (await pool.instances()).values()]
            assert drained not in found
            return len(found) == 3

        await pool.herd.eventually(moved)
    assert min(ready) >= 2
    assert {size_of(one) for one in (await pool.instances()).values()} == {"65Mi"}


async def test_a_restart_that_is_under_way_is_not_lost_with_the_next_change(pool: Pool) -> None:
    """runStrategy Manual: nothing but the request makes the next instance."""
    slow = template("Manual", simulated={"ignores-power-button": "true"}, terminationGracePeriodSeconds=2)
    await pool.make(1, slow)
    await pool.shows(replicas=1)
    await pool.annotate(1, {labels.START_REQUEST: "1"})
    before = uid(await pool.herd.running("web-1"))
    await pool.roll(memory("65Mi"))

    async def ending() -> Json:
        instance = await pool.herd.instance("web-1")
        assert instance is not None
        assert "deletionTimestamp" in instance["metadata"]
        return instance

    await pool.herd.eventually(ending)
    await pool.roll({"metadata": {"labels": {"another": "change"}}})
    running = await pool.herd.running("web-1", but=before)
    assert size_of(running) == "65Mi"
    await pool.settled(1)

"""The pools that seed 003 prints, with fewer machines: they do what it says of them."""

import yaml

from herder.api import labels
from tests.behaviour.test_seed_manifests import AUTOMATIC, MISSPELLED
from tests.engines.resources import CLAIMS
from tests.machines.herd import MACHINES, Herd
from tests.machines.volumes import becomes
from tests.pools.pool import POOLS, Pool, memory, size_of, uid

QUICK = {labels.SIMULATED + "boot": "50ms", labels.SIMULATED + "shutdown": "50ms"}


async def applied(herd: Herd, printed: str, replicas: int) -> Pool:
    pool = Pool(herd, "my-vm-pool")
    body = yaml.safe_load(printed)
    body["spec"] = {**body["spec"], "replicas": replicas}
    body["spec"]["template"]["spec"]["template"]["metadata"] = {"annotations": QUICK}
    (await herd.api.create(POOLS, body, herd.namespace)).ok  # noqa: B018
    await pool.settled(replicas, readyReplicas=0)
    return pool


async def claims(pool: Pool, numbers: list[int]) -> dict[int, str]:
    for number in numbers:
        await becomes(pool.herd, "Succeeded", f"alpine-dv-{number}")
    return {number: uid((await pool.api.get(CLAIMS, f"alpine-dv-{number}", pool.namespace)).ok) for number in numbers}


def corrected(name: str) -> str:
    printed, wrong, _, meant = MISSPELLED[name]
    return printed.replace(wrong, meant)


async def oldest(pool: Pool) -> list[int]:
    made = {name: one["metadata"]["creationTimestamp"] for name, one in (await pool.machines()).items()}
    return sorted(await pool.numbers(), key=lambda number: (made[pool.vm(number)], number))


async def test_automatic_rolling_updates_and_scale_in_that_keeps_the_disks_of_the_oldest(herd: Herd) -> None:
    pool = await applied(herd, AUTOMATIC, 3)
    before = await claims(pool, [1, 2, 3])
    await pool.roll({"spec": {"running": True}})
    await pool.settled(3)
    instances = await pool.uids()
    await pool.roll(memory("600Mi"))
    await pool.settled(3)
    assert not set((await pool.uids()).values()) & set(instances.values())
    assert {size_of(one) for one in (await pool.instances()).values()} == {"600Mi"}
    order = await oldest(pool)
    await pool.change(replicas=1)
    await pool.has(order[-1])
    await pool.shows(replicas=1, preservedStates=2)
    await pool.change(replicas=3)
    await pool.settled(3, preservedStates=0)
    assert await claims(pool, [1, 2, 3]) == before


async def test_manual_updates_and_manual_scale_in_touch_nothing(herd: Herd) -> None:
    pool = await applied(herd, corrected("manual"), 3)
    machines = {name: uid(one) for name, one in (await pool.machines()).items()}
    await pool.roll(memory("600Mi"))
    await pool.change(replicas=2)
    await pool.shows(replicas=3, surplusReplicas=1, updatedReplicas=0)
    assert {name: uid(one) for name, one in (await pool.machines()).items()} == machines
    await herd.delete("my-vm-pool-2")
    await herd.gone(MACHINES, "my-vm-pool-2")
    await pool.shows(replicas=2, surplusReplicas=0)
    await pool.has(1, 3)


async def test_scale_in_takes_the_labelled_machines_first_and_then_the_oldest(herd: Herd) -> None:
    pool = await applied(herd, corrected("ordered"), 4)
    before = await claims(pool, [3])
    await pool.mark(3, {"non-important-vms": ""})
    order = [number for number in await oldest(pool) if number != 3]
    await pool.change(replicas=3)
    await pool.has(1, 2, 4)
    await pool.change(replicas=2)
    await pool.has(*sorted(order[1:]))
    await pool.change(replicas=4)
    await pool.has(1, 2, 3, 4)
    await pool.settled(4, readyReplicas=0, preservedStates=0)
    assert await claims(pool, [3]) == before

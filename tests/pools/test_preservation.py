"""What stays of machines that a pool takes away, who gets it back, and when it goes."""

import pytest

from herder.api import labels
from tests.engines.resources import CLAIMS
from tests.machines.herd import DATA_VOLUMES, MACHINES, Json
from tests.machines.volumes import BLANK, becomes
from tests.pools.pool import FIRST, POOLS, Pool, template, uid

OFFLINE = {"proactive": {"statePreservation": "Offline"}}


async def claim_of(pool: Pool, number: int) -> str:
    await becomes(pool.herd, "Succeeded", pool.volume(number))
    return uid((await pool.api.get(CLAIMS, pool.volume(number), pool.namespace)).ok)


async def preserved(pool: Pool, number: int) -> Json:
    """The disk, once its machine is gone and the pool alone owns it."""

    async def look() -> Json:
        disk = (await pool.disks()).get(number)
        assert disk is not None
        owners = disk["metadata"].get("ownerReferences", [])
        assert [(one["kind"], one.get("controller", False)) for one in owners] == [("VirtualMachinePool", False)], owners
        return disk

    await pool.herd.gone(MACHINES, pool.vm(number))
    return await pool.herd.eventually(look)


async def released(pool: Pool, number: int) -> Json:
    """The disk, once its machine alone owns it."""

    async def look() -> Json:
        disk = (await pool.disks()).get(number)
        # One that was not kept is made anew, in a moment.
        assert disk is not None
        owners = [(one["kind"], one.get("controller", False)) for one in disk["metadata"].get("ownerReferences", ())]
        assert owners == [("VirtualMachine", True)], owners
        return disk

    return await pool.herd.eventually(look)


async def half_preserved(pool: Pool, number: int) -> None:
    """As a controller leaves it that dies between its two writes: the pool is a second owner, the machine is there."""
    disk = (await pool.disks())[number]
    owners = [*disk["metadata"]["ownerReferences"], await pool.reference(blockOwnerDeletion=False)]
    await pool.herd.patch(pool.volume(number), {"metadata": {"ownerReferences": owners}}, DATA_VOLUMES)


@pytest.mark.parametrize(
    ("strategy", "keeps"),
    [
        ({"proactive": {"statePreservation": "Offline"}}, True),
        ({"proactive": {"statePreservation": "Online"}}, True),
        ({"proactive": {"statePreservation": "Disabled"}}, False),
        ({"opportunistic": {"statePreservation": "Offline"}}, True),
        ({"opportunistic": {"statePreservation": "Online"}}, True),
        ({"opportunistic": {}}, False),
    ],
    ids=lambda value: str(value)[1:30] if isinstance(value, dict) else "",
)
async def test_a_machine_that_comes_back_has_the_disk_that_was_kept(pool: Pool, strategy: Json, keeps: bool) -> None:
    opportunistic = "opportunistic" in strategy
    await pool.make(2, template("Halted" if opportunistic else "Always", disk=BLANK), scaleInStrategy=strategy)
    await pool.settled(2, **({"readyReplicas": 0} if opportunistic else {}))
    before = await claim_of(pool, 1)
    await pool.annotate(1, FIRST)
    await pool.change(replicas=1)
    await pool.has(2)
    if keeps:
        await preserved(pool, 1)
    else:
        await pool.herd.gone(CLAIMS, pool.volume(1))
    await pool.shows(replicas=1, preservedStates=1 if keeps else 0)
    # What is kept already is used, whatever the strategy says by then.
    await pool.change(replicas=2, scaleInStrategy={"proactive": {"statePreservation": "Disabled"}, "opportunistic": None})
    await pool.has(1, 2)
    await released(pool, 1)
    await pool.settled(2, preservedStates=0, **({"readyReplicas": 0} if opportunistic else {}))
    assert (await claim_of(pool, 1) == before) == keeps


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_pool_deleted_in_mid_preservation(pool: Pool, policy: str) -> None:
    """One disk is kept, another is about to be, a third is of a machine that stays: all go with the pool, or all stay."""
    await pool.make(3, template("Halted", disk=BLANK), scaleInStrategy=OFFLINE)
    await pool.settled(3, readyReplicas=0)
    claims = {number: await claim_of(pool, number) for number in (1, 2, 3)}
    await pool.annotate(1, FIRST)
    await pool.change(replicas=2)
    await preserved(pool, 1)
    await pool.change(paused=True)
    await pool.says("Paused", status="True")
    await half_preserved(pool, 2)
    await pool.delete(policy)
    await pool.herd.gone(POOLS, pool.name)
    if policy != "Orphan":
        for number in (1, 2, 3):
            await pool.herd.gone(MACHINES, pool.vm(number))
            await pool.herd.gone(CLAIMS, pool.volume(number))
        return
    assert sorted(await pool.machines()) == ["web-2", "web-3"]

    # Pool recreated under its name: it has another uid, and takes neither machines nor disks of the old one.
    await pool.make(2, template("Halted", disk=BLANK), scaleInStrategy=OFFLINE)
    await pool.has(1, 4)
    said = await pool.says("ReplicaFailure", status="True")
    assert "disk-1" in said["message"]
    for number in (1, 2, 3):
        assert await claim_of(pool, number) == claims[number]
    for number in (2, 3):
        assert "ownerReferences" not in (await pool.herd.machine(pool.vm(number)))["metadata"]
    assert "ownerReferences" not in (await pool.disks())[1]["metadata"]


async def test_crash_between_second_owner_patch_and_vm_delete_scale_out_or_detach_meanwhile(pool: Pool) -> None:
    await pool.make(3, template("Halted", disk=BLANK), scaleInStrategy=OFFLINE)
    await pool.settled(3, readyReplicas=0)
    claim = await claim_of(pool, 1)
    for number in (2, 3):
        await claim_of(pool, number)
    await pool.change(paused=True)
    await pool.says("Paused", status="True")
    for number in (1, 2, 3):
        await half_preserved(pool, number)
    # The first is to go all the same, the second stays, the third is detached.
    await pool.annotate(1, FIRST)
    await pool.own(3)
    await pool.change(paused=False, replicas=1)
    await preserved(pool, 1)
    await released(pool, 2)
    await released(pool, 3)
    await pool.shows(replicas=1, preservedStates=1, detached=["web-3"])
    # Deleted by hand: nothing of it is kept, and the one that was kept is the next.
    await pool.herd.delete("web-2")
    await pool.herd.gone(CLAIMS, "disk-2")
    await pool.has(1)
    assert await claim_of(pool, 1) == claim


async def test_template_changed_while_preserved(pool: Pool) -> None:
    """The disk comes back under the new template, and is not wiped because that does not start."""
    await pool.make(2, template(disk=BLANK), scaleInStrategy=OFFLINE)
    await pool.settled(2)
    before = await claim_of(pool, 1)
    await pool.annotate(1, FIRST)
    await pool.change(replicas=1)
    await preserved(pool, 1)
    await pool.roll({"spec": {"template": {"spec": {"domain": {"memory": {"guest": "65Mi"}}}}}})
    await pool.settled(1)
    await pool.change(replicas=2)
    await pool.settled(2)
    assert await claim_of(pool, 1) == before
    machine = await pool.herd.machine("web-1")
    assert machine["metadata"]["labels"][labels.POOL_REVISION] == (await pool.get())["status"]["currentRevision"]

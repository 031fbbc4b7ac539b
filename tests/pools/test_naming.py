"""Names of a pool's machines: which number comes next, and whose machines are left alone."""

from herder.api import labels
from tests.machines.herd import INSTANCES, MACHINES, machine
from tests.pools.pool import FIRST, Pool, template, uid


async def test_the_walk_of_the_seed_fills_gaps_first_and_then_appends(pool: Pool) -> None:
    await pool.make(3)
    await pool.settled(3)
    before = await pool.uids()
    await pool.annotate(2, FIRST)
    await pool.change(replicas=2)
    await pool.has(1, 3)
    await pool.settled(2)
    await pool.change(replicas=4)
    await pool.has(1, 2, 3, 4)
    await pool.settled(4)
    after = await pool.uids()
    assert (after[1], after[3]) == (before[1], before[3])
    assert after[2] != before[2]


async def test_a_machine_that_was_deleted_by_hand_is_made_afresh(pool: Pool) -> None:
    await pool.make(2, template("Halted"))
    await pool.settled(2, readyReplicas=0)
    before = (await pool.machines())["web-1"]
    await pool.herd.delete("web-1")

    async def afresh() -> bool:
        assert uid(await pool.herd.machine("web-1")) != uid(before)
        return True

    await pool.herd.eventually(afresh)
    await pool.has(1, 2)


async def test_a_machine_of_a_stranger_holds_its_number_also_when_it_was_made_right_before(pool: Pool) -> None:
    await pool.make(1, template("Halted"))
    await pool.has(1)
    stranger = await pool.herd.make("Halted", name="web-2")
    await pool.change(replicas=3)
    await pool.has(1, 3, 4)
    untouched = await pool.herd.machine("web-2")
    assert untouched["spec"] == stranger["spec"]
    assert "ownerReferences" not in untouched["metadata"]
    assert labels.POOL_REVISION not in untouched["metadata"].get("labels", {})
    await pool.shows(replicas=3, detachedReplicas=0)


async def test_an_owned_machine_with_another_name_is_named_and_never_touched(pool: Pool) -> None:
    await pool.make(1)
    await pool.settled(1)
    body = machine(name="odd")
    body["metadata"]["ownerReferences"] = [await pool.reference(controller=True)]
    (await pool.api.create(MACHINES, body, pool.namespace)).ok  # noqa: B018
    before = uid(await pool.herd.running("odd"))
    said = await pool.says("UnexpectedNames", status="True")
    assert "odd" in said["message"]
    await pool.roll({"spec": {"template": {"spec": {"domain": {"memory": {"guest": "65Mi"}}}}}})
    await pool.settled(1)
    # Nor is it counted.
    await pool.change(replicas=2)
    await pool.settled(2)
    await pool.change(replicas=0)
    await pool.settled(0)
    odd = await pool.herd.find(INSTANCES, "odd")
    assert odd is not None
    assert uid(odd) == before

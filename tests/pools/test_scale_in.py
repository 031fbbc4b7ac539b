"""Which machines go when a pool shrinks, and which may not."""

import pytest

from tests.engines.resources import NODES
from tests.machines.herd import Json
from tests.pools.pool import FIRST, NEVER, Pool, template

OFF = template("Halted")
REQUEST = {"herder.dev/start-requested": "1"}


async def test_first_goes_before_all_policies_and_never_is_not_taken(pool: Pool) -> None:
    strategy = {"proactive": {"selectionPolicy": {"basePolicy": "Oldest"}}}
    await pool.make(4, OFF, scaleInStrategy=strategy)
    await pool.settled(4, readyReplicas=0)
    await pool.annotate(3, FIRST)
    await pool.annotate(1, NEVER)
    await pool.change(replicas=3)
    await pool.has(1, 2, 4)
    await pool.change(replicas=0)
    await pool.has(1)
    await pool.shows(replicas=1, surplusReplicas=1)
    await pool.annotate(1, {"herder.dev/scale-in": None})
    await pool.has()
    await pool.shows(replicas=0, surplusReplicas=0)


async def test_label_then_scale_at_once_takes_the_labelled_machine(pool: Pool) -> None:
    """The cache of machines may be behind that of pools."""
    policies = [{"labelSelector": {"matchLabels": {"important": "no"}}}]
    strategy = {"proactive": {"selectionPolicy": {"orderedPolicies": policies, "basePolicy": "Newest"}}}
    await pool.make(6, OFF, scaleInStrategy=strategy)
    await pool.settled(6, readyReplicas=0)
    left = [1, 2, 3, 4, 5, 6]
    for number in (3, 1, 4):
        await pool.mark(number, {"important": "no"})
        left.remove(number)
        await pool.change(replicas=len(left))
        await pool.has(*left)
    # No filter: there is always one to choose.
    await pool.change(replicas=2)
    await pool.shows(replicas=2, surplusReplicas=0)


async def test_machines_on_nodes_that_the_policy_names_go_first(pool: Pool) -> None:
    policies = [
        {"nodeSelector": {"kubernetes.io/hostname": "no-such-node"}},
        {"nodeSelector": {"pools.example.com/leaving": pool.namespace}},
    ]
    await pool.make(3, scaleInStrategy={"proactive": {"selectionPolicy": {"orderedPolicies": policies, "basePolicy": "Oldest"}}})
    await pool.settled(3)
    node = (await pool.instances())[2]["status"]["nodeName"]
    there = [number for number, one in (await pool.instances()).items() if one["status"]["nodeName"] == node]
    (await pool.api.patch(NODES, node, {"metadata": {"labels": {"pools.example.com/leaving": pool.namespace}}})).ok  # noqa: B018
    try:
        await pool.change(replicas=2)
        await pool.has(*sorted({1, 2, 3} - {min(there)}))
    finally:
        await pool.api.patch(NODES, node, {"metadata": {"labels": {"pools.example.com/leaving": None}}})


async def test_random_takes_those_that_are_missed_least(pool: Pool) -> None:
    """Halted before failing before ready."""
    await pool.make(4)
    await pool.settled(4)
    await pool.herd.patch("web-3", {"spec": {"runStrategy": "Halted"}})
    broken = {"spec": {"template": {"metadata": {"annotations": {"simulated.herder.dev/fails-at": "boot"}}}}}
    instance = (await pool.uids())[2]
    await pool.herd.patch("web-2", {**broken, "metadata": {"annotations": {"herder.dev/restart-requested": instance}}})
    await pool.herd.shows("CrashLoopBackOff", "web-2")
    await pool.herd.shows("Stopped", "web-3")
    await pool.change(replicas=3)
    await pool.has(1, 2, 4)
    await pool.change(replicas=2)
    await pool.has(1, 4)


async def test_opportunistic_takes_only_halted_machines_and_the_rest_shows_as_surplus(pool: Pool) -> None:
    await pool.make(3, scaleInStrategy={"opportunistic": {}})
    await pool.settled(3)
    await pool.change(replicas=1)
    await pool.shows(replicas=3, surplusReplicas=2, readyReplicas=3)
    await pool.herd.patch("web-2", {"spec": {"runStrategy": "Halted"}})
    await pool.has(1, 3)
    await pool.shows(replicas=2, surplusReplicas=1, readyReplicas=2)


@pytest.mark.parametrize("started", [{"spec": {"runStrategy": "Always"}}, {"metadata": {"annotations": REQUEST}}])
async def test_opportunistic_vm_started_between_choice_and_delete_stays(pool: Pool, started: Json) -> None:
    """Whatever the pool looked at: a machine that is not halted by the time of the delete stays."""
    manual = template("Manual" if "metadata" in started else "Halted")
    await pool.make(2, manual, scaleInStrategy={"opportunistic": {}})
    await pool.settled(2, readyReplicas=0)
    for number in (1, 2):
        await pool.herd.patch(pool.vm(number), started)
    await pool.change(replicas=0)
    for number in (1, 2):
        await pool.herd.running(pool.vm(number))
    await pool.shows(replicas=2, surplusReplicas=2, readyReplicas=2)


async def test_unmanaged_takes_nothing_and_rollouts_go_on_all_the_same(pool: Pool) -> None:
    await pool.make(2, scaleInStrategy={"unmanaged": {}})
    await pool.settled(2)
    await pool.change(replicas=1)
    await pool.shows(replicas=2, surplusReplicas=1)
    await pool.roll({"spec": {"template": {"spec": {"domain": {"memory": {"guest": "65Mi"}}}}}})
    await pool.settled(2, surplusReplicas=1)
    await pool.herd.delete("web-1")
    await pool.has(2)
    await pool.shows(replicas=1, surplusReplicas=0)


async def test_equal_creation_times_go_by_the_lower_number(pool: Pool) -> None:
    """Twelve machines are made within a second or two: among equals the lower number goes, and not the lesser text."""
    await pool.make(12, OFF, scaleInStrategy={"proactive": {"selectionPolicy": {"basePolicy": "Oldest"}}})
    await pool.settled(12, readyReplicas=0)
    made = {name: one["metadata"]["creationTimestamp"] for name, one in (await pool.machines()).items()}
    order = sorted(range(1, 13), key=lambda number: (made[pool.vm(number)], number))
    await pool.change(replicas=10)
    await pool.has(*sorted(order[2:]))

"""`herder drain` of ten real guests: all of them leave, never more at once than is allowed, and none misses a number."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from herder.api import registry
from herder.rules.migration.phases import COMING_IN, UNDER_WAY
from tests.behaviour.our_kinds import resource_of
from tests.e2e.herder import Herder
from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, MIGRATIONS, PATIENCE, Counters, counters
from tests.engines.api import Json
from tests.engines.resources import NODES, PODS
from tests.engines.waiting import eventually
from tests.engines.watching import Watch

pytestmark = pytest.mark.usefixtures("migrations")
SETTINGS, KUBEVIRT = resource_of(registry.SETTINGS), "kubevirt"
GUESTS = [f"vm-{number}" for number in range(10)]
LOAD = "rate=4 dirty=256K/s working-set=1M"
FULL, OTHERS = "node-1", ("node-2", "node-3")
CLUSTER, OUTBOUND, INBOUND = 3, 2, 1
LIMITS = {
    "parallelMigrationsPerCluster": CLUSTER,
    "parallelOutboundMigrationsPerNode": OUTBOUND,
    "parallelInboundMigrationsPerNode": INBOUND,
}


class Turns:
    """How many migrations were under way at once, at most: of the cluster, from each node, and to each node."""

    def __init__(self) -> None:
        self._now: dict[str, Json] = {}
        self.cluster = 0
        self.out: Counter[str] = Counter()
        self.into: Counter[str] = Counter()

    async def follow(self, watch: Watch) -> None:
        while True:
            event = await watch.next(PATIENCE)
            self._now[event.name] = event.object.get("status", {}) if event.type != "DELETED" else {}
            self._count()

    def _count(self) -> None:
        under_way = [one for one in self._now.values() if one.get("phase") in UNDER_WAY]
        self.cluster = max(self.cluster, len(under_way))
        self.out |= Counter(one["sourceNode"] for one in under_way)
        self.into |= Counter(one["targetNode"] for one in under_way if one["phase"] in COMING_IN)


async def test_ten_guests_leave_a_drained_node_within_the_limits_and_none_misses_a_number(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=3) as herd:
        await _fill(herd)
        herder = Herder(herd.up.kubeconfig, tmp_path, HERE, patience=2 * PATIENCE)
        turns = Turns()
        async with herd.api.watch(MIGRATIONS, HERE) as watch:
            following = asyncio.create_task(turns.follow(watch))
            told = await asyncio.to_thread(herder, "drain", FULL, "--timeout", str(PATIENCE))
            await eventually(lambda: _all_over(herd), PATIENCE)
            following.cancel()
        lines = told.splitlines()
        assert (lines[0], lines[-1]) == (f"node/{FULL} is being drained", f"node/{FULL} is empty: {len(GUESTS)} moved")
        assert any("Pending: WaitingForOutboundLimit" in line for line in lines), "a row says which limit its guest waits for"
        assert turns.cluster <= CLUSTER
        # As many as may, or the limits were never tried.
        assert turns.out == {FULL: OUTBOUND}
        assert turns.into == dict.fromkeys(OTHERS, INBOUND)
        for name in GUESTS:
            await herd.counts(name)
            herd.witness.assert_one_counter(name)
            assert herd.witness.places(name) == 2
        await _takes_guests_again(herd, herder)


async def _fill(herd: Counters) -> None:
    settings = {"spec": {"configuration": {"migrations": LIMITS}}}
    (await herd.api.patch(SETTINGS, KUBEVIRT, settings, KUBEVIRT)).ok  # noqa: B018
    await _cordon(herd, True)
    for name in GUESTS:
        await herd.make(name, LOAD)
    for name in GUESTS:
        assert (await herd.runs(name))["status"]["nodeName"] == FULL
    await _cordon(herd, False)


async def _cordon(herd: Counters, closed: bool) -> None:
    for name in OTHERS:
        (await herd.api.patch(NODES, name, {"spec": {"unschedulable": closed}})).ok  # noqa: B018


async def _all_over(herd: Counters) -> bool:
    """Everybody is elsewhere, and nothing is left where they were."""
    pods, instances, moves = [await herd.all(kind) for kind in (PODS, INSTANCES, MIGRATIONS)]
    assert [one["status"]["phase"] for one in moves] == ["Succeeded"] * len(GUESTS), moves
    assert not any(one["metadata"].get("finalizers") for one in moves)
    places = {one["metadata"]["name"]: one["status"]["nodeName"] for one in instances}
    assert sorted(places) == GUESTS and FULL not in places.values(), places
    assert not list((herd.up.data / "nodes" / FULL / "guests").iterdir())
    uids = sorted(one["metadata"]["uid"] for one in pods)
    assert herd.left() == {"processes": uids, "folders": uids, "notes": [f"{uid}.coming" for uid in uids]}
    return True


async def _takes_guests_again(herd: Counters, herder: Herder) -> None:
    """Not before it is told so."""
    await herd.make("late", LOAD, nodeSelector={"kubernetes.io/hostname": FULL})

    async def refused() -> bool:
        (late,) = [one for one in await herd.all(MACHINES) if one["metadata"]["name"] == "late"]
        return late.get("status", {}).get("printableStatus") == "ErrorUnschedulable"

    await eventually(refused, PATIENCE)
    assert await asyncio.to_thread(herder, "undrain", FULL) == f"node/{FULL} takes guests again\n"
    assert (await herd.runs("late"))["status"]["nodeName"] == FULL

"""Whatever happens to the pods of a StatefulSet, and in whatever order: it keeps its promises on the way, and comes to rest."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from herder.rules.workloads import plan_stateful_set
from herder.rules.workloads.revisions import Revision

from .stateful import NEW, OLD, member, snapshot, stateful_set
from .things import NOW

STATES: dict[str, dict[str, Any]] = {
    "pending": {"ready": None, "phase": "Pending"},
    "ready": {},
    "failed": {"ready": None, "phase": "Failed", "lasted": 60},
    "going": {"deleted": True},
}
# What nodes and people do to a pod; None: it is gone. The first two go on to the end.
HAPPENS = (("going", None), ("pending", "ready"), ("ready", "failed"), ("ready", "going"), ("pending", "going"))


class _Pod(msgspec.Struct):
    revision: Revision
    state: str
    # Never used twice.
    uid: str


class World:
    def __init__(self, policy: str, replicas: int) -> None:
        self.ordered = policy == "OrderedReady"
        self.replicas = replicas
        self.pods = {ordinal: _Pod(OLD, "ready", f"first-{ordinal}") for ordinal in range(replicas)}
        self._made = 0

    def work(self) -> None:
        """What the controller does in one go."""
        policy = "OrderedReady" if self.ordered else "Parallel"
        pods = [member(ordinal, one.revision, uid=one.uid, **STATES[one.state]) for ordinal, one in self.pods.items()]
        one = stateful_set(self.replicas, spec={"podManagementPolicy": policy})
        plan = plan_stateful_set(snapshot(one, *pods, current=OLD), NOW)
        assert not self.ordered or len(plan.create) + len(plan.replace) + len(plan.delete) <= 1
        for new in plan.create:
            self._create(int(new.name.removeprefix("web-")))
        for gone in (*plan.replace, *plan.delete):
            self._end(int(gone.name.removeprefix("web-")), gone.uid)

    def _create(self, ordinal: int) -> None:
        assert ordinal not in self.pods, "two pods of one ordinal"
        assert not self.ordered or self._all_ready(range(ordinal))
        self._made += 1
        self.pods[ordinal] = _Pod(NEW, "pending", f"later-{self._made}")

    def _end(self, ordinal: int, uid: str) -> None:
        pod = self.pods[ordinal]
        assert (pod.uid, pod.state == "going") == (uid, False)
        if pod.state == "ready" and ordinal < self.replicas:
            # An update: those above it have had theirs, and are well.
            above = range(ordinal + 1, self.replicas)
            assert pod.revision is OLD and self._all_ready(above) and all(self.pods[one].revision is NEW for one in above)
        if self.ordered and ordinal >= self.replicas:
            assert self._all_ready(range(self.replicas)) and ordinal == max(self.pods)
        pod.state = "going"

    def _all_ready(self, ordinals: range) -> bool:
        return all(one in self.pods and self.pods[one].state == "ready" for one in ordinals)

    def happen(self, chance: random.Random, state: str, to: str | None) -> None:
        found = [ordinal for ordinal, pod in self.pods.items() if pod.state == state]
        if not found:
            return
        ordinal = chance.choice(found)
        if to is None:
            del self.pods[ordinal]
        else:
            self.pods[ordinal].state = to


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("seed", range(20))
def test_it_keeps_its_order_and_comes_to_rest(policy: str, seed: int) -> None:
    chance = random.Random(seed)
    world = World(policy, chance.randint(1, 4))
    for _ in range(60):
        world.work()
        world.happen(chance, *chance.choice(HAPPENS))
        if chance.random() < 0.1:
            world.replicas = chance.randint(0, 5)
    # From now on nobody disturbs it.
    for _ in range(80):
        world.work()
        for state, to in HAPPENS[:2]:
            world.happen(chance, state, to)
    assert {ordinal: (pod.revision.name, pod.state) for ordinal, pod in world.pods.items()} == dict.fromkeys(
        range(world.replicas), ("web-new", "ready")
    )

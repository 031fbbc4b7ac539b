"""Replacement first, whatever happens in between: looks that end after any write, and everybody else at any moment.

At every moment as many pods serve as are wanted; there is never more than one too many; and in the end nobody is left over."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from herder.api import reasons
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.execution.status import is_over
from tests.unit.rules.jobs.execution.surge_world import OLD, ROOM_TTL, TTL, Crash, World

SEEDS = 25
LIMIT = Wait(reasons.WAITING_FOR_GLOBAL_LIMIT, "1 job migrates, and 1 may at once")
# What somebody does in the middle, at most once: its name, the deed, and how many pods there may be beyond those that are wanted.
DEEDS: dict[str, tuple[Callable[[World], None], int]] = {
    "nothing": (lambda world: None, 1),
    "abort": (World.abort, 1),
    "delete the job": (World.delete_job, 1),
    "pause": (World.pause, 1),
    "time is over": (lambda world: world.pass_time(TTL + 1), 1),
    "scale to zero": (lambda world: world.scale(0), 4),
    "scale down": (lambda world: world.scale(max(1, world.wanted - 1)), 2),
    "scale up": (lambda world: world.scale(world.wanted + 1), 1),
    "delete the Deployment": (World.delete_deployment, 4),
    "roll out": (World.roll_out, 4),
    "restore the label": (World.restore_label, 1),
    "delete the pod": (lambda world: _delete_old(world), 1),
}


def _delete_old(world: World) -> None:
    if world.old is not None:
        world.tell_to_end(OLD)
        world.least -= 1


def _watched(world: World, beyond: int) -> None:
    most = max(world.wanted, world.least) + beyond

    def look() -> None:
        assert len(world.serving) >= world.least, "a pod went before its replacement was ready"
        assert len(world.active) <= most + max(0, world.wanted - world.least), "more pods than one too many"

    world.watch = look


def _run(world: World, chance: random.Random, deed: Callable[[World], None]) -> None:
    due = chance.randrange(30)
    for step in range(60):
        if step == due:
            deed(world)
        world.pass_time(1)
        if chance.random() < 0.4:
            try:
                world.look(crash_after=chance.choice((None, None, 0, 1, 2, 3)), held=LIMIT if chance.random() < 0.1 else None)
            except Crash:
                continue
        else:
            chance.choice(world.everybody())()
        world.watch()


@pytest.mark.parametrize("name", DEEDS)
def test_whatever_is_lost_as_many_serve_as_before_and_nobody_is_left_over(name: str) -> None:
    deed, beyond = DEEDS[name]
    for seed in range(SEEDS):
        chance = random.Random(f"{name} {seed}")
        replicas = chance.choice((1, 1, 3))
        world = World(
            replicas,
            min_available=chance.choice((None, replicas)),
            has_room=chance.random() < 0.9,
            comes_up=chance.random() < 0.8,
            min_ready=chance.choice((0, 7)),
        )
        _watched(world, beyond)
        _run(world, chance, deed)
        world.pause(False)
        for seconds in (TTL, ROOM_TTL):
            world.pass_time(seconds)
            world.settle()
        _assert_clean(world, f"{name}, seed {seed}")


def _assert_clean(world: World, told: str) -> None:
    assert world.job is None or is_over(world.view_of_job), told
    assert world.job is None or not world.job["metadata"]["finalizers"], told
    assert all(pod.controller is not None and len(pod.metadata.owner_references or ()) == 1 for pod in world.views()), told
    own = [pod for pod in world.active if pod.controller_uid == "rs"]
    assert len(own) == (world.wanted if world.set_there else 0), told
    assert world.reservation is None or world.reservation["status"]["phase"] != "Available", told

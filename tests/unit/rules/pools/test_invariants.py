"""Plans carried out over and over, by who dies in between, while people and nodes do what they do: what must never happen does not,
and in the end there is what was asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.examples import examples

from .world import BAD, GOOD, MENDED, NODES, POOL, TEMPLATES, THRESHOLD, Instance, World

STEPS = 60


def _any_machine(world: World) -> str | None:
    names = [name for name, one in world.machines.items() if not one.deleting]
    return world.dice.choice(sorted(names)) if names else None


def change_template(world: World) -> None:
    world.memory = world.dice.choice([*GOOD, *BAD])


def scale(world: World) -> None:
    world.replicas = world.dice.randint(0, 9)


def change_strategy(world: World) -> None:
    kept = world.dice.choice(["Disabled", "Offline", "Online", "Online"])
    kind = world.dice.choice(["proactive", "proactive", "opportunistic"])
    world.spec = {**world.spec, "scaleInStrategy": {kind: {"statePreservation": kept}}}


def change_standby(world: World) -> None:
    world.spec = {
        **world.spec,
        "standby": {"replicas": world.dice.randint(0, 2), "state": world.dice.choice(["Offline", "Online"])},
    }


def change_rollout(world: World) -> None:
    settings = world.dice.choice([{}, {"paused": True}, {"limit": 2}, {"onFailure": "Rollback"}, {"volumes": "Reprovision"}])
    chosen = world.dice.choice([{"proactive": settings}, {"proactive": settings}, {"opportunistic": {}}, {"unmanaged": {}}])
    world.spec = {**world.spec, "updateStrategy": chosen}


def change_limits(world: World) -> None:
    most, least = world.dice.choice(["25%", "50%", "100%", 1, 2]), world.dice.choice([0, 0, 10, 60])
    world.spec = {**world.spec, "maxUnavailable": most, "minReadySeconds": least}


def pause(world: World) -> None:
    world.spec = {**world.spec, "paused": world.dice.random() < 0.3}


def spoil(world: World) -> None:
    name = _any_machine(world)
    volume = world.volumes.get(f"disk-of-{name}")
    if name is not None and volume is not None and volume.controller == world.machines[name].uid:
        volume.spoiled = True
        world.machines[name].instance = None


def crash(world: World) -> None:
    name = _any_machine(world)
    if name is not None:
        world.machines[name].instance = None


def switch(world: World) -> None:
    name = _any_machine(world)
    if name is not None:
        machine = world.machines[name]
        machine.run, machine.version = "Halted" if machine.run == "Always" else "Always", machine.version + 1


def detach(world: World) -> None:
    name = _any_machine(world)
    if name is not None:
        machine = world.machines[name]
        machine.owner, machine.offered, machine.version = "", world.dice.random() < 0.5, machine.version + 1


def delete(world: World) -> None:
    name = _any_machine(world)
    if name is not None:
        world.machines[name].deleting = True
        world.machines[name].version += 1


def wish(world: World) -> None:
    name = _any_machine(world)
    if name is not None:
        world.machines[name].scale_in = world.dice.choice(["", "first", "never"])
        world.machines[name].version += 1


def lose_node(world: World) -> None:
    node = world.dice.choice(NODES)
    world.lost = {node} if not world.lost else set()


def lose_node_of_a_sick_one(world: World) -> None:
    """Its disk is spoilt, it has failed often enough, and is tried once more when its node falls silent."""
    spoil(world)
    sick = [one for one in world.machines.values() if one.instance is None and one.run == "Always" and not one.deleting]
    volume = world.volumes.get(f"disk-of-{sick[0].name}") if sick else None
    if volume is None or not volume.spoiled or volume.controller != sick[0].uid:
        return
    node = world.dice.choice(NODES)
    sick[0].instance = Instance(world.fresh("vmi"), sick[0].revision, sick[0].bad, node)
    sick[0].failures = sick[0].own_failures = THRESHOLD
    sick[0].failing_since, sick[0].version = world.now, sick[0].version + 1
    world.lost = {node}


EVENTS: list[Callable[[World], None]] = [
    *(
        change_template,
        change_template,
        scale,
        scale,
        change_strategy,
        change_standby,
        change_rollout,
        change_limits,
        pause,
        spoil,
        crash,
    ),
    *(switch, detach, delete, wish, lose_node, lose_node_of_a_sick_one),
]


def live(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        if world.dice.random() < 0.35:
            world.dice.choice(EVENTS)(world)
        preserved = _preserved(world)
        if world.dice.random() < 0.7:
            world.sync()
        world.reconcile(crash=0.05)
        world.now += world.dice.choice([0.1, 1.0, 5.0, 40.0, 200.0])
        if world.dice.random() < 0.8:
            world.run_machines()
        _check_preserved(world, preserved)
    return world


def _preserved(world: World) -> dict[str, tuple[str, str]]:
    return {name: (one.uid, one.machine) for name, one in world.volumes.items() if one.kept_by_pool and not one.controller}


def _check_preserved(world: World, before: dict[str, tuple[str, str]]) -> None:
    for name, (uid, machine) in before.items():
        found = world.volumes.get(name)
        if found is None or found.uid != uid:
            world.note(f"{name}, which was preserved, is lost")
        elif found.controller and found.controller != getattr(world.machines.get(machine), "uid", ""):
            world.note(f"{name}, which was preserved for {machine}, was given to another")


def settle(world: World) -> None:
    """People mend what they can: a good template, nodes that answer, disks that are whole; nobody holds anything back any more."""
    world.lost, world.memory, world.replicas = set(), MENDED, 5
    world.spec = {"autohealing": {}, "progressDeadlineSeconds": 120}
    for volume in world.volumes.values():
        volume.spoiled = False
    for machine in world.machines.values():
        machine.scale_in, machine.run, machine.version = "", "Always", machine.version + 1
    for _ in range(120):
        world.sync()
        acted = world.reconcile()
        world.run_machines()
        world.now += 10.0
        if not acted and not _unfinished(world):
            return


def _unfinished(world: World) -> str:
    world.sync()
    ours = [world.member(one) for one in world.machines.values() if one.owner == POOL]
    late = [one.name for one in ours if not one.ready or world.machines[one.name].bad]
    current = world.status.current_revision if world.status else ""
    there = len(ours) == world.replicas and not late and current == (world.status.update_revision if world.status else None)
    return (
        "" if there else f"{len(ours)} of {world.replicas}, not ready {late}, {current}, {world.status and world.status.conditions}"
    )


@pytest.mark.parametrize("group", [0, *(pytest.param(group, marks=pytest.mark.slow) for group in range(1, 40))])
def test_nothing_that_must_not_happen_happens_and_in_the_end_there_is_what_was_asked_for(group: int) -> None:
    wrong: list[str] = []
    for seed in range(group * 75, group * 75 + examples(75)):
        world = live(seed)
        settle(world)
        left = _unfinished(world)
        wrong += [f"seed {seed}: {what}" for what in (*world.wrong, *([f"it does not come to rest: {left}"] if left else []))]
    assert not wrong, "\n".join(wrong[:20])


def test_the_world_knows_good_templates_from_bad_ones() -> None:
    assert set(GOOD).isdisjoint(BAD)
    assert set(TEMPLATES) == {*GOOD, *BAD, MENDED}

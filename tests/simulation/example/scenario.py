"""What people do to flocks."""

from __future__ import annotations

import msgspec

from herder.kube.client import Client
from herder.kube.resources import Key
from tests.simulation.example.controller import FlockController, start_with
from tests.simulation.example.kind import FLOCK, FLOCKS
from tests.simulation.matrix import Scenario, Step

KEY = Key("default", "merinos")


async def make(client: Client) -> None:
    spec = {"sheep": 2, "pasture": "north", "bells": ["ding"], "restAfterSeconds": 10}
    await client.create(FLOCKS, {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": spec})


async def move_and_shrink(client: Client) -> None:
    await client.patch(FLOCKS, KEY, {"spec": {"pasture": "hill", "sheep": 1}})


async def grow(client: Client) -> None:
    await client.patch(FLOCKS, KEY, {"spec": {"sheep": 2}})


STEPS: tuple[Step, ...] = (make, move_and_shrink, grow)


def expect(left: dict[str, bytes]) -> str:
    """All sheep are there, and they rest."""
    flock = msgspec.json.decode(left[f"flocks.example.herder.dev {KEY}"])
    sheep = [name for name in left if name.startswith("configmaps ")]
    if len(sheep) != flock["spec"]["sheep"]:
        return f"there should be {flock['spec']['sheep']} sheep, but there are {len(sheep)}"
    phase = flock.get("status", {}).get("phase")
    return "" if phase == "Resting" else f"the flock should rest, but its phase is {phase}"


def flocks(make_controller: type[FlockController] = FlockController, steps: tuple[Step, ...] = STEPS) -> Scenario:
    return Scenario("flocks", kinds=(FLOCK,), controllers=(start_with(make_controller),), steps=steps, expect=expect)


FLOCKS_ALONE = flocks()
# With nodes, and more patience: there several things go wrong at once.
FLOCKS_IN_A_STORM = msgspec.structs.replace(FLOCKS_ALONE, nodes=2, quiet=120.0)

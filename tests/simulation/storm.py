"""Many faults in one run, chosen by the seed: what no single fault shows, two together may."""

from __future__ import annotations

import random

from tests.simulation.cluster import CONTROLLERS
from tests.simulation.faults import ON_WRITES, Fault, Killed

MOST_WRITES = 14
# While people are at work on the example: three rests of a minute each.
LASTS = 180.0


def storm(seed: int) -> list[Fault]:
    dice = random.Random(f"{seed}/storm")
    chosen = dice.sample(ON_WRITES, dice.randint(2, 5))
    faults: list[Fault] = [kind(CONTROLLERS, dice.randint(1, MOST_WRITES)) for kind in chosen]
    for machine in dice.sample(["controllers-a", "controllers-b", "api", "node-1", "node-2"], dice.randint(0, 3)):
        faults.append(Killed(machine, round(dice.uniform(1.0, LASTS), 3), back_after=round(dice.uniform(0.5, 20.0), 3)))
    return faults

"""The world as each machine sees it: its own clock, which may jump, and its own dice, which the seed decides."""

from __future__ import annotations

import random
import uuid

from herder.api.world import SUFFIX_ALPHABET, SUFFIX_LENGTH
from tests.simulation.loop import VirtualLoop

START = 1_900_000_000.0


class SimulatedWorld:
    def __init__(self, loop: VirtualLoop, seed: int, name: str) -> None:
        self._loop = loop
        # Each has its own: one that is asked more often, because of a fault, does not change what the others get.
        self._dice = random.Random(f"{seed}/{name}")
        self.jumped = 0.0

    def now(self) -> float:
        return START + self._loop.time() + self.jumped

    def random(self) -> float:
        return self._dice.random()

    def uid(self) -> str:
        return str(uuid.UUID(int=self._dice.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._dice.choice(SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))

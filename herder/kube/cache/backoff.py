"""How long to wait before the next try: twice as long each time, and never all clients at once."""

from __future__ import annotations

from herder.api.world import World

SHORTEST = 0.2
LONGEST = 30.0


class Backoff:
    def __init__(self, world: World) -> None:
        self._world = world
        self._next = SHORTEST

    def take(self) -> float:
        """From this much up to twice as much: clients that lost the same server do not come back together."""
        base = self._next
        self._next = min(base * 2, LONGEST)
        return min(base * (1 + self._world.random()), LONGEST)

    def reset(self) -> None:
        self._next = SHORTEST

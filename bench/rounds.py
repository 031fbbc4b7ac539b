"""A noisy machine is noisy to both sides: they take turns, and what counts is the median round of each."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bench.load import BUSY, Client

Figures = dict[str, float]
# For whatever the last round left to do: garbage, checkpoints, compaction.
_REST = 0.5


@dataclass
class Measured:
    """What each round of each side gave."""

    rounds: dict[str, list[Figures]] = field(default_factory=dict[str, list[Figures]])

    def add(self, side: str, figures: Figures) -> None:
        self.rounds.setdefault(side, []).append(figures)

    def median(self, side: str, figure: str) -> float | None:
        values = [figures[figure] for figures in self.rounds.get(side, []) if figure in figures]
        return statistics.median(values) if values else None

    def notes(self) -> list[str]:
        """Where the client was the limit, so that nobody takes its speed for the server's."""
        found: list[str] = []
        for side in self.rounds:
            busy = self.median(side, "busy")
            if busy and busy > BUSY:
                found.append(f"the client used {busy:.0%} of its core against {side}: that side could do more than it shows")
        return found


async def take_turns(clients: Sequence[Client], rounds: int, measure: Callable[[Client, int], Awaitable[Figures]]) -> Measured:
    """A B, B A, A B, ...: nobody is always the one who comes second. Round 0 warms up and is not counted."""
    measured = Measured()
    for number in range(rounds + 1):
        for client in clients if number % 2 else reversed(clients):
            figures = await measure(client, number)
            if number:
                measured.add(client.side.name, figures)
            await asyncio.sleep(_REST)
    return measured

"""The steps of a migration at which something may happen: each has a number, in the order in which they are reached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.simulation.machine import Machine
from tests.simulation.trace import Trace

Action = Callable[[], None]


class Points:
    def __init__(self, trace: Trace) -> None:
        self.reached: list[str] = []
        self._trace = trace
        self._actions: dict[int, Action] = {}

    def at(self, number: int, action: Action) -> None:
        self._actions[number] = action

    def reach(self, name: str, machine: Machine | None = None) -> None:
        """Whoever dies of what happens here goes no further."""
        number = len(self.reached)
        self.reached.append(name)
        self._trace.add("point", f"{number} {name}")
        life = machine.lives if machine is not None else 0
        if (action := self._actions.get(number)) is not None:
            action()
        if machine is not None and (not machine.alive or machine.lives != life):
            raise asyncio.CancelledError(f"{machine.name} is dead")

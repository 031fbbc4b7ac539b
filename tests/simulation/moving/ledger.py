"""Which copies of a guest run, at every instant, and how long it has run by its own reckoning."""

from __future__ import annotations

from tests.simulation.trace import Trace


class Ledger:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._running: dict[str, dict[str, None]] = {}
        self._ran: dict[str, float] = {}
        self.wrong: list[str] = []

    def runs(self, instance: str, where: str, ran: float) -> None:
        copies = self._running.setdefault(instance, {})
        if where in copies:
            return
        copies[where] = None
        if len(copies) > 1:
            self._note(f"{instance} runs more than once: {list(copies)}")
        known = self._ran.get(instance, 0.0)
        if abs(ran - known) > 1e-6:
            self._note(f"{instance} goes on at {where} as if it had run for {ran:.6f} s, but it has run for {known:.6f} s")

    def stands(self, instance: str, where: str, ran: float) -> None:
        copies = self._running.get(instance, {})
        if where in copies:
            del copies[where]
            self._ran[instance] = ran

    def where(self, instance: str) -> list[str]:
        return list(self._running.get(instance, {}))

    def _note(self, what: str) -> None:
        self.wrong.append(what)
        self._trace.add("ledger", what)

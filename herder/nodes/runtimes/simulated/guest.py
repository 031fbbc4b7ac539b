"""One simulated guest: its state, since when, and what it wrote to its console."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from herder.api import reasons
from herder.api.guest import ENDED, GuestState, Started
from herder.nodes.runtimes.base import GuestStatus, Order, Usage
from herder.nodes.runtimes.simulated.settings import Settings


class Guest:
    """Timers are the event loop's: under virtual time the guest lives in virtual time."""

    def __init__(
        self, order: Order, settings: Settings, started: Started, now: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self.order = order
        self.settings = settings
        self.started = started
        self.state: GuestState = "Preparing"
        self.reason = ""
        self.message = ""
        self.started_at: float | None = None
        self.log: list[bytes] = []
        self._readers: list[asyncio.Future[None]] = []
        self.power_button_pressed = False
        self.has_memory = False
        self.gone = False
        self.held = False
        # It stood still by its owner's wish when it was saved.
        self.stood = False
        self.resumed = False
        self._now = now
        self._changed = changed
        self._ran = 0.0
        self._ran_elsewhere = 0.0
        self._runs_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def status(self) -> GuestStatus:
        return GuestStatus(
            state=self.state,
            reason=self.reason,
            message=self.message,
            started=self.started,
            started_at=self.started_at,
            has_memory=self.has_memory,
            resumed=self.resumed,
            not_resumed_because=self.order.not_resumed_because,
        )

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def executes(self) -> bool:
        """At this instant."""
        return self._runs_since is not None and not self.gone

    @property
    def ran(self) -> float:
        """Seconds that it has run, without those in which it stood still."""
        return self._ran + (self._loop_time() - self._runs_since if self._runs_since is not None else 0.0)

    @property
    def usage(self) -> Usage | None:
        """What it took elsewhere, before it came, was counted there."""
        if self.ended or self.state == "Preparing" or not self.has_memory:
            return None
        load = self.settings
        return Usage(load.cpu.until(self.ran) - load.cpu.until(self._ran_elsewhere), int(load.memory.at(self.ran)))

    def boot(self, *, paused: bool) -> None:
        self.write(f"boot {self.order.definition.instance.uid}")
        self._later(self.settings.boot, lambda: self._booted(paused))

    def _booted(self, paused: bool) -> None:
        if self.settings.fails_at == "boot":
            return self.end("Crashed", reasons.GUEST_CRASHED, "it crashed while it booted, as it was told to")
        self.started_at = self._now()
        self.has_memory = True
        return self._become("Paused") if paused else self.run()

    def run(self) -> None:
        self.held = False
        self._runs_since = self._loop_time()
        if self.started_at is None:
            self.started_at = self._now()
        self._become("Running")
        self._next_of_its_own()

    def stand_still(self, state: GuestState = "Paused") -> None:
        self._ran = self.ran
        self._runs_since = None
        self._cancel()
        self._become(state)

    def say(self, reason: str, message: str) -> None:
        """Why it is as it is."""
        self.reason, self.message = reason, message
        self._changed()

    def go_on(self, *, runs: bool) -> None:
        """It is not saved after all."""
        if self.ended or self.gone:
            return
        self.reason = self.message = ""
        if runs:
            self.run()
        else:
            self.stand_still()

    def resume_with(self, ran: float, now: float, *, runs: bool) -> None:
        """From memory that was saved."""
        self.received(ran)
        self.resumed = True
        self.started_at = now
        self.go_on(runs=runs)

    def hold(self) -> None:
        """Stopped for the last page of its memory, without a word: it is over in a moment, or goes on."""
        self.held = self.state == "Running"
        self._ran = self.ran
        self._runs_since = None
        self._cancel()

    def press_power_button(self) -> None:
        if self.ended or self.power_button_pressed:
            return
        self.power_button_pressed = True
        self.write("powerdown")
        if self.state == "Running" and not self.settings.ignores_power_button:
            self._later(self.settings.shutdown, lambda: self.end("ShutDown", reasons.GUEST_SHUT_DOWN, ""))

    def end(self, state: GuestState, reason: str, message: str) -> None:
        self._ran = self.ran
        self._runs_since = None
        self._cancel()
        self.reason, self.message = reason, message
        self._become(state)

    def vanish(self) -> None:
        """Off, without a word."""
        self._cancel()
        self.gone = True
        self._wake_readers()

    def received(self, ran: float) -> None:
        """Its memory, and with it how long it has run: it goes on from there."""
        self._ran = self._ran_elsewhere = ran
        self.has_memory = True

    def write(self, line: str) -> None:
        self.log.append(f"{line}\r\n".encode())
        self._wake_readers()

    async def more(self) -> None:
        """Until it has written something, or its state is another."""
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        await reader

    def _wake_readers(self) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():
                reader.set_result(None)

    def _next_of_its_own(self) -> None:
        """What the guest does by itself next: shut down or crash."""
        wishes = [
            (self.settings.exits_after, lambda: self.end("ShutDown", reasons.GUEST_SHUT_DOWN, "")),
            (self.settings.crashes_after, lambda: self.end("Crashed", reasons.GUEST_CRASHED, "it crashed, as it was told to")),
        ]
        due = [(after, act) for after, act in wishes if after is not None]
        if due:
            after, act = min(due, key=lambda one: one[0])
            self._later(max(0.0, after - self._ran), act)

    def _become(self, state: GuestState) -> None:
        self.state = state
        self._wake_readers()
        self._changed()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, act)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _loop_time(self) -> float:
        return asyncio.get_running_loop().time()

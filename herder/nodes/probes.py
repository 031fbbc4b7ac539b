"""Asks guests whether they live and whether they are ready, as often as their probes say. A verdict changes after so many answers
in a row; until the first one a guest is not ready, and it is not known whether it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from herder.api.core import Pod
from herder.api.guest import NOT_YET, GuestDefinition, definition_of, report_of
from herder.api.kinds.probes import Probe
from herder.api.world import World
from herder.kit.tasks import watched
from herder.nodes.health import HEALTHY, Health
from herder.nodes.runtimes.base import GuestStatus

PERIOD, TIMEOUT, SUCCESSES, FAILURES = 10, 1, 1, 3
Ask = Callable[[str, Probe], Awaitable[bool]]


class Probes:
    def __init__(self, world: World, changed: Callable[[str], None]) -> None:
        self._world = world
        self._changed = changed
        self._guests: dict[str, _Guest] = {}

    def look(self, pod: Pod, status: GuestStatus | None, ask: Ask) -> Health:
        """What is known of the guest. It is asked while it runs, and only then."""
        guest = self._guests.get(pod.uid)
        if guest is None:
            guest = self._guests[pod.uid] = _Guest(pod, ask, lambda: self._changed(pod.uid))
        if status is not None and status.state == "Running" and not guest.health.dead:
            guest.begin(self._world.now() - (status.started_at if status.started_at is not None else self._world.now()))
        else:
            guest.stop()
        return guest.health

    def forget(self, uid: str) -> None:
        if guest := self._guests.pop(uid, None):
            guest.stop()

    def close(self) -> None:
        for uid in tuple(self._guests):
            self.forget(uid)


class _Guest:
    """Both probes of one guest. What its pod says already is believed: an agent that was restarted takes nothing back."""

    def __init__(self, pod: Pod, ask: Ask, changed: Callable[[], None]) -> None:
        definition, report = _definition(pod), report_of(pod)
        spec = definition.spec if definition is not None else None
        was_ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
        was_alive = report is not None and report.state not in NOT_YET and report.alive is True

        def questions(probe: Probe | None, known: bool) -> _Questions | None:
            return _Questions(probe, lambda: ask(pod.uid, probe), changed, True if known else None) if probe is not None else None

        self._liveness = questions(spec.liveness_probe if spec else None, was_alive)
        self._readiness = questions(spec.readiness_probe if spec else None, was_ready)
        self._has_lived = was_alive

    @property
    def health(self) -> Health:
        alive, ready = self._liveness, self._readiness
        if alive is None and ready is None:
            return HEALTHY
        if alive is not None and alive.verdict:
            self._has_lived = True
        return Health(
            ready=ready is None or ready.verdict is True,
            alive=True if alive is None or self._has_lived else None,
            dead=alive.complaint("liveness") if alive is not None and alive.verdict is False else "",
            not_ready_because=ready.complaint("readiness") if ready is not None and ready.verdict is not True else "",
        )

    def begin(self, ran: float) -> None:
        for one in (self._liveness, self._readiness):
            if one is not None:
                one.begin(ran)

    def stop(self) -> None:
        for one in (self._liveness, self._readiness):
            if one is not None:
                one.stop()


class _Questions:
    """One probe: a question now and then, and what came of it."""

    def __init__(self, probe: Probe, ask: Callable[[], Awaitable[bool]], changed: Callable[[], None], verdict: bool | None) -> None:
        self._probe = probe
        self._ask = ask
        self._changed = changed
        self.verdict = verdict
        self._last: bool | None = None
        self._in_a_row = 0
        self._why = ""
        self._task: asyncio.Task[None] | None = None

    def begin(self, ran: float) -> None:
        if self._task is None:
            delay = max(0.0, (self._probe.initial_delay_seconds or 0) - ran)
            self._task = watched(self._go_on(delay), "a probe", failed=self._broke)

    def stop(self) -> None:
        """Whoever stands still is not asked, and what was known stays known."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def complaint(self, name: str) -> str:
        if self._last is not False:
            return f"the {name} probe has not passed yet"
        times = "once" if self._in_a_row == 1 else f"{self._in_a_row} times in a row"
        return f"the {name} probe failed {times}: {self._why}"

    async def _go_on(self, delay: float) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(delay)
            began = clock()
            self._count(await self._answer())
            delay = max(0.0, began + (self._probe.period_seconds or PERIOD) - clock())

    async def _answer(self) -> bool:
        """What cannot be asked has not said yes."""
        seconds = self._probe.timeout_seconds or TIMEOUT
        try:
            async with asyncio.timeout(seconds):
                answer = await self._ask()
        except TimeoutError:
            self._why = f"no answer within {seconds} s"
            return False
        except Exception as error:
            self._why = str(error) or type(error).__name__
            return False
        self._why = "the answer was no"
        return answer

    def _broke(self, error: BaseException) -> None:
        """Shown where a failure would be: nobody asks any more."""
        self._last, self._why = False, f"the agent cannot ask any more: {error}"

    def _count(self, answer: bool) -> None:
        self._in_a_row = self._in_a_row + 1 if answer is self._last else 1
        self._last = answer
        needed = (self._probe.success_threshold or SUCCESSES) if answer else (self._probe.failure_threshold or FAILURES)
        if self._in_a_row >= needed and self.verdict is not answer:
            self.verdict = answer
            self._changed()


def _definition(pod: Pod) -> GuestDefinition | None:
    """One that cannot be read has nothing to ask: its start says what is wrong."""
    try:
        return definition_of(pod)
    except msgspec.MsgspecError:
        return None

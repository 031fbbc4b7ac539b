"""Probes in virtual time: when they ask, what the answers come to, and that nobody is asked who does not run."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import GuestReport
from herder.api.kinds.probes import Probe
from herder.nodes.probes import Probes
from herder.nodes.runtimes.base import GuestStatus
from tests.unit.kube.virtual import EPOCH, VirtualWorld, in_virtual_time

Json = dict[str, Any]
RUNNING = GuestStatus("Running", started_at=EPOCH)
PING: Json = {"guestAgentPing": {}}


def launcher(conditions: list[Json] | None = None, **probes: Json) -> Pod:
    spec = {"domain": {}, **{name: {**PING, **probe} for name, probe in probes.items()}}
    definition = {"instance": {"namespace": "a", "name": "b", "uid": "c"}, "spec": spec}
    metadata = {"name": "p", "uid": "u", "annotations": {labels.GUEST: msgspec.json.encode(definition).decode()}}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {"conditions": conditions or []}}, Pod)


class Guest:
    """Answers as it is told to, and notes when it was asked."""

    def __init__(self, pod: Pod, answers: Callable[[float], bool] = lambda now: True, takes: float = 0.0) -> None:
        self.pod = pod
        self.asked: list[float] = []
        self.changed: list[float] = []
        self._answers = answers
        self._takes = takes
        self.probes = Probes(VirtualWorld(), lambda uid: self.changed.append(self._now()))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def ask(self, uid: str, probe: Probe) -> bool:
        self.asked.append(self._now())
        await asyncio.sleep(self._takes)
        return self._answers(self._now())

    def look(self, status: GuestStatus = RUNNING) -> Any:
        return self.probes.look(self.pod, status, self.ask)

    async def after(self, seconds: float, status: GuestStatus = RUNNING) -> Any:
        self.look(status)
        await asyncio.sleep(seconds)
        return self.look(status)


def test_a_guest_without_probes_is_healthy_and_never_asked() -> None:
    async def scenario() -> None:
        guest = Guest(launcher())
        health = await guest.after(100)
        assert (health.ready, health.alive, health.dead) == (True, True, "")
        assert guest.asked == []

    in_virtual_time(scenario())


def test_a_guest_is_asked_after_the_delay_and_then_once_a_period() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(readinessProbe={"initialDelaySeconds": 5, "periodSeconds": 7}))
        before = guest.look()
        assert not before.ready
        assert before.not_ready_because == "the readiness probe has not passed yet"
        health = await guest.after(20)
        assert guest.asked == [5, 12, 19]
        assert health.ready
        assert guest.changed == [5]

    in_virtual_time(scenario())


def test_a_period_counts_from_question_to_question() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(readinessProbe={"periodSeconds": 4, "timeoutSeconds": 3}), takes=2.0)
        await guest.after(9)
        assert guest.asked == [0, 4, 8]

    in_virtual_time(scenario())


def test_readiness_changes_after_as_many_answers_in_a_row_as_its_thresholds_say() -> None:
    async def scenario() -> None:
        probe = {"periodSeconds": 1, "successThreshold": 2, "failureThreshold": 3}
        guest = Guest(launcher(readinessProbe=probe), lambda now: now < 5 or now >= 20)
        assert not (await guest.after(0.5)).ready
        assert (await guest.after(1)).ready
        assert (await guest.after(5)).ready
        lost = await guest.after(1)
        assert not lost.ready
        assert lost.not_ready_because == "the readiness probe failed 3 times in a row: the answer was no"
        assert (await guest.after(20)).ready
        assert guest.changed == [1, 7, 21]

    in_virtual_time(scenario())


def test_a_guest_that_does_not_answer_in_time_has_said_no() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(livenessProbe={"periodSeconds": 5, "timeoutSeconds": 2}), takes=60)
        health = await guest.after(11)
        assert (health.alive, health.dead) == (None, "")
        health = await guest.after(2)
        assert health.dead == "the liveness probe failed 3 times in a row: no answer within 2 s"
        assert health.alive is None

    in_virtual_time(scenario())


def test_a_probe_that_cannot_be_asked_says_why() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(readinessProbe={}))

        async def ask(uid: str, probe: Probe) -> bool:
            raise OSError("connection refused")

        guest.probes.look(guest.pod, RUNNING, ask)
        await asyncio.sleep(1)
        assert guest.look().not_ready_because == "the readiness probe failed once: connection refused"

    in_virtual_time(scenario())


def test_one_that_has_lived_and_dies_is_told_from_one_that_never_lived() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(livenessProbe={"periodSeconds": 1, "failureThreshold": 1}), lambda now: now < 10)
        assert (await guest.after(5)).alive is True
        health = await guest.after(10)
        assert health.dead
        assert health.alive is True
        asked = len(guest.asked)
        await guest.after(100)
        assert len(guest.asked) == asked, "the dead are not asked"

    in_virtual_time(scenario())


def test_a_guest_that_stands_still_is_not_asked_and_keeps_what_was_found() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(readinessProbe={"periodSeconds": 1}, livenessProbe={"periodSeconds": 1}))
        await guest.after(2.5)
        asked = len(guest.asked)
        health = await guest.after(100, GuestStatus("Paused"))
        assert len(guest.asked) == asked
        assert (health.ready, health.alive) == (True, True)
        await guest.after(1.5)
        assert len(guest.asked) > asked
        guest.probes.close()

    in_virtual_time(scenario())


@pytest.mark.parametrize("state", ["Preparing", "Incoming"])
def test_a_guest_that_did_not_run_yet_has_passed_no_probe_whatever_its_pod_says(state: Any) -> None:
    async def scenario() -> None:
        report = msgspec.json.encode(GuestReport(state=state, alive=True)).decode()
        known = [{"type": labels.GUEST_CONDITION, "status": "False", "message": report}]
        guest = Guest(launcher(known, livenessProbe={"initialDelaySeconds": 30}))
        assert guest.look(GuestStatus("Running", started_at=EPOCH)).alive is None
        guest.probes.close()

    in_virtual_time(scenario())


def test_what_the_pod_says_already_is_believed_after_a_restart() -> None:
    async def scenario() -> None:
        report = msgspec.json.encode(GuestReport(state="Running", alive=True)).decode()
        known = [{"type": "Ready", "status": "True"}, {"type": labels.GUEST_CONDITION, "status": "True", "message": report}]
        probe = {"initialDelaySeconds": 30}
        guest = Guest(launcher(known, readinessProbe=probe, livenessProbe=probe))
        # It has run for a minute: nobody waits again for what was waited for.
        health = guest.look(GuestStatus("Running", started_at=EPOCH - 60))
        assert (health.ready, health.alive) == (True, True)
        await asyncio.sleep(0.1)
        assert guest.asked == [0, 0]

    in_virtual_time(scenario())


def test_the_forgotten_are_not_asked() -> None:
    async def scenario() -> None:
        guest = Guest(launcher(readinessProbe={"periodSeconds": 1}))
        await guest.after(2.5)
        guest.probes.forget("u")
        asked = len(guest.asked)
        await asyncio.sleep(10)
        assert len(guest.asked) == asked

    in_virtual_time(scenario())

"""Each fault really does what it says: one that never happened would let every controller pass."""

import re

import pytest

from herder.kube.client import Client
from tests.simulation import faults
from tests.simulation.example.scenario import flocks, make
from tests.simulation.faults import Fault
from tests.simulation.matrix import Scenario, play
from tests.simulation.outcome import Outcome

FLOCKS = flocks(steps=(make,))
CREATED = "POST /api/v1/namespaces/default/configmaps"


def _lines(outcome: Outcome, pattern: str) -> list[str]:
    return [line for line in outcome.trace if re.search(pattern, line)]


def _after_fault(*injected: Fault, scenario: Scenario = FLOCKS) -> Outcome:
    return play(scenario, 1, injected, traced=True)


def _created(outcome: Outcome) -> list[str]:
    """What became of each attempt to make a child, from the trace."""
    return [line.rpartition(" -> ")[2].split()[0] for line in outcome.trace if CREATED in line and " -> " in line]


def test_without_a_fault_each_child_is_made_at_the_first_attempt() -> None:
    assert _created(_after_fault()) == ["201", "201"]


def test_a_process_that_is_killed_before_its_write_has_not_written_and_another_leads() -> None:
    outcome = _after_fault(faults.CrashBefore("controllers", 1))
    assert _created(outcome) == ["201", "201"]
    assert len(_lines(outcome, "controllers-.: killed")) == 1
    assert len(_lines(outcome, "leads from now on")) == 2


def test_a_process_that_is_killed_after_its_write_has_written() -> None:
    outcome = _after_fault(faults.CrashAfter("controllers", 1))
    # The first was made and nobody heard of it; the new leader finds it, and makes the second.
    assert _created(outcome) == ["201"]
    assert outcome.made["configmaps default/merinos-sheep-0"] == 1


def test_a_refused_call_is_not_done_and_a_lost_answer_is() -> None:
    assert _created(_after_fault(faults.Refused("controllers", 1))) == ["unreachable:", "201", "201"]
    assert _created(_after_fault(faults.AnswerLost("controllers", 1)))[0] == "unreachable:"


@pytest.mark.parametrize(("fault", "code"), [(faults.Conflicted, "409"), (faults.Throttled, "429"), (faults.ServerFailed, "500")])
def test_an_answer_that_says_no_reaches_the_controller(fault: type[faults.OnWrite], code: str) -> None:
    assert _created(_after_fault(fault("controllers", 1)))[0] == code


def test_a_slow_call_is_answered_late_and_one_that_is_too_slow_never() -> None:
    slow = _after_fault(faults.Slow("controllers", 1))
    assert _created(slow) == ["201", "201"]
    assert _moment(slow, CREATED) > _moment(_after_fault(), CREATED) + 19
    assert _created(_after_fault(faults.TooSlow("controllers", 1)))[0] == "unreachable:"


@pytest.mark.parametrize("fault", [faults.ServerRestartBefore, faults.ServerRestartAfter])
def test_the_server_is_killed_and_comes_back_with_its_store(fault: type[faults.OnWrite]) -> None:
    outcome = _after_fault(fault("controllers", 2))
    assert len(_lines(outcome, "api: killed")) == 1
    assert len(_lines(outcome, "api: starts, life 2")) == 1
    assert outcome.made["configmaps default/merinos-sheep-0"] == 1


def test_a_stale_cache_hears_nothing_for_a_while() -> None:
    outcome = _after_fault(faults.StaleCache("controllers", 2))
    begin = _moment(outcome, "fault: StaleCache")
    heard = [float(line.split()[0]) for line in _lines(outcome, "controllers-.: GET .* -> event")]
    assert not [at for at in heard if begin + 0.01 < at < begin + 29]
    assert [at for at in heard if at > begin + 29]


def test_broken_watches_go_on_and_forgotten_ones_begin_anew() -> None:
    broken = _after_fault(faults.WatchBroken("controllers", 1))
    assert len(_lines(broken, "broken off")) == 2
    # Each of the two goes on from where it was, at the first attempt, and stays.
    assert len(_lines(broken, "resourceVersion=[1-9].* -> watching")) == 2
    assert not _lines(broken, " -> ended")
    forgotten = _after_fault(faults.WatchForgotten("controllers", 1))
    assert len(_lines(forgotten, "sendInitialEvents=true.* -> watching")) > len(
        _lines(broken, "sendInitialEvents=true.* -> watching")
    )


def test_doubled_events_come_twice() -> None:
    events = [line.split(": ", 1)[1] for line in _lines(_after_fault(faults.WatchDoubled("controllers", 1)), " -> event ")]
    assert len(events) - len(dict.fromkeys(events)) == 5


def test_a_leader_that_is_cut_off_is_followed_by_another() -> None:
    outcome = _after_fault(faults.LeaderCutOff("controllers", 1))
    assert len(_lines(outcome, "leads from now on")) == 2
    assert _lines(outcome, "does not lead any more")


def test_a_clock_that_jumps_ahead_lets_time_pass() -> None:
    """The flock rests after ten seconds, or what the controllers take for ten seconds."""
    statuses = "PATCH .*/flocks/merinos/status"
    clean, jumped = _after_fault(), _after_fault(faults.ClockJumpsAhead("controllers", 3))
    assert float(_lines(clean, statuses)[-1].split()[0]) > 10
    assert float(_lines(jumped, statuses)[-1].split()[0]) < 10


def test_a_node_that_is_lost_is_silent() -> None:
    async def wait(_: Client) -> None: ...

    outcome = play(Scenario("nodes", (), (), (wait,), nodes=2), 1, [faults.Killed("node-1", 35.0)], traced=True)
    assert max(float(line.split()[0]) for line in _lines(outcome, "node-1: PATCH")) < 36
    assert max(float(line.split()[0]) for line in _lines(outcome, "node-2: PATCH")) > 50


def _moment(outcome: Outcome, pattern: str) -> float:
    return float(_lines(outcome, pattern)[0].split()[0])

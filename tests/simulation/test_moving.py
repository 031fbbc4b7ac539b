"""A guest is handed over between two nodes, whatever dies at whichever step: at no instant two copies of it run, it never goes on
from an older state than its last, and in the end it runs in one place, or a pod says why it does not."""

import random

import pytest

from herder.nodes.runtimes.simulated.guest import Guest
from tests.simulation.moving import happenings
from tests.simulation.moving.kinds import ABORTED, ALL, PAUSED, POST_COPY, PRE_COPY, Kind
from tests.simulation.moving.scenario import Ended, Happening


def problems(kind: Kind, seed: int, *befell: tuple[int, Happening]) -> str:
    ended = kind.play(seed, befell)
    wrong = list(ended.wrong)
    # What breaks a post-copy in the middle costs the guest its life.
    harmless = all(one in happenings.HARMLESS for _, one in befell) and kind is not POST_COPY
    if harmless and not ended.runs_on:
        wrong.append("the guest was lost")
    if all(one is happenings.owner_pauses_it for _, one in befell) and "Paused" not in ended.said:
        wrong.append("the guest does not stand still, as its owner wishes")
    if not wrong:
        return ""
    what = ", ".join(f"{one.__name__} at step {number} ({_step(ended, number)})" for number, one in befell)
    return f"{kind.name}, {what}: {'; '.join(wrong[:3])} [{ended.said}]"


def _step(ended: Ended, number: int) -> str:
    return ended.points[number] if number < len(ended.points) else "never reached"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_guest_goes_on_from_where_it_stopped(kind: Kind, seed: int) -> None:
    ended = kind.play(seed)
    assert (ended.wrong, ended.runs_on) == ([], kind.ends_on), "\n".join(ended.trace[-40:])


@pytest.mark.parametrize("happening", happenings.ALL, ids=lambda one: one.__name__)
def test_whatever_happens_at_whichever_step_of_a_pre_copy(happening: Happening, seed: int) -> None:
    _every_step(PRE_COPY, happening, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [POST_COPY, PAUSED, ABORTED], ids=lambda kind: kind.name)
@pytest.mark.parametrize("happening", happenings.ALL, ids=lambda one: one.__name__)
def test_whatever_happens_at_whichever_step_of_a_copy_that_does_not_end(kind: Kind, happening: Happening, seed: int) -> None:
    _every_step(kind, happening, seed)


def _every_step(kind: Kind, happening: Happening, seed: int) -> None:
    steps = len(kind.play(seed).points)
    found = [one for number in range(steps) if (one := problems(kind, seed, (number, happening)))]
    assert not found, "\n".join(found[:10])


def test_several_things_at_once(seed: int) -> None:
    dice = random.Random(f"{seed}/moving")
    kind = dice.choice(ALL)
    befell = [(dice.randrange(40), dice.choice(happenings.ALL)) for _ in range(dice.randint(2, 4))]
    assert not problems(kind, seed, *dict(befell).items())


def test_a_target_that_does_not_wait_for_the_grant_is_found_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the memory is there says nothing: the source may not know that it was received, and go on."""
    received = Guest.received

    def and_runs(guest: Guest, ran: float) -> None:
        received(guest, ran)
        guest.run()

    monkeypatch.setattr(Guest, "received", and_runs)
    last = PRE_COPY.play(seed).points.index("node-1 all sent")
    assert "runs more than once" in problems(PRE_COPY, seed, (last, happenings.copy_breaks_off))

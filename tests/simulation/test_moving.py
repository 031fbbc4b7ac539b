"""A guest is handed over between two nodes, whatever dies at whichever step: at no instant two copies of it run, it never goes on
from an older state than its last, and in the end it runs in one place, or a pod says why it does not."""

import itertools
import random

import pytest

from herder.nodes.runtimes.simulated.guest import Guest
from tests.simulation.moving import happenings
from tests.simulation.moving.kinds import ALL, POST_COPY, PRE_COPY, Kind
from tests.simulation.moving.scenario import Ended, Happening

MATRIX = list(itertools.product(ALL, happenings.ALL))


def problems(kind: Kind, seed: int, *befell: tuple[int, Happening]) -> str:
    ended = kind.play(seed, befell)
    wrong = list(ended.wrong)
    # What breaks a post-copy in the middle costs the guest its life.
    happened = [one for number, one in befell if number < len(ended.points)]
    harmless = all(one in happenings.HARMLESS for one in happened) and kind is not POST_COPY
    if harmless and not ended.runs_on:
        wrong.append("the guest was lost")
    if happened and all(one is happenings.owner_pauses_it for one in happened) and "Paused" not in ended.said:
        wrong.append("the guest does not stand still, as its owner wishes")
    if not wrong:
        return ""
    what = ", ".join(f"{one.__name__} at step {number} ({_step(ended, number)})" for number, one in befell)
    return f"{kind.name}, {what}: {'; '.join(wrong[:3])} [{ended.said}]"


def _step(ended: Ended, number: int) -> str:
    return ended.points[number] if number < len(ended.points) else "never reached"


def _some_step(kind: Kind, happening: Happening, seed: int) -> int:
    return random.Random(f"{seed}/{kind.name}/{happening.__name__}").randrange(kind.steps)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_guest_goes_on_from_where_it_stopped(kind: Kind, seed: int) -> None:
    ended = kind.play(seed)
    assert (ended.wrong, ended.runs_on) == ([], kind.ends_on), "\n".join(ended.trace[-40:])
    assert len(ended.points) == kind.steps, ended.points


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_the_numbers_of_a_copy_are_told_once_in_a_while(kind: Kind, first_seed: int) -> None:
    """Each report of them changes the pod, and a pod that was changed is looked at again: that must not call for the next one."""
    lines = kind.play(first_seed, traced=True).trace
    written = [line for line in lines if "PATCH /api/v1/namespaces/default/pods/source/status" in line]
    assert len(written) <= 20, "\n".join(written[-10:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
@pytest.mark.parametrize("happening", happenings.ALL, ids=lambda one: one.__name__)
def test_whatever_happens_at_whichever_step(kind: Kind, happening: Happening, first_seed: int) -> None:
    """The whole matrix: some 1,500 runs."""
    found = [one for number in range(kind.steps) if (one := problems(kind, first_seed, (number, happening)))]
    assert not found, "\n".join(found[:10])


@pytest.mark.slow
@pytest.mark.parametrize("happening", happenings.ALL, ids=lambda one: one.__name__)
def test_whatever_happens_at_some_step_of_each_kind(happening: Happening, first_seed: int) -> None:
    found = [one for kind in ALL if (one := problems(kind, first_seed, (_some_step(kind, happening, first_seed), happening)))]
    assert not found, "\n".join(found)


def test_one_happening_at_one_step(seed: int) -> None:
    """One run for each seed: with thousands of seeds each field of the matrix is played in several ways."""
    kind, happening = MATRIX[seed % len(MATRIX)]
    assert not problems(kind, seed, (_some_step(kind, happening, seed), happening))


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

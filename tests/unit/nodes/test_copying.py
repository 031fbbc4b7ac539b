"""The model of a copy: rounds, what converges and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.simulated.copying import Copy, Load, advance, begin, progress, to_paused, to_post_copy

GIB = 1 << 30
PLAIN = PolicySettings()
CONVERGE = PolicySettings(allow_auto_converge=True)


def run(load: Load, seconds: float, bandwidth: float, settings: PolicySettings = PLAIN, copy: Copy | None = None) -> Copy:
    return advance(copy or begin(load), seconds, bandwidth, settings, 0.3)


def test_an_idle_guest_is_copied_once() -> None:
    load = Load(GIB)
    assert not run(load, 0.99, GIB).done
    done = run(load, 1.01, GIB)
    assert done.done
    assert done.iteration == 1
    assert done.transferred == pytest.approx(GIB)
    assert done.downtime == 0


def test_a_busy_guest_takes_more_rounds_each_smaller_than_the_last() -> None:
    done = run(Load(GIB, GIB // 4, GIB), 100, GIB)
    assert done.done
    # 1 + 1/4 s of rounds, and then a quarter of a second's worth of pages would be dirty: less than the 300 ms allowed.
    assert done.transferred == pytest.approx(GIB * 1.25, rel=0.01)
    assert done.downtime is not None
    assert done.downtime <= 0.3


def test_a_guest_that_dirties_faster_than_it_is_copied_never_ends() -> None:
    stuck = run(Load(GIB, 2 * GIB, GIB), 3600, GIB)
    assert not stuck.done
    assert stuck.iteration > 1000
    assert progress(stuck, GIB).estimated_seconds_left is None


def test_auto_converge_slows_it_down_until_it_ends() -> None:
    done = run(Load(GIB, 2 * GIB, GIB), 3600, GIB, CONVERGE)
    assert done.done
    assert done.throttle >= 20


def test_post_copy_and_a_pause_end_what_would_not_end() -> None:
    stuck = run(Load(GIB, 2 * GIB, GIB), 60, GIB)
    after = advance(to_post_copy(stuck), 3, GIB, PLAIN, 0.3)
    assert after.done
    paused = advance(to_paused(stuck), 3, GIB, PLAIN, 0.3)
    assert paused.done


def test_without_bandwidth_nothing_moves() -> None:
    assert not run(Load(GIB), 3600, 0).done


@given(
    memory=st.integers(1, 64 * GIB),
    rate=st.integers(0, 4 * GIB),
    share=st.floats(0, 1),
    steps=st.lists(st.floats(0.001, 100), min_size=1, max_size=30),
    converge=st.booleans(),
)
def test_however_often_one_looks_it_comes_out_the_same_and_never_runs_backwards(
    memory: int, rate: int, share: float, steps: list[float], converge: bool
) -> None:
    load = Load(memory, rate, int(memory * share))
    settings = CONVERGE if converge else PLAIN
    copy, best = begin(load), -1
    for step in steps:
        copy = advance(copy, step, GIB, settings, 0.3)
        shown = progress(copy, GIB)
        assert shown.percent is not None
        assert best <= shown.percent <= 100
        best = shown.percent
    whole = advance(begin(load), sum(steps), GIB, settings, 0.3)
    assert whole.done == copy.done or copy.transferred == pytest.approx(whole.transferred, rel=1e-3)

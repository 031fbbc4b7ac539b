"""What a copy that runs should do next."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.kinds import KubeVirt
from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from herder.rules.configuration import cluster_migration_settings, effective
from herder.rules.convergence import (
    GIB,
    Abort,
    Go,
    PauseGuest,
    Sample,
    StartPostCopy,
    Track,
    Verdict,
    deadline,
    judge,
    observed,
    shown_progress,
    without_post_copy,
)

START = 1000.0


def settings(per_gib: int = 10, progress: int = 0, post_copy: bool = False, disruption: bool = False) -> PolicySettings:
    return PolicySettings(
        allow_post_copy=post_copy,
        allow_workload_disruption=disruption,
        completion_timeout_per_gib=per_gib,
        progress_timeout=progress,
    )


def followed(samples: list[tuple[float, Sample]]) -> Track | None:
    track = None
    for after, sample in samples:
        track = observed(track, sample, START + after)
    return track


def verdict(given_: PolicySettings, samples: list[tuple[float, Sample]], after: float, memory: int = GIB) -> Verdict:
    return judge(given_, memory, START, followed(samples), START + after)


@pytest.mark.parametrize(("memory", "seconds"), [(1, 10), (GIB, 10), (GIB + 1, 20), (3 * GIB // 2, 20), (8 * GIB, 80)])
def test_the_time_grows_with_each_gib_that_is_begun(memory: int, seconds: int) -> None:
    assert deadline(settings(), memory, START) == START + seconds
    assert deadline(settings(0), memory, START) is None


def test_before_its_time_is_over_it_goes_on_until_then() -> None:
    assert verdict(settings(), [(1, Sample(5))], 9.9) == Go(START + 10)
    assert verdict(settings(0), [(1, Sample(5))], 1e9) == Go(None)


def test_when_its_time_is_over_it_does_what_is_allowed_in_this_order() -> None:
    samples = [(1.0, Sample(5))]
    assert isinstance(verdict(settings(post_copy=True, disruption=True), samples, 10), StartPostCopy)
    assert isinstance(verdict(settings(disruption=True), samples, 10), PauseGuest)
    given_up = verdict(settings(), samples, 10)
    assert isinstance(given_up, Abort) and given_up.reason == "CompletionTimeout"
    assert given_up.message == (
        "the copy did not end within 10 s (completionTimeoutPerGiB 10 x 1 GiB), and neither allowPostCopy nor"
        " allowWorkloadDisruption is set; the guest still runs at the source"
    )


@pytest.mark.parametrize(
    ("cluster", "policy", "verdict"),
    [
        ({}, {"allowPostCopy": True}, PauseGuest),
        ({"allowPostCopy": True}, {}, PauseGuest),
        ({}, {"allowPostCopy": True, "allowWorkloadDisruption": True}, PauseGuest),
        ({"allowWorkloadDisruption": False}, {"allowPostCopy": True}, Abort),
        ({}, {"allowPostCopy": True, "allowWorkloadDisruption": False}, Abort),
    ],
)
def test_where_post_copy_cannot_be_had_its_time_ends_in_a_pause_or_else_in_nothing(
    cluster: dict[str, bool], policy: dict[str, bool], verdict: type
) -> None:
    """Disruption still follows the post-copy that was allowed, had or not."""
    kubevirt = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"migrations": cluster}}}
    below = cluster_migration_settings(msgspec.convert(kubevirt, KubeVirt))
    wanted = effective(below, msgspec.convert({"completionTimeoutPerGiB": 10, **policy}, PolicySettings))
    track = observed(None, Sample(5), START + 1)
    found = judge(wanted, 1, START, track, START + 10, "node n2: no userfaultfd")
    assert isinstance(found, verdict), found
    if isinstance(found, Abort):
        assert "post-copy, which is allowed, cannot be had: node n2: no userfaultfd" in found.message
    assert not isinstance(judge(without_post_copy(wanted), 1, START, track, START + 10), StartPostCopy)


def test_once_in_post_copy_nothing_ends_it() -> None:
    assert verdict(settings(progress=5), [(1, Sample(5, "PostCopy"))], 1e6) == Go(None)


def test_a_paused_guest_is_not_judged_by_the_deadline_again_but_by_whether_it_gets_on() -> None:
    paused = [(9.0, Sample(50)), (11.0, Sample(50, "Paused"))]
    assert verdict(settings(progress=5, disruption=True), paused, 15.9) == Go(START + 16)
    stuck = verdict(settings(progress=5, disruption=True), paused, 16)
    assert isinstance(stuck, Abort) and stuck.reason == "NoProgress"


def test_a_copy_of_which_nothing_falls_is_given_up() -> None:
    stuck = verdict(settings(0, 5), [(1, Sample(70)), (3, Sample(60)), (7, Sample(60))], 8)
    assert isinstance(stuck, Abort)
    assert stuck.message == "60 bytes remain, and that did not fall for 5 s (progressTimeout); the guest still runs at the source"
    assert isinstance(verdict(settings(0, 5), [], 5), Abort)
    assert verdict(settings(0, 5), [(1, Sample(70)), (3, Sample(60)), (7, Sample(59))], 11.9) == Go(START + 12)


def _passes(sizes: list[int]) -> list[tuple[float, Sample]]:
    """A pass of 4 seconds each, sent in four parts."""
    samples: list[tuple[float, Sample]] = []
    for number, size in enumerate(sizes):
        samples += [(4 * number + part, Sample(size - size * part // 4, iteration=number + 1)) for part in range(4)]
    return samples


def test_passes_that_become_smaller_are_progress() -> None:
    assert isinstance(verdict(settings(0, 10), _passes([1000, 900, 800, 700, 600]), 20), Go)


def test_passes_that_stay_as_large_are_none_although_each_of_them_shrinks() -> None:
    assert isinstance(verdict(settings(0, 10), _passes([1000, 900, 900, 900, 900]), 20), Abort)


def test_a_guest_that_writes_too_fast_is_left_to_the_deadline_where_that_ends_it_well() -> None:
    writes = _passes([1000, 900, 900, 900, 900])
    assert verdict(settings(50, 10, post_copy=True), writes, 20) == Go(START + 29)
    assert isinstance(verdict(settings(50, 10, post_copy=True), [*writes, (51, Sample(1, iteration=6))], 51), StartPostCopy)
    assert isinstance(verdict(settings(50, 10), writes, 20), Abort)


SAMPLES = st.lists(
    st.tuples(
        st.floats(0, 20), st.integers(0, 1000), st.sampled_from(["PreCopy", "PreCopy", "PreCopy", "Paused"]), st.integers(0, 2)
    ),
    max_size=30,
)


@given(SAMPLES, st.booleans(), st.booleans(), st.integers(0, 30), st.integers(0, 30))
def test_whatever_is_seen_what_is_not_allowed_is_not_done_and_nothing_waits_for_ever(
    seen: list[tuple[float, int, str, int]], post_copy: bool, disruption: bool, per_gib: int, progress: int
) -> None:
    given_ = settings(per_gib, progress, post_copy, disruption)
    now, iteration, track = START, 0, None
    for after, remaining, mode, passes in seen:
        now, iteration = now + after, iteration + passes
        track = observed(track, Sample(remaining, mode, iteration), now)  # type: ignore[arg-type]
        found = judge(given_, GIB, START, track, now)
        assert post_copy or not isinstance(found, StartPostCopy)
        assert disruption or not isinstance(found, PauseGuest)
        if isinstance(found, Go) and found.next_look is not None:
            assert found.next_look > now
            assert not isinstance(judge(given_, GIB, START, track, found.next_look), Go)
        if isinstance(found, Go) and found.next_look is None:
            assert not progress and (not per_gib or track.mode == "Paused")
        gone_over = observed(track, Sample(remaining, "PostCopy", iteration), now)
        assert judge(given_, GIB, START, gone_over, now + 1e9) == Go(None)


# --- what people see -------------------------------------------------------------------------------------------------------------


def raw(transferred: int, remaining: int, rate: int = 100, dirty: int = 0, mode: str = "PreCopy") -> MigrationProgress:
    return MigrationProgress(
        mode=mode,  # type: ignore[arg-type]
        transferred_bytes=transferred,
        remaining_bytes=remaining,
        bytes_per_second=rate,
        dirty_bytes_per_second=dirty,
    )


def test_progress_counts_what_the_guest_will_write_meanwhile() -> None:
    shown = shown_progress(None, raw(500, 500, rate=100, dirty=50))
    assert (shown.percent, shown.estimated_seconds_left) == (33, 10)
    assert shown_progress(None, raw(500, 500)).estimated_seconds_left == 5


def test_nobody_can_tell_when_a_guest_ends_that_writes_faster_than_it_is_copied() -> None:
    assert shown_progress(None, raw(500, 500, rate=100, dirty=100)).estimated_seconds_left is None
    assert shown_progress(None, raw(500, 500, rate=0)).estimated_seconds_left is None


def test_only_the_end_is_a_hundred_percent() -> None:
    assert shown_progress(None, raw(1000, 0)).percent == 99
    done = shown_progress(raw(900, 100), raw(1000, 5), done=True)
    assert (done.percent, done.remaining_bytes, done.estimated_seconds_left) == (100, 0, 0)


NUMBERS = st.integers(0, 10**9)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["PreCopy", "PostCopy", "Paused"]))))
def test_what_is_shown_never_runs_backwards(seen: list[tuple[int, int, int, int, str]]) -> None:
    before = None
    for numbers in seen:
        shown = shown_progress(before, raw(*numbers))
        assert 0 <= (shown.percent or 0) <= 99
        assert shown.estimated_seconds_left is None or shown.estimated_seconds_left >= 0
        if before is not None:
            assert (shown.percent or 0) >= (before.percent or 0)
            assert (shown.transferred_bytes or 0) >= (before.transferred_bytes or 0)
            assert shown.mode == "PostCopy" or before.mode != "PostCopy"
        before = shown

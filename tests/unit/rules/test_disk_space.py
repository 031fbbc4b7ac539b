"""When a file system counts as full, and what still fits."""

import pytest

from herder.rules.disk_space import Reserve, Space, is_short, lacking, never_fits, parse_reserve, under_pressure

GIB = 1024**3
RESERVE = parse_reserve("8Gi")


def left(gibibytes: float) -> Space:
    return Space(100 * GIB, int(gibibytes * GIB))


@pytest.mark.parametrize(
    ("text", "total", "kept"),
    [("5%", 100, 5), ("2Gi", 100, 2), ("0", 100, 0), ("0%", 100, 0), ("12.5%", 200, 25), ("2Gi", 1, 1)],
)
def test_a_reserve_is_an_amount_or_a_share(text: str, total: int, kept: int) -> None:
    assert parse_reserve(text).of(total * GIB) == kept * GIB


def test_unless_somebody_says_so_it_is_five_percent_and_no_more_than_two_gibibytes() -> None:
    assert (Reserve().of(20 * GIB), Reserve().of(1000 * GIB)) == (GIB, 2 * GIB)


@pytest.mark.parametrize("text", ["", "many", "-1Gi", "91%", "-1%", "nan%", "inf%", "%", "1e400", "9999Ei"])
def test_what_is_no_reserve_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no reserve of storage; it is a share of the file system such as 5%"):
        parse_reserve(text)


@pytest.mark.parametrize(
    ("free", "before", "now"), [(8.1, False, False), (7.9, False, True), (8.1, True, True), (9.9, True, True), (10.1, True, False)]
)
def test_pressure_comes_when_the_reserve_is_reached_and_goes_when_there_is_more(free: float, before: bool, now: bool) -> None:
    assert under_pressure(left(free), RESERVE, before) is now


def test_whoever_takes_more_has_to_wait_when_half_of_the_reserve_is_gone() -> None:
    assert (is_short(left(4.1), RESERVE), is_short(left(3.9), RESERVE)) == (False, True)


def test_what_fits_is_what_is_left_beyond_the_reserve_and_what_others_write() -> None:
    assert lacking(left(20), RESERVE, 12 * GIB) == ""
    assert lacking(left(20), RESERVE, 12 * GIB, GIB) == (
        "the node's storage has 20Gi left, 8Gi of its 100Gi are kept for the store, 1Gi are taken by what is written now; "
        "12Gi are needed"
    )
    assert lacking(left(7), RESERVE, 0).endswith("none can be taken")


def test_one_volume_may_promise_all_that_is_there_and_no_more() -> None:
    """Together they may promise more: volumes are thin."""
    assert never_fits(left(1), RESERVE, 92 * GIB) == ""
    assert never_fits(left(100), RESERVE, 93 * GIB) == (
        "a disk of 93Gi can never be filled: the node's storage has 92Gi for all guests together"
    )

"""Lengths of time, as Go writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.duration import HOUR, MILLISECOND, MINUTE, SECOND, format_duration, parse_duration, parse_seconds


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1h30m", HOUR + 30 * MINUTE),
        ("1.5h", HOUR + 30 * MINUTE),
        ("-1m", -MINUTE),
        ("300ms", 300 * MILLISECOND),
        ("2µs", 2000),
        ("0", 0),
    ],
)
def test_a_length_is_read_in_nanoseconds(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'time: invalid duration ""'),
        ("5", 'time: missing unit in duration "5"'),
        ("5d", 'time: unknown unit "d" in duration "5d"'),
        (".s", 'time: invalid duration ".s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("1" * 2000 + "s", "time: invalid duration: more than 1000 characters"),
    ],
)
def test_what_is_no_length_is_refused_in_go_s_words(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_duration(text)
    assert str(refusal.value) == complaint


def test_seconds_are_for_timers() -> None:
    assert parse_seconds("1m500ms") == 60.5


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1500, "1.5µs"),
        (2 * MILLISECOND, "2ms"),
        (90 * SECOND, "1m30s"),
        (HOUR, "1h0m0s"),
        (-SECOND // 2, "-500ms"),
    ],
)
def test_a_length_is_written_short_and_exact(nanos: int, text: str) -> None:
    assert format_duration(nanos) == text


@given(st.integers(-(2**63), 2**63 - 1).filter(lambda nanos: abs(nanos) < 10**15))
def test_what_is_written_reads_back(nanos: int) -> None:
    assert parse_duration(format_duration(nanos)) == nanos

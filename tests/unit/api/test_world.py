"""Times are written as Python's own datetime would."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from herder.api.world import micro_timestamp, timestamp

# Up to the year 9999, the last that can be written so.
SECONDS = st.floats(min_value=0, max_value=253_402_300_799)


@given(SECONDS)
def test_whole_seconds(seconds: float) -> None:
    assert timestamp(seconds) == datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


@given(SECONDS)
def test_microseconds(seconds: float) -> None:
    text = micro_timestamp(seconds)
    assert len(text) == len("2026-01-02T03:04:05.000006Z")
    # Which of two neighbours it is that a float this large stands for is nobody's business.
    assert abs(datetime.fromisoformat(text).timestamp() - seconds) <= 0.000_001 + seconds * 2**-52


def test_a_time_that_rounds_up_to_the_next_second() -> None:
    assert micro_timestamp(59.9999999) == "1970-01-01T00:01:00.000000Z"

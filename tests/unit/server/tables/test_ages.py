"""Ages in tables read as they do in Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from herder.server.tables.ages import age, as_seconds, human_duration, strict_age

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "<invalid>"),
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-1, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (1, "1s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 60, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (20 * YEAR + 40 * DAY, "20y"),
    ],
)
def test_a_duration_is_told_in_two_or_three_figures(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        ("2026-01-02T03:03:05Z", "60s"),
        ("2026-01-02T04:03:05+01:00", "60s"),
        ("2026-01-02T03:03:05.500000Z", "59s"),
        (None, "<unknown>"),
        ("", "<unknown>"),
        ("yesterday", "<invalid>"),
    ],
)
def test_an_age_is_the_time_since_a_timestamp(timestamp: str | None, text: str) -> None:
    assert age(timestamp, NOW) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [("2026-01-02T03:03:05Z", "60s"), ("2026-01-02", "<invalid>"), ("2026-01-02T03:03:05", "<invalid>"), ("", "<unknown>")],
)
def test_a_value_of_a_custom_resource_must_be_a_whole_timestamp(timestamp: str, text: str) -> None:
    assert strict_age(timestamp, NOW) == text


def test_now_may_be_a_number_or_a_datetime() -> None:
    assert as_seconds(datetime(1970, 1, 1, 0, 1, tzinfo=UTC)) == as_seconds(60.0) == 60.0

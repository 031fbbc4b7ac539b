"""Quantities: what people write, what they mean, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.quantity import BINARY_SI, ZERO, Quantity, of, of_milli, parse_quantity


@pytest.mark.parametrize(
    ("text", "written", "milli"),
    [
        ("0", "0", 0),
        ("500m", "500m", 500),
        ("0.5", "500m", 500),
        ("1.5Gi", "1536Mi", 1_610_612_736_000),
        ("1000m", "1", 1000),
        ("2e3", "2e3", 2_000_000),
        ("1E", "1E", 10**21),
        ("0.5Ki", "512", 512_000),
        ("0.1n", "1n", 1),
        ("-1.5", "-1500m", -1500),
        (" 1Gi ", "1Gi", 1_073_741_824_000),
        ("100Ei", "9223372036854775807", (2**63 - 1) * 1000),
    ],
)
def test_an_amount_has_one_canonical_spelling(text: str, written: str, milli: int) -> None:
    amount = parse_quantity(text)
    assert (str(amount), amount.milli_value()) == (written, milli)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "quantities must match the regular expression"),
        ("1.2.3", "quantities must match the regular expression"),
        ("five", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("1mi", "unable to parse quantity's suffix"),
        ("1KM", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1e99999", "more than 1000 digits"),
        ("9" * 5000, "more than 1000 characters"),
    ],
)
def test_what_is_not_an_amount_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_quantity(text)


def test_json_numbers_are_amounts_and_booleans_are_not() -> None:
    assert parse_quantity(2) == parse_quantity("2")
    assert parse_quantity(0.25).milli_value() == 250
    with pytest.raises(ValueError):
        parse_quantity(True)


def test_equal_amounts_are_one_key_however_they_are_written() -> None:
    assert {parse_quantity("1Ki"), parse_quantity("1024"), parse_quantity("1024000m")} == {of(1024)}
    assert parse_quantity("1Ki") != 1024


def test_a_sum_keeps_the_way_of_writing_of_its_left_side() -> None:
    assert str(parse_quantity("1Gi") + of(1024**3)) == "2Gi"
    assert str(ZERO + parse_quantity("1Gi")) == "1Gi"
    assert str(of_milli(1500) - of_milli(500)) == "1"
    assert not (of(1) - of(1))


def test_amounts_past_64_bits_keep_their_value() -> None:
    assert str(of(10**21)) == "1e21"
    assert parse_quantity(str(of(10**21))) == of(10**21)
    assert of(2**63, BINARY_SI).value() == 2**63


@given(st.integers(-(10**27), 10**27), st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"]))
def test_what_is_written_reads_back_as_the_same_amount(nanos: int, format: str) -> None:
    amount = Quantity(nanos, format)
    assert parse_quantity(str(amount)) == amount


@given(st.integers(-(10**24), 10**24))
def test_whole_values_are_rounded_away_from_zero(nanos: int) -> None:
    value = Quantity(nanos).value()
    assert abs(value) * 10**9 >= abs(nanos) > (abs(value) - 1) * 10**9

"""Names, numbers and shares: what may be written."""

from __future__ import annotations

import pytest

from herder.api import names
from herder.api.int_or_percent import int_value, is_percent, parse_int_or_percent, scaled_value, validate_int_or_percent
from herder.api.integers import parse_int64


def test_each_rule_accepts_what_is_right() -> None:
    assert names.dns_label("my-name") == ()
    assert names.dns_subdomain("a.b-c.d") == ()
    assert names.qualified_name("example.com/My_Name.1") == ()
    assert names.label_value("") == ()
    assert names.config_key(".bashrc") == ()
    assert names.name_is_path_segment("system:node", False) == ()


@pytest.mark.parametrize("name", [".", "..", "a/b", "a%b"])
def test_names_that_would_break_an_address_are_refused(name: str) -> None:
    assert names.path_segment(name)


def test_a_prefix_may_end_in_a_dash_and_a_name_may_not() -> None:
    assert names.name_is_subdomain("web-", True) == ()
    assert names.name_is_subdomain("web-", False)


def test_a_long_base_is_cut_so_that_a_generated_name_stays_a_label() -> None:
    assert names.generated_name("web-", "abcde") == "web-abcde"
    assert names.generated_name("a" * 70, "abcde") == "a" * 58 + "abcde"


def test_a_complaint_names_the_rule_and_shows_examples() -> None:
    (complaint,) = names.dns_label("Web")
    assert complaint.startswith("a lowercase RFC 1123 label must consist of")
    assert "(e.g. 'my-name',  or '123-abc', regex used for validation is" in complaint


@pytest.mark.parametrize(("value", "up", "down"), [("25%", 3, 2), (4, 4, 4), ("0%", 0, 0), ("150%", 15, 15)])
def test_a_share_is_rounded_as_asked(value: int | str, up: int, down: int) -> None:
    assert (scaled_value(value, 10, True), scaled_value(value, 10, False)) == (up, down)


@pytest.mark.parametrize("value", ["5", "five%", "%", None])
def test_text_that_is_no_percentage_cannot_be_scaled(value: str | None) -> None:
    with pytest.raises(ValueError):
        scaled_value(value, 10, True)


def test_a_typed_number_is_a_number_and_the_rest_stays_text() -> None:
    assert (parse_int_or_percent("5"), parse_int_or_percent("5%"), parse_int_or_percent("3000000000")) == (5, "5%", "3000000000")
    assert (int_value("7"), int_value("x"), is_percent("7%"), is_percent("7")) == (7, 0, True, False)


@pytest.mark.parametrize(("value", "wrong"), [(0, False), ("10%", False), (-1, True), ("10", True), (True, True), (1.5, True)])
def test_only_whole_numbers_and_percentages_are_valid(value: object, wrong: bool) -> None:
    assert bool(validate_int_or_percent(value, "spec.x")) is wrong


@pytest.mark.parametrize("text", ["", "1_000", " 1", "٣", "1.0", "9223372036854775808", "9" * 5000])
def test_numbers_that_go_would_not_read_are_none(text: str) -> None:
    assert parse_int64(text) is None

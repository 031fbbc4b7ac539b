"""Names of a pool's machines: `<pool>-<n>`, gaps first."""

from itertools import islice

import pytest

from herder.rules.pools.naming import free_numbers, machine_name, number_of


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web-1", 1),
        ("web-250", 250),
        ("web-0", None),
        ("web-01", None),
        ("web-", None),
        ("web", None),
        ("web-x", None),
        ("web-1-2", None),
        ("other-1", None),
        ("web--1", None),
        ("web-٣", None),
        ("web-²", None),
        ("web-1234567890", None),
    ],
)
def test_a_machine_of_the_pool_is_told_by_its_name(name: str, number: int | None) -> None:
    assert number_of("web", name) == number


def test_a_pool_whose_own_name_ends_in_a_number_is_not_taken_for_another() -> None:
    assert number_of("web-1", "web-1-3") == 3
    assert number_of("web", "web-1-3") is None


def test_gaps_are_filled_before_numbers_are_appended() -> None:
    taken = {machine_name("web", number) for number in (1, 3)}
    assert list(islice(free_numbers("web", taken), 3)) == [2, 4, 5]

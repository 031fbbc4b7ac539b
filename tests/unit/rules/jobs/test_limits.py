"""The seed's table: how many of so many replicas may be away at once."""

import pytest

from herder.api.int_or_percent import IntOrPercent
from herder.rules.jobs.limits import max_migrating, max_unavailable


@pytest.mark.parametrize(
    ("replicas", "limit", "most"),
    [
        # Unset: 1, then 2, then a tenth.
        (0, None, 1),
        (1, None, 1),
        (3, None, 1),
        (4, None, 2),
        (10, None, 2),
        (11, None, 2),
        (20, None, 2),
        (21, None, 3),
        (100, None, 10),
        (101, None, 11),
        # A number is that number, of however many.
        (6, 0, 0),
        (6, 5, 5),
        (6, 7, 7),
        # A percentage is rounded up.
        (6, "80%", 5),
        (5, "80%", 4),
        (3, "1%", 1),
        (10, "30%", 3),
        (6, "0%", 0),
        (0, "50%", 0),
        (4, "100%", 4),
        (4, "150%", 6),
    ],
)
def test_so_many_replicas_may_be_away(replicas: int, limit: IntOrPercent | None, most: int) -> None:
    assert max_unavailable(replicas, limit) == most
    assert max_migrating(replicas, limit) == most


@pytest.mark.parametrize("limit", ["five", "5", "%", "1.5%", ""])
def test_text_that_is_no_percentage_is_refused(limit: str) -> None:
    with pytest.raises(ValueError, match="invalid value for IntOrString"):
        max_unavailable(6, limit)

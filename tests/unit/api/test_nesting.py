"""How deep a body goes and how much it holds is told from its bytes, exactly."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api import nesting
from herder.api.nesting import DEEPEST, MOST_VALUES, extent_of, values_in

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text('{}[],:"\\ab', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('{}[],"\\a', max_size=3), inner, max_size=4),
    max_leaves=30,
)


def counted(value: object) -> int:
    """Fields, items, objects and lists, as one would count them by hand: what is empty is itself, and has a place."""
    if isinstance(value, dict | list):
        inside = list(value.values()) if isinstance(value, dict) else value
        return 1 + max(0, len(inside) - 1) + sum(counted(one) for one in inside)
    return 0


def depth_of(value: object) -> int:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return 1 + max((depth_of(one) for one in inside), default=0)
    return 0


@given(values)
def test_values_are_counted_whatever_is_written_in_texts(value: object) -> None:
    assert values_in(msgspec.json.encode(value)) == 1 + counted(value)


@pytest.mark.slow
@given(values, st.integers(1, 6))
def test_depth_is_told_whatever_is_written_in_texts(value: object, deepest: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nesting, "DEEPEST", deepest)
        assert extent_of(msgspec.json.encode(value)).too_deep == (depth_of(value) > deepest)


@pytest.mark.parametrize(
    ("raw", "deep", "much"),
    [
        (b"[" * DEEPEST + b"]" * DEEPEST, False, False),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), True, False),
        (b"[" * 1_000_000, True, True),
        (b'{"a":' * 3000, True, False),
        (b"[" + b",".join([b"[]"] * MOST_VALUES) + b"]", False, True),
        (b"[" + b",".join([b"1"] * MOST_VALUES) + b"]", False, False),
        (b"[" + b",".join([b"1"] * (MOST_VALUES + 1)) + b"]", False, True),
        (b'["' + b"[,{" * 500_000 + b'"]', False, False),
        (b"{" + b",".join([b'"a":"b"'] * (2 * MOST_VALUES)) + b"}", False, True),
    ],
)
def test_the_bounds_are_exact(raw: bytes, deep: bool, much: bool) -> None:
    assert extent_of(raw) == (deep, much)

"""Names in order, however many there are."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from herder.server import sorted_json
from herder.server.sorted_json import encode_sorted

values = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=8),
)


@given(values)
def test_large_and_small_are_written_alike(value: object) -> None:
    plain = msgspec.json.encode(value, order="sorted")
    assert encode_sorted(value) == plain
    small, few = sorted_json.SMALL, sorted_json.FEW
    sorted_json.SMALL, sorted_json.FEW = 0, 2
    try:
        assert encode_sorted(value) == plain
    finally:
        sorted_json.SMALL, sorted_json.FEW = small, few


def test_very_many_names_of_which_the_last_belongs_to_the_front() -> None:
    """The case that a sorting of msgspec's own takes the square for: ten seconds and more."""
    names = {f"f:key-{number:06d}": {} for number in range(70_000)}
    assert msgspec.json.decode(encode_sorted({**names, ".": {}})) == {".": {}, **names}
    assert encode_sorted({**names, ".": {}}).startswith(b'{".":{},"f:key-000000":{}')

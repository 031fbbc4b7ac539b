import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.server.schema import duplicate_keys


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        (b"{}", []),
        (b'{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"a":1,"b":2,"a":3,"a":4}', ["a"]),
        (b'{"a":1,"b":{"c":[{"x":1},{"x":1,"y":"\\":","x":2}],"c":3},"a":2}', ["b.c[1].x", "b.c", "a"]),
        (b'{ "a" : 1 , "a" : 2 }', ["a"]),
        (b'{"a":1,"\\u0061":2}', ["a"]),
        (b'{"t":"\\u0022:","a":1,"a":2}', ["a"]),
        (b'{"a":{"x":"\\":\\":"},"a":1}', ["a"]),
    ],
)
def test_keys_that_come_twice_are_named_where_they_stand(raw: bytes, paths: list[str]):
    assert duplicate_keys(raw) == paths
    assert duplicate_keys(raw, msgspec.json.decode(raw)) == paths


class Pairs(list[Any]):
    """An object as its pairs, so that a key may come twice."""


keys = st.sampled_from(["a", "b", "c:", '"'])
values = st.recursive(
    st.none() | st.text(alphabet='a":\\ é{}[],', max_size=4) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(keys, inner), max_size=3).map(Pairs),
    max_leaves=8,
)


def written(value: Any, spaced: bool) -> str:
    gap = " " if spaced else ""
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}{gap}:{gap}{written(one, spaced)}" for key, one in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(one, spaced) for one in value) + "]"
    return json.dumps(value)


@given(values, st.booleans())
def test_a_body_has_duplicates_exactly_when_a_decoder_that_sees_every_pair_finds_some(value: Any, spaced: bool):
    raw = written(value, spaced)
    seen: list[str] = []

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        seen.extend(key for key in names if names.count(key) > 1)
        return dict(pairs)

    json.loads(raw, object_pairs_hook=check)
    assert bool(duplicate_keys(raw.encode())) == bool(seen)

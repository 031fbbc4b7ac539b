"""What clients should not send, and some of them will: values, texts, and mutations of what would be right."""

import json
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

# Texts that have broken readers of texts before.
NASTY = [
    *("", " ", "\0", "\n", "..", ".", "/", "%", "%00", "%2F", "%ff", "~1", "~0", "-", "--", "'", '"', "\\"),
    *("{", "}", "[", "]", "$", "*"),
    *("null", "true", "NaN", "Infinity", "-1", "0", "00", "1e999", "9" * 30, "9" * 5000, "2026-99-99T99:99:99Z"),
    *("\u0663", "\u00b2", "\uff11", "\u00e9", "\u2028", "\U0001f600"),
    *("a" * 64, "a" * 254, "A", "a.b", "a_b", "a/b", "a/b/c", "kubernetes.io/", "/x", "metadata.name", "__proto__"),
]
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=30))
numbers = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 2**31, -(2**31) - 1, 2**53, 2**63, 2**64, -(2**63), 10**40, 0.5, -0.0, 1e308, 1e-320]),
    st.floats(allow_nan=False, allow_infinity=False),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inside: st.one_of(st.lists(inside, max_size=4), st.dictionaries(texts, inside, max_size=4)),
    max_leaves=12,
)

# Bytes that stand where a value should.
RAW = [
    *(b"NaN", b"Infinity", b"1e999", b"-", b"01", b"1.", b"9" * 400, b"tru", b"'a'", b"[1,]", b"{,}", b"/**/1"),
    *(b'"\\ud800"', b'"\xff"', b'"\\u0000"', b'"\n"', b'{"a":1,"a":2}', b"\xef\xbb\xbf{}"),
    *(b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000),
]


def encoded(value: Any) -> bytes:
    """Python writes what JSON does not have (NaN, half characters); so do some clients."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        found += places(inside, (*path, key))
    return found


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: _with(inside, path[1:], new) if key == path[0] else inside for key, inside in value.items()}
    return [_with(inside, path[1:], new) if index == path[0] else inside for index, inside in enumerate(value)]


@st.composite
def spoiled(draw: st.DrawFn, right: list[Json]) -> bytes:
    """Something right in which one or two places are not."""
    value: Any = draw(st.sampled_from(right))
    for _ in range(draw(st.integers(1, 2))):
        value = _with(value, draw(st.sampled_from(places(value))), draw(values))
    raw = encoded(value)
    how = draw(st.sampled_from(["as it is", "as it is", "as it is", "raw", "cut", "bytes", "doubled"]))
    if how == "raw":
        marked = encoded(_with(value, draw(st.sampled_from(places(value))), "@@@"))
        raw = marked.replace(b'"@@@"', draw(st.sampled_from(RAW)), 1)
    elif how == "cut":
        raw = raw[: draw(st.integers(0, len(raw)))]
    elif how == "bytes":
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        raw = raw[:at] + draw(st.binary(max_size=3)) + raw[at + 1 :]
    elif how == "doubled":
        raw = raw.replace(b"{", b'{"metadata":{"name":"x"},', 1)
    return raw

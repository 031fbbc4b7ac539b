"""What no client sends is answered in words, within bounds, whatever it claims to be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.server.protobuf import WireError, read_body
from herder.server.protobuf.wire import DEEPEST, MOST_FIELDS, MOST_MESSAGES
from tests.engines.protobuf import chunk, encode, envelope, number
from tests.examples import examples

SCHEMAS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def nested_schema(depth: int) -> bytes:
    """JSONSchemaProps in their own `not`."""
    raw = b""
    for _ in range(depth):
        raw = chunk(28, raw)
    return envelope(*SCHEMAS, chunk(2, chunk(7, chunk(4, chunk(1, raw)))))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (envelope("v1", "Pod", chunk(2, chunk(2, b"") * (MOST_MESSAGES + 1))), "messages"),
        (envelope("apps/v1", "Deployment", chunk(2, number(1, 1) * (MOST_FIELDS + 1))), "fields"),
        (envelope("v1", "Pod", number(900, 1) * (MOST_FIELDS + 1)), "fields"),
        (envelope("v1", "Pod", chunk(2, chunk(14, chunk(4, b"\1" * (MOST_FIELDS + 1))))), "fields"),
        (envelope("v1", "Pod", b"\xfb\x07" * (MOST_FIELDS + 1)), "fields"),
        (nested_schema(DEEPEST + 1), "nested"),
        (envelope("apps/v1", "ControllerRevision", chunk(2, chunk(1, b"[" * 100_000))), "JSON"),
        (envelope("v1", "Event", chunk(6, number(1, 2**62))), "years"),
        (envelope("policy/v1", "PodDisruptionBudget", chunk(2, chunk(1, number(1, 7)))), "IntOrString"),
        (envelope("v1", "Pod", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), "claims"),
    ],
    ids=["messages", "fields", "unknown", "packed", "open groups", "depth", "deep JSON", "far years", "types", "lengths"],
)  # fmt: skip
def test_it_is_refused_in_words(raw: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        read_body(raw)


def test_what_is_deep_but_not_too_deep_is_read() -> None:
    schema = read_body(nested_schema(DEEPEST - 10))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    depth = 0
    while schema:
        schema, depth = schema["not"], depth + 1
    assert depth == DEEPEST - 10


def test_a_message_in_pieces_grows_together() -> None:
    pieces = chunk(1, chunk(1, b"a")) + chunk(1, chunk(3, b"n") + chunk(11, chunk(1, b"x") + chunk(2, b"y")))
    assert read_body(envelope("v1", "ConfigMap", pieces))["metadata"] == {"name": "a", "namespace": "n", "labels": {"x": "y"}}


def test_the_last_of_several_values_counts() -> None:
    raw = chunk(2, number(1, 3) + number(1, 0))
    assert read_body(envelope("apps/v1", "Deployment", raw))["spec"]["replicas"] == 0


def test_numbers_of_a_list_may_come_packed() -> None:
    groups = chunk(14, chunk(4, b"\x01\x02") + number(4, 3))
    assert read_body(envelope("v1", "Pod", chunk(2, groups)))["spec"]["securityContext"] == {"supplementalGroups": [1, 2, 3]}


def test_what_is_no_utf8_is_replaced() -> None:
    assert read_body(envelope("v1", "ConfigMap", chunk(2, chunk(1, b"k") + chunk(2, b"\xff"))))["data"] == {"k": "\ufffd"}


@settings(max_examples=examples(300), deadline=None)
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_words(raw: bytes) -> None:
    for body in (raw, b"k8s\x00" + raw, envelope("v1", "Pod", raw), envelope(*SCHEMAS, raw)):
        try:
            assert isinstance(read_body(body), dict)
        except WireError as error:
            assert str(error)


def test_the_encoder_of_the_tests_says_what_was_meant() -> None:
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "dg=="}, "type": "Opaque"}
    assert read_body(encode(document)) == document

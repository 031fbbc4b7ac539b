"""What Kubernetes' own code makes of an object in protobuf is what we make of it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.server.protobuf import WireError, read_body
from tests.examples import examples
from tests.unit.api.oracle import Oracle, running_oracle
from tests.unit.server.protobuf.documents import documents

UNHURRIED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example, HealthCheck.data_too_large)
pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    yield from running_oracle("oracle/wire")


def encoded(oracle: Oracle, *wanted: dict[str, Any]) -> list[tuple[bytes, dict[str, Any]]]:
    """The bytes that a Go client sends, and the JSON that it would send instead."""
    answers = oracle.ask([{"op": "encode", "document": document} for document in wanted])
    for answer in answers:
        assert "error" not in answer, answer
    return [(base64.b64decode(answer["wire"]), answer["document"]) for answer in answers]


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=UNHURRIED)
@given(document=documents())
def test_an_object_reads_as_the_json_that_go_would_send(oracle: Oracle, document: dict[str, Any]) -> None:
    ((wire, expected),) = encoded(oracle, document)
    assert read_body(wire) == expected


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=UNHURRIED)
@given(document=documents(), where=st.floats(0, 1), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_body_is_refused_in_words_or_read(
    oracle: Oracle, document: dict[str, Any], where: float, byte: int, cut: bool
) -> None:
    ((wire, _),) = encoded(oracle, document)
    at = int(where * (len(wire) - 1))
    damaged = wire[:at] if cut else wire[:at] + bytes([byte]) + wire[at + 1 :]
    try:
        assert isinstance(read_body(damaged), dict)
    except WireError as error:
        assert str(error)

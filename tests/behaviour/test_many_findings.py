"""Whoever sends very many mistakes hears of the first of them, in an answer that can still be read."""

import pytest

from tests.engines.api import Api, Reply
from tests.engines.resources import CONFIG_MAPS

MANY = 25_000


def doubled(name: str) -> bytes:
    keys = ",".join(f'"k{number}":"a","k{number}":"b"' for number in range(MANY // 2))
    return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{{keys}}}}}'.encode()


def unknown(name: str) -> bytes:
    keys = ",".join(f'"dta{number}":1' for number in range(MANY))
    return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},{keys}}}'.encode()


def text_of(reply: Reply) -> int:
    return sum(len(warning) - len('299 - ""') for warning in reply.warnings)


@pytest.mark.parametrize("body", [doubled, unknown])
async def test_warnings_are_a_hundred_at_most_and_fit_into_headers(api: Api, namespace: str, body: object) -> None:
    assert callable(body)
    made = await api.request("POST", CONFIG_MAPS.path(namespace), body("many"), fieldValidation="Warn")
    assert made.code == 201, made.message
    assert 10 < len(made.warnings) <= 100
    assert text_of(made) < 2 * 4096
    assert made.warnings[0].startswith(('299 - "duplicate field \\"data.k0\\"', '299 - "unknown field \\"dta0\\"'))


@pytest.mark.parametrize(("body", "words"), [(doubled, "duplicate field"), (unknown, "unknown field")])
async def test_a_strict_refusal_names_a_hundred_at_most(api: Api, namespace: str, body: object, words: str) -> None:
    assert callable(body)
    refused = await api.request("POST", CONFIG_MAPS.path(namespace), body("many"), fieldValidation="Strict")
    refused.refused(400, "BadRequest")
    assert 10 < refused.message.count(words) <= 100

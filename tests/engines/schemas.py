"""Engines inside the process of the tests: what the schema of a kind compiles to is the same for all of them."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from herder.api.problems import Problem
from herder.server import custom, strategies
from herder.server.schema import Schema, check_schema, compile_schema

# More than we have kinds; tests that make thousands of definitions do not fill the memory.
MOST = 64


def compile_once() -> None:
    """A simulated day starts one engine, and there are thousands of days: most of their time was the same schemas once more."""
    custom.compile_schema = _compile
    strategies.check_schema = _check


def _compile(openapi: dict[str, Any], components: dict[str, Any] | None = None) -> Schema:
    assert components is None, "no custom kind has any"
    return _compiled(msgspec.json.encode(openapi))


def _check(openapi: dict[str, Any], path: str = "openAPIV3Schema") -> list[Problem]:
    return list(_checked(msgspec.json.encode(openapi), path))


@functools.lru_cache(MOST)
def _compiled(openapi: bytes) -> Schema:
    return compile_schema(msgspec.json.decode(openapi))


@functools.lru_cache(MOST)
def _checked(openapi: bytes, path: str) -> tuple[Problem, ...]:
    whole: dict[str, Any] = msgspec.json.decode(openapi)
    return tuple(check_schema(whole, path))

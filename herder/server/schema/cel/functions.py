"""Functions by name, each with its signatures: which call fits is decided before anything runs, as far as types are known then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from herder.server.schema.cel.errors import NO_OVERLOAD, CelError
from herder.server.schema.cel.types import DYN, Type, assignable, filled, matches_name, parse_type, split_types
from herder.server.schema.cel.values import type_name

Implementation = Callable[..., Any]


class Overload(NamedTuple):
    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation


class Found(NamedTuple):
    result: Type
    call: Implementation


_functions: dict[str, list[Overload]] = {}


def function(*signatures: str) -> Callable[[Implementation], Implementation]:
    """`@function("string.startsWith(string) bool")`: a method; without the type in front it is called on its own.

    `sets::contains(...)` is called `sets.contains(...)`, where `sets` is no value but a part of the name.
    """

    def register(implementation: Implementation) -> Implementation:
        for signature in signatures:
            name, parameters, result = _parsed(signature)
            _functions.setdefault(name, []).append(Overload(parameters, result, implementation))
        return implementation

    return register


def _parsed(signature: str) -> tuple[str, tuple[Type, ...], Type]:
    head, result = _split_result(signature)
    opening = _opening(head)
    parameters = tuple(parse_type(one) for one in split_types(head[opening + 1 : -1]))
    name = head[:opening]
    if "::" in name:
        return name.replace("::", "."), parameters, parse_type(result)
    target, _, name = name.rpartition(".")
    if not target:
        return name, parameters, parse_type(result)
    return f".{name}", (parse_type(target), *parameters), parse_type(result)


def _split_result(signature: str) -> tuple[str, str]:
    """Where the parameters end: at the first space outside of any bracket."""
    depth = 0
    for index, character in enumerate(signature):
        depth += (character == "(") - (character == ")")
        if character == " " and depth == 0:
            return signature[:index], signature[index + 1 :]
    raise AssertionError(signature)


def _opening(head: str) -> int:
    """Where the parameters begin: the bracket that the last one closes."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += (head[index] == ")") - (head[index] == "(")
        if depth == 0:
            return index
    raise AssertionError(head)


def exists(name: str) -> bool:
    return name in _functions


def find(name: str, given: list[Type]) -> Found | None:
    """The call that fits these types; where they leave several open, the values decide when it runs."""
    fitting: list[tuple[Overload, Type]] = []
    for overload in _functions.get(name, ()):
        variables: dict[str, Type] = {}
        if len(overload.parameters) == len(given) and all(
            assignable(one, wanted, variables) for one, wanted in zip(given, overload.parameters, strict=True)
        ):
            fitting.append((overload, filled(overload.result, variables)))
    if not fitting:
        return None
    result = fitting[0][1] if len({str(one) for _, one in fitting}) == 1 else DYN
    if any(one.name == "dyn" for one in given):
        return Found(result, _deciding([overload for overload, _ in fitting]))
    return Found(result, fitting[0][0].implementation)


def _deciding(overloads: list[Overload]) -> Implementation:
    def call(*values: Any) -> Any:
        names = [type_name(value) for value in values]
        for overload in overloads:
            if all(matches_name(wanted, name) for wanted, name in zip(overload.parameters, names, strict=True)):
                return overload.implementation(*values)
        raise CelError(NO_OVERLOAD)

    return call

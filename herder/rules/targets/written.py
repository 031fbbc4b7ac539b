"""What a person writes to say where one migration may go, as the term of a migration: `--to NODE`, `--selector EXPR`."""

from __future__ import annotations

from typing import Any, Final

from herder.api.names import dns_subdomain
from herder.api.selector_text import parse_selector
from herder.api.selectors import DOES_NOT_EXIST, EXISTS, GREATER, LESS, NOT_EQUALS, NOT_IN, Requirement

Document = dict[str, Any]
_OTHERS: Final = {EXISTS: "Exists", DOES_NOT_EXIST: "DoesNotExist", GREATER: "Gt", LESS: "Lt"}
_OPERATORS: Final = {NOT_IN: "NotIn", NOT_EQUALS: "NotIn", **_OTHERS}


def written_term(to: str = "", selector: str = "") -> Document:
    """One NodeSelectorTerm; {} where nothing is asked for. ValueError, with a sentence, for what is none."""
    term: Document = {}
    if selector:
        try:
            requirements = parse_selector(selector).requirements
        except ValueError as error:
            example = "disktype=ssd, 'zone in (a,b)', '!gpu' or 'cores>4', joined by commas"
            raise ValueError(f"--selector {selector!r} is no selector of node labels, such as {example}: {error}") from None
        term["matchExpressions"] = [_expression(one) for one in requirements]
    if to:
        if dns_subdomain(to):
            raise ValueError(f"--to {to!r} is no name of a node: names have lower case letters, digits, - and .")
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [to]}]
    return term


def _expression(one: Requirement) -> Document:
    operator = _OPERATORS.get(one.operator, "In")
    return {"key": one.key, "operator": operator, **({"values": list(one.values)} if one.values else {})}

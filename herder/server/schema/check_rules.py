"""Rules must compile before a CRD is accepted: a rule that cannot run would let everything by, or nothing."""

from __future__ import annotations

from typing import Any

from herder.api import problems
from herder.api.problems import Problem
from herder.server.schema.cel import CompileError, ResultError, Type, compile_expression, type_of_schema
from herder.server.schema.cel.types import optional_of
from herder.server.schema.field_path import normalized
from herder.server.schema.node import Node

_REASONS = (problems.DUPLICATE, problems.FORBIDDEN, problems.INVALID, problems.REQUIRED)


def check_rules(root: Node, path: str, found: list[Problem]) -> None:
    _check(root, type_of_schema(root, True), path, None, found)


def _check(node: Node, type_: Type | None, path: str, loose: str | None, found: list[Problem]) -> None:
    """`loose`: the nearest place above whose items cannot be told apart from one write to the next, if there is one."""
    if node.builtin:
        return
    for index, rule in enumerate(node.rules):
        _check_rule(rule, node, type_, f"{path}.x-kubernetes-validations[{index}]", loose, found)
    for name, child in node.properties.items():
        inner = type_.fields.get(name) if type_ is not None and type_.fields else None
        _check(child, inner, f"{path}.properties[{name}]", loose, found)
    if node.items is not None:
        inner = type_.of[0] if type_ is not None and type_.name == "list" else None
        _check(node.items, inner, f"{path}.items", loose or (None if node.list_type == "map" else path), found)
    if node.additional is not None:
        inner = type_.of[1] if type_ is not None and type_.name == "map" else None
        _check(node.additional, inner, f"{path}.additionalProperties", loose, found)


def _check_rule(rule: dict[str, Any], node: Node, type_: Type | None, path: str, loose: str | None, found: list[Problem]) -> None:
    start = len(found)
    _check_words(rule, node, path, found)
    if len(found) > start or not rule.get("rule", "").strip():
        return
    if type_ is None:
        detail = "the value has no type that rules can see (x-kubernetes-preserve-unknown-fields), so no rule can be written for it"
        found.append(problems.invalid(f"{path}.rule", rule["rule"], detail))
        return
    old = optional_of(type_) if rule.get("optionalOldSelf") else type_
    uses_old = _compiled(rule, "rule", "bool", {"self": type_, "oldSelf": old}, path, found)
    if rule.get("messageExpression"):
        _compiled(rule, "messageExpression", "string", {"self": type_, "oldSelf": old}, path, found)
    if uses_old and loose is not None:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        found.append(problems.invalid(f"{path}.rule", rule["rule"], detail))
    if uses_old is False and rule.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        found.append(problems.invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], detail))


def _compiled(
    rule: dict[str, Any], key: str, wanted: str, variables: dict[str, Type], path: str, found: list[Problem]
) -> bool | None:
    """Whether it reads oldSelf; None where it does not compile, which is then among the problems."""
    name = "cel expression" if key == "rule" else key
    try:
        return "oldSelf" in compile_expression(rule[key], variables, wanted).names
    except ResultError as error:
        detail = f"{name} {error.detail}"
    except CompileError as error:
        detail = f"{'' if key == 'rule' else 'messageExpression '}compilation failed: {error}"
    found.append(problems.invalid(f"{path}.{key}", rule, detail))
    return None


def _check_words(rule: dict[str, Any], node: Node, path: str, found: list[Problem]) -> None:
    text, message = rule.get("rule", ""), rule.get("message", "")
    if not text.strip():
        found.append(problems.required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        found.append(problems.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_newline(message.strip()):
        found.append(problems.invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _has_newline(text.strip()) and not message.strip():
        found.append(problems.required(f"{path}.message", "message must be specified if rule contains line breaks"))
    words = rule.get("messageExpression", "")
    if words and not words.strip():
        found.append(problems.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        found.append(problems.not_supported(f"{path}.reason", rule["reason"], _REASONS))
    field_path = rule.get("fieldPath", "")
    if field_path and (not field_path.strip() or _has_newline(field_path) or normalized(field_path, node) is None):
        found.append(problems.invalid(f"{path}.fieldPath", field_path, "must be a valid path"))


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text

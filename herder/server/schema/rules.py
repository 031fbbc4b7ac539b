"""`x-kubernetes-validations`: rules that a schema writes as expressions over the value, and over what it was before."""

from __future__ import annotations

from typing import Any

from herder.api import problems
from herder.api.problems import Problem, shown
from herder.server.schema.cel import BudgetError, CelError, CompileError, Program, Type, compile_expression, type_of_schema
from herder.server.schema.cel.compile import MOST_STEPS
from herder.server.schema.cel.errors import NO_OVERLOAD
from herder.server.schema.cel.types import optional_of
from herder.server.schema.cel.values import NONE, Optional
from herder.server.schema.convert import converter
from herder.server.schema.field_path import normalized
from herder.server.schema.node import ABSENT, Node
from herder.server.schema.values import NO_PATH, list_key, list_map

_LONGEST_MESSAGE = 5 * 1024
Pair = tuple[Any, Any] | None


class Rule:
    """One rule: compiled once, run for every object."""

    __slots__ = ("field_path", "message", "optional_old", "program", "reason", "text", "uses_old", "words")

    def __init__(self, raw: dict[str, Any], program: Program | _Broken, words: Program | None, field_path: str) -> None:
        self.program = program
        self.words = words
        self.field_path = field_path
        self.uses_old = "oldSelf" in program.names
        self.optional_old = bool(raw.get("optionalOldSelf"))
        self.reason: str = raw.get("reason", "")
        self.text: str = (raw.get("message") or raw["rule"]).strip()
        self.message: str = raw["message"].strip() if raw.get("message") else f"failed rule: {raw['rule'].strip()}"


def compile_rule(raw: dict[str, Any], type_: Type, node: Node) -> Rule:
    """CompileError where the rule or its messageExpression is no such expression over this type."""
    old = optional_of(type_) if raw.get("optionalOldSelf") else type_
    variables = {"self": type_, "oldSelf": old}
    program = compile_expression(raw["rule"], variables, "bool")
    words = compile_expression(raw["messageExpression"], variables, "string") if raw.get("messageExpression") else None
    return Rule(raw, program, words, normalized(raw.get("fieldPath", ""), node) or "")


class _Broken:
    """Stands for a rule that does not compile: such CRDs are refused, so one that is here all the same must not let objects by."""

    names: frozenset[str] = frozenset()

    def __init__(self, error: CompileError) -> None:
        self.error = error

    def evaluate(self, variables: dict[str, Any], budget: list[int] | None = None) -> Any:
        raise CelError(f"rule compile error: compilation failed: {self.error}")


class _Findings:
    """The problems so far, and how many steps the rules of this object may still take, all together."""

    __slots__ = ("budget", "problems")

    def __init__(self, found: list[Problem]) -> None:
        self.problems = found
        self.budget = [MOST_STEPS]


class Rules:
    """The rules of one place in a schema and of all below it. Places without any have no Rules."""

    def __init__(self, node: Node, rules: list[Rule]) -> None:
        self.node = node
        self.rules = rules
        self.convert = converter(node)
        self.properties: dict[str, Rules] = {}
        self.items: Rules | None = None
        self.additional: Rules | None = None
        # Whether any rule here or below compares with what was before: others have nothing to say of what stays as it was.
        self.compares = any(rule.uses_old for rule in rules)

    def check(self, obj: Any, old: Any, out: list[Problem]) -> None:
        self._check(obj, ABSENT if old is None else old, "", None, _Findings(out))

    def _check(self, value: Any, old: Any, path: str, parent: Pair, out: _Findings) -> None:
        if value is None or (value is old and not self.compares) or out.budget[0] < 0:
            return
        pair: Pair = (value, old) if old is not ABSENT else parent
        if self.rules:
            self._check_rules(value, old, path, pair, out)
        if isinstance(value, dict):
            self._check_object(value, old, path, pair, out)
        elif isinstance(value, list) and self.items is not None:
            before = list_map(old, self.node) if self.node.list_type == "map" and old is not ABSENT else {}
            for index, one in enumerate(value):
                previous = before.get(list_key(one, self.node), ABSENT) if before else ABSENT
                self.items._check(one, previous, f"{path}[{index}]", pair, out)

    def _check_object(self, value: dict[str, Any], old: Any, path: str, pair: Pair, out: _Findings) -> None:
        before = old if isinstance(old, dict) else {}
        prefix = f"{path}." if path else ""
        for key, below in self.properties.items():
            if key in value:
                below._check(value[key], before.get(key, ABSENT), prefix + key, pair, out)
        if self.additional is not None:
            for key, inner in value.items():
                self.additional._check(inner, before.get(key, ABSENT), f"{path}[{key}]", pair, out)

    def _check_rules(self, value: Any, old: Any, path: str, pair: Pair, out: _Findings) -> None:
        has_old = old is not ABSENT and old is not None
        try:
            seen = self.convert(value) if self.convert else value
            before = (self.convert(old) if self.convert else old) if has_old else None
        except CelError as error:
            out.problems.append(problems.invalid(path or NO_PATH, self.node.type, str(error)))
            return
        for rule in self.rules:
            if rule.uses_old and not has_old and not rule.optional_old:
                continue  # a rule about a change, and nothing changed
            optional = Optional(True, before) if has_old else NONE
            env = {"self": seen, "oldSelf": optional if rule.optional_old else before}
            problem = self._failure(rule, env, value, path, out.budget)
            if problem is not None and (rule.uses_old or pair is None or pair[0] != pair[1]):
                out.problems.append(problem)
            if out.budget[0] < 0:
                return  # nothing is left for the others, and this one has said so

    def _failure(self, rule: Rule, env: dict[str, Any], value: Any, path: str, budget: list[int]) -> Problem | None:
        try:
            if rule.program.evaluate(env, budget) is True:
                return _exhausted(rule, path, self.node.type) if budget[0] < 0 else None
        except CelError as error:
            return problems.invalid(path or NO_PATH, self.node.type, _error_words(error, rule))
        where = f"{path}.{rule.field_path}" if path and rule.field_path and rule.field_path[0] != "[" else path + rule.field_path
        return _problem(where or NO_PATH, value, _message(rule, env, budget), rule.reason, self.node.type)


def _error_words(error: CelError, rule: Rule) -> str:
    if isinstance(error, BudgetError):
        return f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
    if str(error) == NO_OVERLOAD:
        return f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _exhausted(rule: Rule, path: str, kind: str) -> Problem:
    """What has not been looked at is not let in."""
    return problems.invalid(
        path or NO_PATH, kind, _error_words(BudgetError("operation cancelled: actual cost limit exceeded"), rule)
    )


def _message(rule: Rule, env: dict[str, Any], budget: list[int]) -> str:
    """What the messageExpression says, unless it fails or says nothing that fits a line."""
    if rule.words is None:
        return rule.message
    try:
        text = rule.words.evaluate(env, budget)
    except CelError:
        return rule.message
    if not isinstance(text, str):
        return rule.message
    text = text.strip()
    return text if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE else rule.message


def _problem(path: str, value: Any, detail: str, reason: str, kind: str) -> Problem:
    if reason == problems.FORBIDDEN:
        return problems.forbidden(path, detail)
    if reason == problems.REQUIRED:
        return problems.required(path, detail)
    value_words = "" if kind in ("object", "array") else f": {shown(value)}"
    if reason == problems.DUPLICATE:
        return Problem(path, problems.DUPLICATE, f"Duplicate value{value_words}")
    return Problem(path, problems.INVALID, f"Invalid value{value_words}: {detail}")


def compile_rules(root: Node) -> Rules | None:
    """None where no rule is anywhere in the schema."""
    return None if root.builtin else _compile(root, type_of_schema(root, True))


def _rule(raw: dict[str, Any], type_: Type, node: Node) -> Rule:
    try:
        return compile_rule(raw, type_, node)
    except CompileError as error:
        return Rule(raw, _Broken(error), None, "")


def _compile(node: Node, type_: Type | None) -> Rules | None:
    if type_ is None or node.builtin:
        return None
    raw_rules = [*node.rules, *(rule for one in node.all_of for rule in one.rules)]
    made = Rules(node, [_rule(one, type_, node) for one in raw_rules if one.get("rule", "").strip()])
    if type_.fields is not None:
        for name, child in node.properties.items():
            if (rules := _compile(child, type_.fields.get(name))) is not None:
                made.properties[name] = rules
    if node.items is not None and type_.name == "list":
        made.items = _compile(node.items, type_.of[0])
    if node.additional is not None and type_.name == "map":
        made.additional = _compile(node.additional, type_.of[1])
    below = [*made.properties.values(), *(one for one in (made.items, made.additional) if one is not None)]
    made.compares = made.compares or any(one.compares for one in below)
    return made if made.rules or below else None

"""A tree to closures, types checked on the way. A closure takes the variables and gives the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from herder.server.schema.cel import libraries, macros
from herder.server.schema.cel.errors import NO_OVERLOAD, CelError, CompileError, ResultError
from herder.server.schema.cel.functions import Implementation, exists, find
from herder.server.schema.cel.parser import Call, Expr, Index, ListOf, Literal, MapOf, Name, Select, parse
from herder.server.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    assignable,
    joined,
    list_of,
    map_of,
    optional_of,
    unescaped,
)
from herder.server.schema.cel.values import NONE, Optional, TypeValue, Uint

Env = dict[str, Any]
Eval = Callable[[Env], Any]
BUDGET = "$budget"
# Evaluations and steps of loops that all the rules of one object may take together; not enough to stall the server.
MOST_STEPS = 500_000
_TYPE_NAMES = ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type", "dyn")
libraries.load()


class Compiled(NamedTuple):
    type: Type
    run: Eval


class Program:
    """An expression, ready to run. `names` are the variables that it reads."""

    __slots__ = ("_run", "names", "source", "type")

    def __init__(self, source: str, compiled: Compiled, names: frozenset[str]) -> None:
        self.source = source
        self.type = compiled.type
        self._run = compiled.run
        self.names = names

    def evaluate(self, variables: Env, budget: list[int] | None = None) -> Any:
        """`budget`: how many steps are left, where there are other evaluations to share them with."""
        budget = [MOST_STEPS] if budget is None else budget
        budget[0] -= 1
        env = {**variables, BUDGET: budget}
        try:
            return self._run(env)
        except RecursionError:
            raise CelError("expression is nested too deeply") from None


def compile_expression(source: str, variables: dict[str, Type], wanted: str) -> Program:
    """CompileError says where the expression is wrong, or that it does not give the wanted type (`bool`, `string`)."""
    compiler = Compiler(source, variables)
    try:
        compiled = compiler.expr(parse(source))
    except RecursionError:
        raise CompileError(source, 0, "expression recursion limit exceeded") from None
    if compiled.type.name not in (wanted, "dyn"):
        raise ResultError(source, 0, f"must evaluate to a {wanted}, but it gives a {compiled.type}")
    return Program(source, compiled, frozenset(compiler.names))


class Compiler:
    def __init__(self, source: str, variables: dict[str, Type]) -> None:
        self.source = source
        self.scope = dict(variables)
        self.names: set[str] = set()
        self.mixed = False

    def fail(self, expr: Expr, detail: str) -> CompileError:
        return CompileError(self.source, expr.at, detail)

    def expr(self, expr: Expr) -> Compiled:
        if isinstance(expr, Literal):
            return self._literal(expr)
        if isinstance(expr, Name):
            return self._name(expr)
        if isinstance(expr, Select):
            return self._select(expr)
        if isinstance(expr, Index):
            return self._index(expr)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, ListOf):
            return self._list(expr)
        assert isinstance(expr, MapOf)
        return self._map(expr)

    def _literal(self, expr: Literal) -> Compiled:
        value = Uint(expr.value) if expr.unsigned else expr.value
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise self.fail(expr, "invalid int literal")
        kinds = {bool: BOOL, int: INT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL, Uint: UINT}
        return Compiled(kinds[type(value)], lambda env: value)

    def _name(self, expr: Name) -> Compiled:
        name = expr.name
        if name in self.scope:
            self.names.add(name)
            return Compiled(self.scope[name], lambda env: env[name])
        if name in _TYPE_NAMES:
            value = TypeValue(name)
            return Compiled(Type("type"), lambda env: value)
        raise self.fail(expr, f"undeclared reference to '{name}' (in container '')")

    def _select(self, expr: Select) -> Compiled:
        dotted = _dotted(expr)
        if dotted in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            value = TypeValue(dotted)
            return Compiled(Type("type"), lambda env: value)
        operand = self.expr(expr.operand)
        inner = operand.type.of[0] if operand.type.name == "optional_type" else operand.type
        field, type_ = self.field(expr, inner)
        if expr.optional or operand.type.name == "optional_type":
            return Compiled(optional_of(type_), _optionally(operand.run, lambda env: field))
        run = operand.run

        def select(env: Env) -> Any:
            value = run(env)
            if type(value) is not dict:
                raise CelError(NO_OVERLOAD)
            found = value.get(field, value)
            if found is value or (found is None and type_ is not DYN):
                raise CelError(f"no such key: {field}")
            return found

        return Compiled(type_, select)

    def field(self, expr: Select, type_: Type) -> tuple[str, Type]:
        """The name of the field in the object, and what it holds."""
        if type_.fields is not None:
            name = unescaped(expr.field)
            if name not in type_.fields:
                raise self.fail(expr, f"undefined field '{expr.field}'")
            return name, type_.fields[name]
        if type_.name == "map":
            return expr.field, type_.of[1]
        if type_.name != "dyn":
            raise self.fail(expr, f"type '{type_}' does not support field selection")
        return expr.field, DYN

    def _index(self, expr: Index) -> Compiled:
        operand, key = self.expr(expr.operand), self.expr(expr.key)
        holder = operand.type.of[0] if operand.type.name == "optional_type" else operand.type
        if holder.name == "list" and key.type.name in ("int", "uint", "double", "dyn"):
            type_ = holder.of[0]
        elif holder.name == "map" and assignable(key.type, holder.of[0], {}):
            type_ = holder.of[1]
        elif holder.name == "dyn":
            type_ = DYN
        else:
            raise self.fail(expr, f"found no matching overload for '_[_]' applied to '({holder}, {key.type})'")
        if expr.optional or operand.type.name == "optional_type":
            return Compiled(optional_of(type_), _optionally(operand.run, key.run))
        return Compiled(type_, _indexed(operand.run, key.run))

    def _call(self, expr: Call) -> Compiled:
        expanded = macros.expand(self, expr)
        if expanded is not None:
            return expanded
        if isinstance(expr.target, Name) and expr.target.name not in self.scope and exists(f"{expr.target.name}.{expr.function}"):
            return self._applied(expr, f"{expr.target.name}.{expr.function}", expr.args)
        if expr.target is not None:
            return self._applied(expr, f".{expr.function}", [expr.target, *expr.args])
        return self._applied(expr, expr.function, expr.args)

    def _applied(self, expr: Call, name: str, args: list[Expr]) -> Compiled:
        if not exists(name):
            raise self.fail(expr, f"undeclared reference to '{name.lstrip('.')}' (in container '')")
        outer, self.mixed = self.mixed, self.mixed or name == ".format"
        compiled = [self.expr(one) for one in args]
        self.mixed = outer
        found = find(name, [one.type for one in compiled])
        if found is None:
            target = f"{compiled[0].type}." if name.startswith(".") else ""
            given = ", ".join(str(one.type) for one in compiled[1 if target else 0 :])
            raise self.fail(expr, f"found no matching overload for '{name.lstrip('.')}' applied to '{target}({given})'")
        self._check_literals(name, args)
        return Compiled(found.result, _applied(found.call, [one.run for one in compiled]))

    def _check_literals(self, name: str, args: list[Expr]) -> None:
        """Patterns, durations and times that stand in the expression are looked at now, not when the first object comes."""
        place, check = libraries.LITERAL_CHECKS.get(name, (0, None))
        literal = args[place] if check is not None else None
        if check is None or not isinstance(literal, Literal) or not isinstance(literal.value, str):
            return
        try:
            check(literal.value)
        except (CelError, ValueError) as error:
            raise self.fail(literal, f"invalid {name.lstrip('.')} argument: {error}") from None

    def _list(self, expr: ListOf) -> Compiled:
        items = [self.expr(one) for one in expr.items]
        types = [_element(one.type, index in expr.optional) for index, one in enumerate(items)]
        runs = [one.run for one in items]
        self._check_same(expr, types)
        type_ = list_of(_joined(types))
        if not expr.optional:
            return Compiled(type_, lambda env: [run(env) for run in runs])
        return Compiled(type_, lambda env: _present((run(env), index in expr.optional) for index, run in enumerate(runs)))

    def _map(self, expr: MapOf) -> Compiled:
        entries = [(self.expr(key), self.expr(value)) for key, value in expr.entries]
        values = [_element(value.type, index in expr.optional) for index, (_, value) in enumerate(entries)]
        self._check_same(expr, values)
        type_ = map_of(_joined([key.type for key, _ in entries]), _joined(values))

        def build(env: Env) -> dict[Any, Any]:
            built: dict[Any, Any] = {}
            for index, (key, value) in enumerate(entries):
                one = value.run(env)
                if index not in expr.optional:
                    built[key.run(env)] = one
                elif one.has:
                    built[key.run(env)] = one.value
            return built

        return Compiled(type_, build)

    def _check_same(self, expr: Expr, types: list[Type]) -> None:
        """Lists and maps hold one type; only what is formatted may be mixed."""
        if self.mixed:
            return
        known = [one for one in types if one.name not in ("dyn", "null_type")]
        for one in known[1:]:
            if not assignable(one, known[0], {}):
                raise self.fail(expr, f"expected type '{known[0]}' but found '{one}'")


def _joined(types: list[Type]) -> Type:
    if not types:
        return DYN
    whole = types[0]
    for one in types[1:]:
        whole = joined(whole, one)
    return whole


def _element(type_: Type, optional: bool) -> Type:
    return type_.of[0] if optional and type_.of else type_


def _present(pairs: Any) -> list[Any]:
    return [value.value if optional else value for value, optional in pairs if not optional or value.has]


def _applied(call: Implementation, runs: list[Eval]) -> Eval:
    if len(runs) == 1:
        only = runs[0]
        return lambda env: call(only(env))
    if len(runs) == 2:
        first, second = runs
        return lambda env: call(first(env), second(env))
    return lambda env: call(*[run(env) for run in runs])


def _indexed(holder: Eval, key: Eval) -> Eval:
    def index(env: Env) -> Any:
        return _at(holder(env), key(env))

    return index


def _at(value: Any, place: Any) -> Any:
    if isinstance(value, list):
        if type(place) is float and place.is_integer():
            place = int(place)
        if not isinstance(place, int) or isinstance(place, bool):
            raise CelError(NO_OVERLOAD)
        if not 0 <= place < len(value):
            raise CelError(f"index out of bounds: {place}")
        return value[place]
    if not isinstance(value, dict):
        raise CelError(NO_OVERLOAD)
    if place not in value:
        raise CelError(f"no such key: {place}")
    return value[place]


def _optionally(holder: Eval, key: Eval) -> Eval:
    def select(env: Env) -> Optional:
        value = holder(env)
        if isinstance(value, Optional):
            if not value.has:
                return NONE
            value = value.value
        if not isinstance(value, (dict, list)):
            raise CelError(NO_OVERLOAD)
        try:
            found = _at(value, key(env))
        except CelError as error:
            if str(error).startswith(("no such key", "index out of bounds")):
                return NONE
            raise
        return NONE if found is None else Optional(True, found)

    return select


def _dotted(expr: Expr) -> str:
    if isinstance(expr, Select):
        return f"{_dotted(expr.operand)}.{expr.field}"
    return expr.name if isinstance(expr, Name) else ""

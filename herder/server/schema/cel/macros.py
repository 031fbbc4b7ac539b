"""What looks like a call and is not: conditions that skip a side, tests for presence, loops with a variable of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from herder.server.schema.cel.errors import NO_OVERLOAD, BudgetError, CelError
from herder.server.schema.cel.parser import Call, Expr, Name, Select
from herder.server.schema.cel.types import BOOL, DYN, INT, Type, joined, list_of, map_of, optional_of
from herder.server.schema.cel.values import NONE, Optional

if TYPE_CHECKING:
    from herder.server.schema.cel.compile import Compiled, Compiler, Env, Eval

_LOOPS = ("all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap", "transformMapEntry")


def expand(compiler: Compiler, call: Call) -> Compiled | None:
    """The meaning of a macro; None for what is an ordinary call."""
    if call.target is None:
        if call.function in ("_&&_", "_||_"):
            return _logic(compiler, call)
        if call.function == "_?_:_":
            return _condition(compiler, call)
        return _has(compiler, call) if call.function == "has" and len(call.args) == 1 else None
    if call.function in ("optMap", "optFlatMap") and len(call.args) == 2:
        return _optional_map(compiler, call)
    if call.function in _LOOPS and len(call.args) in (2, 3, 4) and isinstance(call.args[0], Name):
        return _loop(compiler, call)
    return None


def _made(type_: Type, run: Eval) -> Compiled:
    from herder.server.schema.cel.compile import Compiled

    return Compiled(type_, run)


def _boolean(compiler: Compiler, expr: Expr) -> Eval:
    compiled = compiler.expr(expr)
    if compiled.type.name not in ("bool", "dyn"):
        raise compiler.fail(expr, f"expected type 'bool' but found '{compiled.type}'")
    run = compiled.run
    if compiled.type.name == "bool":
        return run

    def checked(env: Env) -> bool:
        value = run(env)
        if type(value) is not bool:
            raise CelError(NO_OVERLOAD)
        return value

    return checked


def _logic(compiler: Compiler, call: Call) -> Compiled:
    """Either side may decide alone: an error counts only where the other side leaves the question open."""
    decisive = call.function == "_||_"
    left, right = (_boolean(compiler, one) for one in call.args)

    def run(env: Env) -> bool:
        try:
            value = left(env)
        except BudgetError:
            raise
        except CelError:
            if right(env) is decisive:
                return decisive
            raise
        return decisive if value is decisive else right(env)

    return _made(BOOL, run)


def _condition(compiler: Compiler, call: Call) -> Compiled:
    test = _boolean(compiler, call.args[0])
    chosen, other = compiler.expr(call.args[1]), compiler.expr(call.args[2])
    type_ = joined(chosen.type, other.type)
    if type_ is DYN and "dyn" not in (chosen.type.name, other.type.name):
        raise compiler.fail(call, f"found no matching overload for '_?_:_' applied to '(bool, {chosen.type}, {other.type})'")
    first, second = chosen.run, other.run
    return _made(type_, lambda env: first(env) if test(env) else second(env))


def _has(compiler: Compiler, call: Call) -> Compiled:
    select = call.args[0]
    if not isinstance(select, Select):
        raise compiler.fail(select, "invalid argument to has() macro")
    operand = compiler.expr(select.operand)
    inner = operand.type.of[0] if operand.type.name == "optional_type" else operand.type
    field, _ = compiler.field(select, inner)
    run = operand.run
    is_map = inner.name == "map"

    def has(env: Env) -> bool:
        value = run(env)
        if isinstance(value, Optional):
            if not value.has:
                return False
            value = value.value
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        return field in value if is_map else value.get(field) is not None

    return _made(BOOL, has)


def _optional_map(compiler: Compiler, call: Call) -> Compiled:
    assert call.target is not None
    target = compiler.expr(call.target)
    variable = _variable(compiler, call.args[0])
    inner = target.type.of[0] if target.type.of else DYN
    body = _scoped(compiler, {variable: inner}, lambda: compiler.expr(call.args[1]))
    flat = call.function == "optFlatMap"

    def run(env: Env) -> Optional:
        value = target.run(env)
        if not isinstance(value, Optional):
            raise CelError(NO_OVERLOAD)
        if not value.has:
            return NONE
        found = _with(env, {variable: value.value}, body.run)
        return found if flat else Optional(True, found)

    return _made(body.type if flat else optional_of(body.type), run)


def _variable(compiler: Compiler, expr: Expr) -> str:
    if not isinstance(expr, Name):
        raise compiler.fail(expr, "argument must be a simple name")
    return expr.name


def _scoped(compiler: Compiler, variables: dict[str, Type], make: Callable[[], Any]) -> Any:
    outer, names = compiler.scope, set(compiler.names)
    compiler.scope = {**outer, **variables}
    try:
        return make()
    finally:
        compiler.scope = outer
        compiler.names = names | (compiler.names - (set(variables) - names))


def _with(env: Env, variables: dict[str, Any], run: Eval) -> Any:
    return run({**env, **variables})


def _loop(compiler: Compiler, call: Call) -> Compiled | None:
    assert call.target is not None
    name, args = call.function, call.args
    two = isinstance(args[1], Name) and len(args) > 2 and (name != "map" and name != "filter")
    if name.startswith("transform") and not two:
        return None
    if not two and len(args) > (3 if name == "map" else 2):
        return None
    target = compiler.expr(call.target)
    variables = [_variable(compiler, one) for one in args[: 2 if two else 1]]
    rest = args[2:] if two else args[1:]
    types = _loop_types(compiler, call, target.type, two)
    scope = dict(zip(variables, types, strict=True))
    pairs = _pairs(target.run, variables)
    return _scoped(compiler, scope, lambda: _LOOP_MAKERS[name](compiler, call, target.type, pairs, rest))


def _loop_types(compiler: Compiler, call: Call, holder: Type, two: bool) -> tuple[Type, ...]:
    if holder.name == "list":
        return (INT, holder.of[0]) if two else (holder.of[0],)
    if holder.name == "map":
        return holder.of if two else (holder.of[0],)
    if holder.name == "dyn":
        return (DYN, DYN) if two else (DYN,)
    raise compiler.fail(call, f"expression of type '{holder}' cannot be range of a comprehension (must be list, map, or dynamic)")


def _pairs(target: Eval, variables: list[str]) -> Callable[[Env], Iterator[Env]]:
    """The variables of each step of a loop, the loop's own among them."""

    def steps(env: Env) -> Iterator[Env]:
        holder = target(env)
        budget = env["$budget"]
        inner = dict(env)
        for one in _each(holder, len(variables) == 2):
            budget[0] -= 1
            if budget[0] < 0:
                raise BudgetError("operation cancelled: actual cost limit exceeded")
            if len(variables) == 2:
                inner[variables[0]], inner[variables[1]] = one
            else:
                inner[variables[0]] = one
            yield inner

    return steps


def _each(holder: Any, two: bool) -> Any:
    if isinstance(holder, list):
        return enumerate(holder) if two else holder
    if isinstance(holder, dict):
        return list(holder.items()) if two else list(holder)
    raise CelError(NO_OVERLOAD)


def _quantifier(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    """all and exists: one step that decides settles it, whatever other steps failed with."""
    decisive = call.function == "exists"
    test = _boolean(compiler, rest[0])

    def run(env: Env) -> bool:
        failure: CelError | None = None
        for inner in pairs(env):
            try:
                if test(inner) is decisive:
                    return decisive
            except BudgetError:
                raise
            except CelError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decisive

    return _made(BOOL, run)


def _exactly_one(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    test = _boolean(compiler, rest[0])
    return _made(BOOL, lambda env: sum(1 for inner in pairs(env) if test(inner)) == 1)


def _filter(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    test = _boolean(compiler, rest[0])
    variable = _variable(compiler, call.args[0])
    type_ = holder if holder.name == "list" else list_of(holder.of[0] if holder.of else DYN)
    return _made(type_, lambda env: [inner[variable] for inner in pairs(env) if test(inner)])


def _map(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    body = compiler.expr(rest[-1])
    run = body.run
    if len(rest) == 1:
        return _made(list_of(body.type), lambda env: [run(inner) for inner in pairs(env)])
    test = _boolean(compiler, rest[0])
    return _made(list_of(body.type), lambda env: [run(inner) for inner in pairs(env) if test(inner)])


def _transform_map(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    body = compiler.expr(rest[-1])
    test = _boolean(compiler, rest[0]) if len(rest) == 2 else None
    key = _variable(compiler, call.args[0])
    key_type = holder.of[0] if holder.name == "map" else INT
    run = body.run
    return _made(
        map_of(key_type, body.type), lambda env: {inner[key]: run(inner) for inner in pairs(env) if test is None or test(inner)}
    )


def _transform_entry(compiler: Compiler, call: Call, holder: Type, pairs: Any, rest: list[Expr]) -> Compiled:
    body = compiler.expr(rest[-1])
    test = _boolean(compiler, rest[0]) if len(rest) == 2 else None

    def run(env: Env) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for inner in pairs(env):
            if test is None or test(inner):
                for key, value in body.run(inner).items():
                    if key in built:
                        raise CelError(f"insert failed: key {key} already exists")
                    built[key] = value
        return built

    return _made(body.type, run)


_LOOP_MAKERS = {
    "all": _quantifier,
    "exists": _quantifier,
    "exists_one": _exactly_one,
    "existsOne": _exactly_one,
    "map": _map,
    "filter": _filter,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
}

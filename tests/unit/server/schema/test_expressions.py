"""Rules over one object, each with what kube-apiserver made of it: true, false, or the error it reported."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.server.schema import compile_schema
from herder.server.schema.cel import BudgetError, CelError, CompileError, compile_expression
from herder.server.schema.cel.types import DYN, INT, list_of

EXPRESSIONS = msgspec.json.decode(Path(__file__).with_name("kubernetes_expressions.json").read_bytes())


def outcome(rule: str) -> bool | str:
    spec = {"type": "object", "properties": EXPRESSIONS["properties"], "x-kubernetes-validations": [{"rule": rule}]}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}})
    found = schema.validate({"apiVersion": "ex.io/v1", "kind": "Expr", "metadata": {"name": "x"}, "spec": EXPRESSIONS["spec"]})
    if not found:
        return True
    return False if "failed rule" in found[0].message else found[0].message.removeprefix('Invalid value: "object": ')


@pytest.mark.parametrize(("rule", "expected"), EXPRESSIONS["results"], ids=lambda value: str(value)[:60])
def test_a_rule_gives_what_it_gives_in_kubernetes(rule: str, expected: bool | str):
    assert outcome(rule) == expected


def evaluate(source: str, **variables: Any) -> Any:
    return compile_expression(source, dict.fromkeys(variables, DYN), "bool").evaluate(variables)


def test_a_variable_of_a_loop_hides_the_one_outside_and_gives_it_back():
    assert evaluate("[1, 2].all(x, x > 0) && x == 9", x=9) is True


def test_the_names_an_expression_reads_do_not_count_its_loops():
    program = compile_expression("[1].all(oldSelf, oldSelf > 0) && self == 1", {"self": INT, "oldSelf": INT}, "bool")
    assert program.names == {"self"}


def test_an_expression_cannot_go_on_for_ever():
    numbers = list(range(1100))
    nested = compile_expression("l.all(x, l.all(y, x + y >= 0))", {"l": list_of(INT)}, "bool")
    with pytest.raises(BudgetError):
        nested.evaluate({"l": numbers})


def test_a_deeply_nested_expression_is_refused():
    with pytest.raises(CompileError, match="recursion limit"):
        evaluate("(" * 300 + "true" + ")" * 300)


@pytest.mark.parametrize(
    "source", ["", "1 +", "a b", "'open", "x.", "[1", "{1}", "@", "1 ? 2", "'\\q' == ''", "99999999999999999999 > 1"]
)
def test_what_is_no_expression_is_refused(source: str):
    with pytest.raises(CompileError):
        evaluate(source, self={}, x=1)


def test_the_place_of_a_mistake_is_pointed_at():
    with pytest.raises(CompileError) as caught:
        compile_expression("true &&\n  nothing", {}, "bool")
    assert str(caught.value) == "ERROR: <input>:2:3: undeclared reference to 'nothing' (in container '')\n |   nothing\n | ..^"


def test_what_types_could_not_tell_before_is_an_error_when_it_runs():
    with pytest.raises(CelError, match="no such overload"):
        evaluate("x + 1 == 2", x="text")
    with pytest.raises(CelError, match="no such overload"):
        evaluate("x.all(y, y)", x=5)

"""What people write on the command line, as the term of a migration."""

from typing import Any

import pytest

from herder.rules.targets import written_term


def _test(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("disktype=ssd", [_test("disktype", "In", "ssd")]),
        ("a==b,c!=d", [_test("a", "In", "b"), _test("c", "NotIn", "d")]),
        ("zone in (a,b)", [_test("zone", "In", "a", "b")]),
        ("zone notin (a)", [_test("zone", "NotIn", "a")]),
        ("!gpu,ssd", [_test("gpu", "DoesNotExist"), _test("ssd", "Exists")]),
        ("cores>4,cores<9", [_test("cores", "Gt", "4"), _test("cores", "Lt", "9")]),
    ],
)
def test_a_selector_becomes_expressions(text: str, tests: list[dict[str, Any]]) -> None:
    made = written_term(selector=text)["matchExpressions"]
    assert [{**one, "values": sorted(one["values"])} if "values" in one else one for one in made] == tests


def test_a_node_is_named_by_its_field() -> None:
    assert written_term("node-1") == {"matchFields": [_test("metadata.name", "In", "node-1")]}
    assert written_term() == {}


@pytest.mark.parametrize(
    ("to", "selector", "words"), [("<node>", "", "--to '<node>' is no name of a node"), ("", "a=(", "--selector")]
)
def test_what_is_neither_is_refused_with_a_sentence(to: str, selector: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        written_term(to, selector)

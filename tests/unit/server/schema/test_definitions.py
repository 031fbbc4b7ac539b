"""Which schemas a CustomResourceDefinition may hold: what kube-apiserver said about each was written down."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.server.schema import check_schema, compile_schema, unknown_keywords

DEFINITIONS = msgspec.json.decode(Path(__file__).with_name("kubernetes_definitions.json").read_bytes())
# Kubernetes shows a Go struct beside a rule that does not compile, we show the rule.
SHOWN_RULE = re.compile(r'^Invalid value: \{"rule".*?\}: ', re.DOTALL)


def named(case: dict[str, Any]) -> str:
    return msgspec.json.encode(case["schema"]).decode()[-80:]


@pytest.mark.parametrize("case", DEFINITIONS, ids=named)
def test_a_schema_is_accepted_or_refused_as_kubernetes_does_it(case: dict[str, Any]):
    found = check_schema(case["schema"], "spec.validation.openAPIV3Schema")
    assert sorted([one.field, one.reason, SHOWN_RULE.sub("", one.message)] for one in found) == case["causes"]


@pytest.mark.parametrize("case", [case for case in DEFINITIONS if not case["causes"]], ids=named)
def test_what_is_accepted_can_be_compiled(case: dict[str, Any]):
    compile_schema(case["schema"])


def test_a_rule_that_cannot_run_is_refused_by_name():
    schema = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.spec.size.frobnicate()"}],
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "string"}}}},
    }
    (problem,) = check_schema(schema)
    assert problem.field == "openAPIV3Schema.x-kubernetes-validations[0].rule"
    assert "self.spec.size.frobnicate()" in problem.message
    assert "undeclared reference to 'frobnicate'" in problem.message


def test_a_stored_rule_that_no_longer_compiles_lets_nothing_by():
    schema = compile_schema({"type": "object", "x-kubernetes-validations": [{"rule": "nonsense("}]})
    (problem,) = schema.validate({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}})
    assert "rule compile error" in problem.message


def test_keywords_that_no_schema_knows_are_named():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "maxLenght": 3}}}, "x-other": 1}
    assert unknown_keywords(schema) == ["openAPIV3Schema.x-other", "openAPIV3Schema.properties[a].items.maxLenght"]

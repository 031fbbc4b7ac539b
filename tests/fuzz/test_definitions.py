"""Whatever a definition holds, it is refused or served, and nothing of its kind takes long."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.conftest import TIMES, Victim
from tests.fuzz.strategies import Json, encoded, spoiled, texts, values

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "fuzz.example.com"
numbers = itertools.count()
FEW = settings(max_examples=max(1, TIMES) * 60)

# Patterns that keep an engine busy that tries one way after the other.
CATASTROPHES = [
    "^(a+)+$", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*(.*)*x", "(x+x+)+y", "^(a?){30}a{30}$", "(?:a*)*b",
    "((((a*)*)*)*)*b", "(a{1,50}){1,50}b", r"^(\w+\s?)*$", "([a-zA-Z]+)*$",
]  # fmt: skip


def definition(plural: str, schema: Any, **version: Any) -> Json:
    whole = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "singular": plural, "kind": plural.capitalize(), "listKind": f"{plural.capitalize()}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [whole]},
    }


def objects(victim: Victim, plural: str, document: Any) -> list[int]:
    """Codes of writing and reading an object of that kind, once it is served."""
    victim.loop.run_until_complete(asyncio.sleep(0.005))
    path = f"/apis/{GROUP}/v1/namespaces/default/{plural}"
    head = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
    body = {**(document if isinstance(document, dict) else {"spec": document}), **head}
    codes = [victim.ask("POST", path, encoded(body))[0]]
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    codes += [victim.ask("GET", f"{path}/a", accept=table)[0], victim.ask("GET", path, accept=table)[0]]
    victim.ask("PATCH", f"{path}/a", encoded(body), content_type="application/merge-patch+json")
    victim.ask("GET", f"{path}/a/scale")
    return codes


def install(victim: Victim, body: Json) -> bool:
    return victim.ask("POST", CRDS, encoded(body))[0] == 201


def remove(victim: Victim, plural: str) -> None:
    victim.ask("DELETE", f"{CRDS}/{plural}.{GROUP}")
    victim.loop.run_until_complete(asyncio.sleep(0.005))


KEYWORDS = st.sampled_from([
    "type", "properties", "items", "additionalProperties", "pattern", "format", "enum", "default", "minimum", "maximum",
    "maxLength",
    "minItems", "required", "nullable", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-preserve-unknown-fields", "uniqueItems",
    "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type", "x-kubernetes-validations", "multipleOf", "$ref", "title",
])  # fmt: skip
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean"])
schemas = st.recursive(
    st.fixed_dictionaries({"type": TYPES}, optional={"pattern": st.sampled_from(CATASTROPHES), "default": values, "format": texts}),
    lambda inside: st.one_of(
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(texts, inside, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inside}),
        st.tuples(inside, KEYWORDS, st.one_of(values, inside)).map(lambda three: {**three[0], three[1]: three[2]}),
    ),
    max_leaves=6,
)


@FEW
@given(schemas, values)
def test_any_schema(victim: Victim, schema: Json, document: Any) -> None:
    plural = f"s{next(numbers)}"
    whole = {"type": "object", "properties": {"spec": schema}}
    if install(victim, definition(plural, whole)):
        objects(victim, plural, {"spec": document})
        remove(victim, plural)


@FEW
@given(spoiled([definition("dddd", {"type": "object", "properties": {"spec": {"type": "string", "pattern": "^a"}}},
                           subresources={"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}},
                           additionalPrinterColumns=[{"name": "N", "type": "string", "jsonPath": ".spec"}])]))  # fmt: skip
def test_any_definition(victim: Victim, raw: bytes) -> None:
    code, answer = victim.ask("POST", CRDS, raw)
    if code == 201:
        name = json.loads(answer)["metadata"]["name"]
        victim.loop.run_until_complete(asyncio.sleep(0.005))
        victim.ask("GET", f"/apis/{GROUP}/v1/dddd")
        victim.ask("DELETE", f"{CRDS}/{name}")
        victim.loop.run_until_complete(asyncio.sleep(0.005))


@pytest.mark.parametrize("pattern", CATASTROPHES)
def test_patterns_that_others_try_for_ever(victim: Victim, pattern: str) -> None:
    plural = f"p{next(numbers)}"
    schema = {"type": "object", "properties": {"spec": {"type": "string", "pattern": pattern}}}
    assert install(victim, definition(plural, schema))
    for text in ("a" * 40 + "!", "a" * 5_000 + "!", "x" * 200_000, "aA " * 100_000):
        objects(victim, plural, text)
    remove(victim, plural)


@pytest.mark.parametrize("rule", ["self.matches('^(a+)+$')", "self.find('(a|aa)+$') == ''", "self.findAll('(x+x+)+y').size() == 0",
                                  "self.findAll('(x+x+)+y|x').size() == 0",
                                  "self.matches(self)"])  # fmt: skip
def test_rules_with_such_patterns(victim: Victim, rule: str) -> None:
    plural = f"r{next(numbers)}"
    schema = {"type": "object", "properties": {"spec": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}}}
    if not install(victim, definition(plural, schema)):
        return
    for text in ("a" * 40 + "!", "x" * 100_000, "(" * 20_000, "a{1000}" * 400, "(a+)+$" * 50):
        objects(victim, plural, text)
    remove(victim, plural)


steps = st.lists(
    st.one_of(
        st.sampled_from(
            [
                ".spec",
                "['a']",
                "[0]",
                "[-1]",
                "[*]",
                "..a",
                ".*",
                "[?(@.a=='b')]",
                "[0:2]",
                "[::0]",
                "[::-1]",
                "{",
                "}",
                "\\",
                "..",
                "$",
            ]
        ),
        texts,
    ),
    max_size=6,
).map("".join)


@FEW
@given(steps, values)
def test_any_column(victim: Victim, path: str, document: Any) -> None:
    plural = f"c{next(numbers)}"
    column = {"name": "N", "type": "string", "jsonPath": path}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if install(victim, definition(plural, free, additionalPrinterColumns=[column])):
        objects(victim, plural, {"spec": document, "a": [document, document]})
        remove(victim, plural)

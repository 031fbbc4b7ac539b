"""Our parsers against Kubernetes' own, on the same generated inputs: what one refuses the other refuses, and the rest is equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.api import names
from herder.api.core import CORE_KINDS
from herder.api.duration import format_duration, parse_duration
from herder.api.field_selectors import parse_field_selector
from herder.api.int_or_percent import scaled_value
from herder.api.node_selector import NodeSelector
from herder.api.quantity import parse_quantity
from herder.api.selector_text import parse_selector
from herder.api.selectors import joined, selector_from_object, validate_label_selector
from tests.examples import examples

from .oracle import Oracle, running_oracle

INT64 = 1 << 63
quick = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    yield from running_oracle("oracle")


def batches(one: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, min_size=1, max_size=60)


digits = st.text("0123456789", max_size=22)
decimals = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
exponents = st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 12))
plain_quantities = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "", "-", "+"]),
    digits,
    st.sampled_from(["", "", "."]),
    st.text("0123456789", max_size=12),
    decimals | exponents,
)
wild_quantities = st.text("0123456789.+-eEinumkKMGTP ", max_size=8)


def fits(nanos: int) -> bool:
    """Where Kubernetes' own arithmetic still holds: past 64 bits it wraps, and past E it drops the suffix."""
    return abs(nanos) < 10**15 * 10**9


@quick
@given(batches(plain_quantities | wild_quantities))
def test_quantities_are_read_and_written_alike(oracle: Oracle, texts: list[str]) -> None:
    for text, said in zip(texts, oracle.ask([{"op": "quantity", "text": text} for text in texts]), strict=True):
        try:
            ours = parse_quantity(text)
        except ValueError as refusal:
            assert said.get("error") == str(refusal), text
            continue
        assert "error" not in said, (text, said)
        assert (ours.format, ours.sign) == (said["format"], said["sign"]), text
        if abs(ours.nanos) < 10**21 * 10**9:
            assert str(ours) == said["string"], text
        if fits(ours.nanos) and ours.nanos >= 0:
            assert (ours.value(), ours.milli_value()) == (said["value"], said["milli"]), text


@quick
@given(batches(st.tuples(plain_quantities, plain_quantities)))
def test_quantities_are_compared_and_added_alike(oracle: Oracle, pairs: list[tuple[str, str]]) -> None:
    answers = oracle.ask([{"op": "quantities", "text": left, "other": right} for left, right in pairs])
    for (left, right), said in zip(pairs, answers, strict=True):
        if "error" in said:
            continue
        one, other = parse_quantity(left), parse_quantity(right)
        assert (one > other) - (one < other) == said["compare"], (left, right)
        if fits(one.nanos) and fits(other.nanos):
            assert (str(one + other), str(one - other)) == (said["sum"], said["difference"]), (left, right)


duration_pieces = st.lists(
    st.builds("{}{}{}".format, st.text("0123456789", max_size=20), st.sampled_from(["", ".", ".5", ".000000000000000000001"]),
              st.sampled_from(["h", "m", "s", "ms", "us", "µs", "μs", "ns", "", "d"])),
    max_size=3,
).map("".join)  # fmt: skip
durations = st.builds("{}{}".format, st.sampled_from(["", "", "-", "+"]), duration_pieces) | st.text(
    '0123456789.hmsnuµ-+"\\é ', max_size=8
)


@quick
@given(batches(durations))
def test_durations_are_read_alike(oracle: Oracle, texts: list[str]) -> None:
    for text, said in zip(texts, oracle.ask([{"op": "duration", "text": text} for text in texts]), strict=True):
        try:
            ours = parse_duration(text)
        except ValueError as refusal:
            assert said.get("error") == str(refusal), text
            continue
        assert (ours, format_duration(ours)) == (said.get("nanos"), said.get("string")), text


@quick
@given(batches(st.integers(-INT64, INT64 - 1) | st.integers(-(10**10), 10**10)))
def test_durations_are_written_alike(oracle: Oracle, lengths: list[int]) -> None:
    said = oracle.ask([{"op": "durationText", "number": length} for length in lengths])
    assert [format_duration(length) for length in lengths] == [one["string"] for one in said]


shares = st.integers(-1000, 1000) | st.integers(0, 200).map("{}%".format) | st.text("0123456789%+- ", max_size=5)


@quick
@given(batches(st.tuples(shares, st.integers(0, 100_000), st.booleans())))
def test_percentages_are_scaled_alike(oracle: Oracle, asked: list[tuple[int | str, int, bool]]) -> None:
    answers = oracle.ask([{"op": "scaled", "value": value, "number": total, "roundUp": up} for value, total, up in asked])
    for (value, total, up), said in zip(asked, answers, strict=True):
        try:
            ours = scaled_value(value, total, up)
        except ValueError:
            assert "error" in said, value
            continue
        assert ours == said["value"], (value, total, up)


label_values = st.sampled_from(["", "x", "y", "1", "5", "-3", "+4", "9" * 20])
label_sets = st.lists(st.dictionaries(st.sampled_from(["a", "b", "x.io/c", "n"]), label_values, max_size=4), min_size=3, max_size=6)
keys = st.sampled_from(["a", "b", "x.io/c", "n", "in", "notin", "A_b.c", "-a", "x/y/z", "é", "a" * 64])
values = st.sampled_from(["", "x", "y", "1", "5", "x_y", "in", "-", "b" * 64, "+4"])
blanks = st.sampled_from(["", "", " ", "\t "])
terms = (
    st.builds("{}{}{}{}{}".format, keys, blanks, st.sampled_from(["=", "==", "!=", ">", "<", "=="]), blanks, values)
    | st.builds("{} {} ({})".format, keys, st.sampled_from(["in", "notin"]), st.lists(values, max_size=3).map(",".join))
    | keys
    | keys.map("!{}".format)
)
selector_texts = st.lists(terms, max_size=4).map(",".join) | st.text("ab=!,()<> in\tnotin\0", max_size=14)


@quick
@given(batches(selector_texts), label_sets)
def test_label_selector_texts_are_read_alike(oracle: Oracle, texts: list[str], sets: list[dict[str, str]]) -> None:
    answers = oracle.ask([{"op": "labels", "text": text, "labels": sets} for text in texts])
    for text, said in zip(texts, answers, strict=True):
        try:
            ours = parse_selector(text)
        except ValueError as refusal:
            assert said.get("error") == str(refusal), text
            continue
        assert "error" not in said, (text, said)
        assert (str(ours), ours.empty, [ours.matches(one) for one in sets]) == (said["string"], said["empty"], said["matches"]), (
            text
        )


expressions = st.fixed_dictionaries(
    {
        "key": keys,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", ""]),
        "values": st.lists(values, max_size=3),
    }
)
label_selectors = st.none() | st.fixed_dictionaries(
    {}, optional={"matchLabels": st.dictionaries(keys, values, max_size=2), "matchExpressions": st.lists(expressions, max_size=3)}
)


@quick
@given(batches(label_selectors), label_sets)
def test_label_selectors_in_objects_mean_the_same(oracle: Oracle, selectors: list[Any], sets: list[dict[str, str]]) -> None:
    answers = oracle.ask([{"op": "labelSelector", "selector": one, "labels": sets} for one in selectors])
    for selector, said in zip(selectors, answers, strict=True):
        assert sorted(str(one) for one in validate_label_selector(selector, "spec")) == sorted(said["problems"]), selector
        try:
            ours = selector_from_object(selector)
        except ValueError:
            assert said.get("refused"), selector
            continue
        assert (ours.empty, [ours.matches(one) for one in sets]) == (said["empty"], said["matches"]), selector


field_terms = st.builds("{}{}{}".format, st.sampled_from(["a", "metadata.name", ""]), st.sampled_from(["=", "==", "!=", ""]),
                        st.text("xy\\,=é", max_size=4))  # fmt: skip


@quick
@given(batches(st.lists(field_terms, max_size=3).map(",".join)))
def test_field_selectors_are_read_alike(oracle: Oracle, texts: list[str]) -> None:
    sets = [{"a": "x"}, {"a": "x,"}, {"metadata.name": "xy", "a": ""}, {}]
    for text, said in zip(texts, oracle.ask([{"op": "fields", "text": text, "labels": sets} for text in texts]), strict=True):
        try:
            ours = parse_field_selector(text)
        except ValueError as refusal:
            assert said.get("error") == str(refusal), text
            continue
        assert "error" not in said, (text, said)
        assert (str(ours), ours.empty, [ours.matches(one) for one in sets]) == (said["string"], said["empty"], said["matches"]), (
            text
        )


node_terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions, max_size=3),
        "matchFields": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from(["metadata.name", "spec.x"]),
                    "operator": st.sampled_from(["In", "NotIn", "Exists"]),
                    "values": st.lists(st.sampled_from(["node-1", "node-2"]), max_size=2),
                }
            ),
            max_size=2,
        ),
    },
)


@quick
@given(batches(st.fixed_dictionaries({"nodeSelectorTerms": st.lists(node_terms, max_size=3)})), label_sets)
def test_node_selectors_pick_the_same_nodes(oracle: Oracle, selectors: list[Any], sets: list[dict[str, str]]) -> None:
    called = ["node-1", "node-2", "", "node-1", "node-3", "node-2"][: len(sets)]
    answers = oracle.ask([{"op": "nodes", "nodes": one, "labels": sets, "names": called} for one in selectors])
    for selector, said in zip(selectors, answers, strict=True):
        ours = NodeSelector(selector)
        assert [ours.matches(one, name) for one, name in zip(sets, called, strict=True)] == said["matches"], selector
        assert (joined(ours.problems) if ours.problems else "") == said["wrong"], selector


name_texts = st.text("abzAZ019-._/ %=é\n", max_size=12) | st.sampled_from(
    ["a" * 63, "a" * 64, "a." * 130 + "a", "x.io/" + "n" * 64, "a-" * 40, "é" * 40]
)


@quick
@given(batches(name_texts))
def test_names_are_judged_in_the_same_words(oracle: Oracle, texts: list[str]) -> None:
    for text, said in zip(texts, oracle.ask([{"op": "names", "text": text} for text in texts]), strict=True):
        for rule, complaints in said.items():
            judge = getattr(names, rule)
            ours = judge(text, True) if rule.startswith("name_is") else judge(text)
            assert list(ours) == (complaints or []), (rule, text)


LEAVES: dict[str, tuple[type[Any], ...]] = {
    "string": (msgspec.inspect.StrType, msgspec.inspect.LiteralType),
    "boolean": (msgspec.inspect.BoolType,),
    "integer": (msgspec.inspect.IntType,),
    "time": (msgspec.inspect.DateTimeType,),
    "bytes": (msgspec.inspect.BytesType,),
}


def differences(view: Any, shape: Any, path: str) -> Iterator[str]:
    """Fields of a view that Kubernetes does not have, or has with another type."""
    options = view.types if isinstance(view, msgspec.inspect.UnionType) else (view,)
    kinds = [one for one in options if not isinstance(one, msgspec.inspect.NoneType)]
    first = getattr(kinds[0], "type", kinds[0]) if isinstance(kinds[0], msgspec.inspect.Metadata) else kinds[0]
    if shape == "any" or isinstance(first, msgspec.inspect.AnyType):
        return
    if isinstance(first, msgspec.inspect.StructType):
        for one in first.fields:
            if not isinstance(shape, dict) or one.encode_name not in shape:
                yield f"{path}.{one.encode_name} does not exist"
            else:
                yield from differences(one.type, shape[one.encode_name], f"{path}.{one.encode_name}")
    elif isinstance(first, msgspec.inspect.VarTupleType):
        if not isinstance(shape, list):
            yield f"{path} is not a list"
        else:
            yield from differences(first.item_type, shape[0], f"{path}[]")
    elif isinstance(first, msgspec.inspect.DictType):
        if not isinstance(shape, dict):
            yield f"{path} is not a map"
        elif "*" in shape:
            yield from differences(first.value_type, shape["*"], f"{path}{{}}")
    elif shape not in ("quantity", "int-or-string") and not isinstance(first, LEAVES[str(shape)]):
        yield f"{path} is {shape}"


@pytest.mark.parametrize("kind", CORE_KINDS, ids="/".join)
def test_every_field_of_a_view_exists_in_kubernetes_with_that_type(oracle: Oracle, kind: tuple[str, str]) -> None:
    (said,) = oracle.ask([{"op": "shape", "text": "/".join(kind)}])
    assert list(differences(msgspec.inspect.type_info(CORE_KINDS[kind]), said["shape"], kind[1])) == []

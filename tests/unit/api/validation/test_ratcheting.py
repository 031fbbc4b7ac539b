"""Objects that were stored before a rule came: whatever does not touch what it is about can still be changed."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api.registry import INSTANCE, MACHINE, POLICY
from herder.api.validation import problems_of
from tests.unit.api.validation.judging import Json, document, schema_problems


def _machine(strategy: str = "Always", **spec: Any) -> Json:
    return document(MACHINE, {"runStrategy": strategy, "template": {"spec": {"domain": {}, **spec}}})


# Each would be refused today: by the schema, by its rules, or by what no schema can say.
OLD = [
    {"domain": {"cpu": {"model": "qemu64,+avx"}}},
    {"domain": {"firmware": {"serial": "a\0b"}}},
    {"domain": {"memory": {"guest": "1"}}},
    {"domain": {"memory": {"guest": "9999999Ei"}}},
    {"domain": {}, "terminationGracePeriodSeconds": 2**40},
    {"domain": {"resources": {"requests": {"example.com/gpu": "1"}}}},
    {"domain": {}, "tolerations": [{"key": "a b", "operator": "Exists"}]},
]


@pytest.mark.parametrize("spec", OLD, ids=str)
def test_a_machine_that_would_be_refused_today_can_be_stopped_and_mended(spec: Json) -> None:
    old = _machine(**spec)
    assert schema_problems(MACHINE, old) or problems_of(old), "else it is no example"
    stopped = _machine("Halted", **spec)
    assert (schema_problems(MACHINE, stopped, old), problems_of(stopped, old)) == ([], [])
    mended = _machine()
    assert (schema_problems(MACHINE, mended, old), problems_of(mended, old)) == ([], [])


@pytest.mark.parametrize(
    "spec",
    [
        {"domain": {"cpu": {"model": "a,b"}}},
        {"domain": {"memory": {"guest": "2"}}},
        {"domain": {"memory": {"guest": "1"}, "x": {}}},
    ],
    ids=str,
)
def test_another_value_that_is_wrong_is_refused_all_the_same(spec: Json) -> None:
    old = _machine(domain={"cpu": {"model": "qemu64,+avx"}, "memory": {"guest": "3"}})
    new = _machine(**spec)
    assert schema_problems(MACHINE, new, old) or problems_of(new, old)


def test_a_policy_from_before_keeps_its_downtime_of_zero_until_somebody_changes_it() -> None:
    selectors = {"selectors": {"namespaceSelector": {"a": "b"}}}
    old = document(POLICY, {**selectors, "maxDowntimeMs": 0})
    assert problems_of(document(POLICY, {**selectors, "maxDowntimeMs": 0, "allowPostCopy": True}), old) == []
    assert problems_of(document(POLICY, {**selectors, "maxDowntimeMs": 2_000_001}), old)


def test_a_request_that_the_status_could_not_hold_is_refused() -> None:
    annotations = {"herder.dev/start-requested": "x" * 1025}
    spec = {"running": False, "template": {"spec": {"domain": {}}}}
    (said,) = problems_of(document(MACHINE, spec, annotations=annotations))
    assert str(said).startswith('metadata.annotations[herder.dev/start-requested]: Invalid value: "xxx')
    assert problems_of(document(MACHINE, spec, annotations={"herder.dev/start-requested": "x" * 1024})) == []


def test_more_processors_than_any_board_has_are_refused() -> None:
    (said,) = problems_of(_machine(domain={"cpu": {"sockets": 1024, "cores": 8}}))
    assert str(said) == (
        'spec.template.spec.domain.cpu: Invalid value: "1024 x 8 x 1 = 8192": must be at most 4096 processors:'
        " sockets, cores and threads are multiplied"
    )
    assert problems_of(_machine(domain={"cpu": {"sockets": 2, "cores": 1024, "threads": 2}})) == []


def test_a_machine_whose_name_is_too_long_for_a_label_is_refused_only_when_it_is_new() -> None:
    spec = {"running": False, "template": {"spec": {"domain": {}}}}
    long = document(MACHINE, spec, "a" * 64)
    (said,) = problems_of(long)
    assert str(said).startswith(f'metadata.name: Invalid value: "{"a" * 64}": must be at most 63 characters')
    assert problems_of(long, long) == []
    assert problems_of(document(INSTANCE, {"domain": {}}, "a" * 64)) == [], "an instance has no such label"

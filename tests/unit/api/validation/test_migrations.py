"""VirtualMachineInstanceMigration: the term that no schema looks at."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.meta import NodeSelectorTerm
from herder.api.normalise import added_term
from herder.api.problems import INVALID, NOT_SUPPORTED, TOO_MANY, TYPE_INVALID
from herder.api.validation import problems_of

Json = dict[str, Any]
TERM = "spec.addedNodeSelectorTerm"


def _migration(term: Any = None, **spec: Any) -> Json:
    added = {} if term is None else {"addedNodeSelectorTerm": term}
    metadata = {"name": "a"}
    body = {"vmiName": "vm", **added, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": metadata, "spec": body}


def _named(*names: str, operator: str = "In") -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


def _labelled(key: str, operator: str, *values: Any) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


RIGHT = [
    None,
    {},
    [],
    [{}],
    _named("node-1"),
    [_named("node-1", operator="NotIn")],
    _labelled("disktype", "In", "ssd", "nvme"),
    _labelled("disktype", "Exists"),
    _labelled("generation", "Gt", "3"),
]


@pytest.mark.parametrize("term", RIGHT, ids=str)
def test_a_right_term_has_no_problems(term: Any) -> None:
    assert problems_of(_migration(term)) == []


def test_a_list_of_several_terms_is_refused_because_the_field_only_narrows() -> None:
    (problem,) = problems_of(_migration([_named("node-1"), _named("node-2")]))
    assert (problem.field, problem.reason) == (TERM, INVALID)
    assert "must be one term, not 2" in problem.message
    assert "only ever narrows" in problem.message


WRONG = [
    ("node-1", TERM, TYPE_INVALID),
    ([["node-1"]], f"{TERM}[0]", TYPE_INVALID),
    ({"matchLabels": {"a": "b"}}, f"{TERM}.matchLabels", INVALID),
    ({"matchFields": {"key": "metadata.name"}}, f"{TERM}.matchFields", TYPE_INVALID),
    ({"matchFields": ["node-1"]}, f"{TERM}.matchFields[0]", TYPE_INVALID),
    ({"matchExpressions": [{"key": "a", "operator": "Exists", "value": "b"}]}, f"{TERM}.matchExpressions[0].value", INVALID),
    ({"matchExpressions": [{"operator": "Exists"}]}, f"{TERM}.matchExpressions[0].key", TYPE_INVALID),
    ({"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]}, f"{TERM}.matchExpressions[0].values", TYPE_INVALID),
    (_labelled("a", "In", True), f"{TERM}.matchExpressions[0].values[0]", TYPE_INVALID),
    (_labelled("a", "Like", "b"), f"{TERM}.matchExpressions[0].operator", NOT_SUPPORTED),
    (_labelled("a b", "Exists"), f"{TERM}.matchExpressions[0].key", INVALID),
    ([_named("node-1", "node-2")], f"{TERM}[0].matchFields[0].values", INVALID),
    (_named("node-1", operator="Exists"), f"{TERM}.matchFields[0].operator", NOT_SUPPORTED),
    (
        {"matchFields": [{"key": "spec.unschedulable", "operator": "In", "values": ["true"]}]},
        f"{TERM}.matchFields[0].key",
        NOT_SUPPORTED,
    ),
]


@pytest.mark.parametrize(("term", "field", "reason"), WRONG, ids=str)
def test_a_wrong_term_is_refused_where_it_is_wrong(term: Any, field: str, reason: str) -> None:
    assert (field, reason) in [(problem.field, problem.reason) for problem in problems_of(_migration(term))]


def test_in_needs_a_value_and_exists_has_none() -> None:
    assert problems_of(_migration(_labelled("a", "In")))
    assert problems_of(_migration(_labelled("a", "Exists", "b")))
    assert problems_of(_migration(_labelled("a", "Gt", "many")))


def test_the_flat_selector_holds_labels() -> None:
    assert problems_of(_migration(addedNodeSelector={"zone": "b"})) == []
    (problem,) = problems_of(_migration(addedNodeSelector={"zone": "not a value"}))
    assert problem.field == "spec.addedNodeSelector"


def test_the_name_of_the_guest_must_be_a_name() -> None:
    (problem,) = problems_of(_migration(vmiName="My VM"))
    assert problem.field == "spec.vmiName"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["matchExpressions", "matchFields", "key", "operator", "values", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_what_is_accepted_can_be_read_and_nothing_crashes(term: Any) -> None:
    problems = problems_of(_migration(term))
    assert all(problem.field.startswith(TERM) for problem in problems)
    if not problems:
        msgspec.convert(added_term(term), NodeSelectorTerm)


@pytest.mark.parametrize("kind", ["kubevirt.io/v1/VirtualMachineInstanceMigration", "herder.dev/v1alpha1/MigrationReview"])
@pytest.mark.parametrize(
    ("term", "field"),
    [
        (_labelled("a", "In", *(f"v{number}" for number in range(513))), "matchExpressions[0].values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}] * 65}, "matchExpressions"),
        ({"matchFields": _named("a")["matchFields"] * 65}, "matchFields"),
    ],
)
def test_a_term_is_bounded_as_a_machines_own_affinity_is(kind: str, term: Json, field: str) -> None:
    """Every node is tested by every requirement, at each look."""
    api_version, _, name = kind.rpartition("/")
    document = {**_migration(term), "apiVersion": api_version, "kind": name}
    (problem,) = problems_of(document)
    assert (problem.field, problem.reason) == (f"{TERM}.{field}", TOO_MANY)
    assert "must have at most" in problem.message

"""The level of a node is what the seed says, however the cluster came to be what it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.api import labels
from herder.api.core import Node
from herder.rules.migratability import Count, Levels, counted
from tests.unit.rules.migratability.nodes import cpu, node, plainly_counted

FEATURES = ("aes", "avx", "avx2", "avx512f", "pcid")
MODELS = ("Haswell", "Skylake", "EPYC")


def levels(*nodes: Node) -> dict[str, int]:
    found = Levels()
    for one in nodes:
        found.put(one.name, counted(one))
    return found.all()


def test_equal_nodes_take_each_others_guests_and_none_counts_itself() -> None:
    assert levels(*(node(f"n{number}", cpu()) for number in range(4))) == {f"n{number}": 75 for number in range(4)}


def test_a_node_alone_has_level_0() -> None:
    assert levels(node("only", cpu())) == {"only": 0}


def test_a_guest_of_the_odd_node_cannot_leave_while_the_odd_node_takes_all_others() -> None:
    plain = cpu("Skylake", ["aes"])
    odd = cpu("Skylake", ["aes", "avx512f"])
    assert levels(node("a", plain), node("b", plain), node("odd", odd)) == {"a": 66, "b": 66, "odd": 0}


def test_a_guest_needs_its_model_among_those_that_the_other_node_offers() -> None:
    new = cpu("Skylake", models=["Haswell"])
    assert levels(node("old", cpu("Haswell")), node("new", new)) == {"old": 50, "new": 0}


def test_nodes_of_two_vendors_take_no_guests_from_each_other_unless_one_does_not_say() -> None:
    intel, amd, silent = (cpu("qemu64", vendor=vendor) for vendor in ("Intel", "AMD", ""))
    assert levels(node("a", intel), node("b", amd)) == {"a": 0, "b": 0}
    assert levels(node("a", intel), node("b", silent)) == {"a": 50, "b": 50}


def test_a_node_without_a_host_model_counts_among_the_nodes_and_takes_nobody() -> None:
    assert levels(node("a", cpu()), node("b", cpu()), node("plain", {})) == {"a": 33, "b": 33, "plain": 0}


def test_a_label_that_is_not_true_says_nothing() -> None:
    with_avx, without = cpu(required=["avx"]), cpu(required=["avx"]) | {labels.CPU_FEATURE + "avx": "false"}
    assert levels(node("a", with_avx), node("b", without)) == {"a": 0, "b": 50}


@pytest.mark.parametrize(
    "closed",
    [
        node("closed", cpu(), cordoned=True),
        node("closed", cpu(), ready="False"),
        node("closed", cpu(), ready="Unknown"),
        node("closed", cpu() | {labels.SCHEDULABLE: "false"}),
    ],
)
def test_a_node_that_guests_cannot_be_started_on_has_no_level_and_counts_for_nobody(closed: Node) -> None:
    assert levels(node("a", cpu()), node("b", cpu()), closed) == {"a": 50, "b": 50}


def test_the_count_is_kept_in_whole_numbers() -> None:
    found = Levels()
    for number in range(3):
        found.put(f"n{number}", counted(node(f"n{number}", cpu())))
    assert found.count("n0") == Count(2, 3)
    for _ in range(1000):
        found.put("n3", counted(node("n3", cpu("EPYC"))))
        found.put("n3", None)
    assert found.count("n0") == Count(2, 3)


def test_whether_anything_changed_is_said() -> None:
    found = Levels()
    assert found.put("a", counted(node("a", cpu())))
    assert not found.put("a", counted(node("a", cpu() | {"zone": "north"})))
    assert not found.put("b", None)
    assert found.put("a", None)


def test_names_that_no_node_has_any_more_are_forgotten() -> None:
    found = Levels()
    found.put("stays", counted(node("stays", cpu())))
    for number in range(2000):
        found.put("changes", counted(node("changes", cpu(required=[f"feature-{number}"]))))
    assert found.all() == {"stays": 50, "changes": 0}
    assert found.classes == 2
    assert found.names < 300


some_cpu = st.builds(
    lambda model, required, also, models, vendor: cpu(model, sorted(required), also=sorted(also), models=models, vendor=vendor),
    st.sampled_from(MODELS),
    st.sets(st.sampled_from(FEATURES)),
    st.sets(st.sampled_from(FEATURES)),
    st.lists(st.sampled_from(MODELS), max_size=2),
    st.sampled_from(("Intel", "AMD", "")),
)
some_node = st.builds(
    lambda name, written, ready, cordoned, schedulable, model: node(
        name,
        {**(written if model else {}), **({labels.SCHEDULABLE: schedulable} if schedulable else {})},
        ready=ready,
        cordoned=cordoned,
    ),
    st.sampled_from([f"n{number}" for number in range(8)]),
    some_cpu,
    st.sampled_from(("True", "True", "True", "False")),
    st.sampled_from((False, False, False, True)),
    st.sampled_from(("", "true", "true", "false")),
    st.sampled_from((True, True, True, False)),
)
# A node that came, was cordoned, relabelled or silent for a while (another state of its name), or went (only its name).
events = st.lists(st.one_of(some_node, st.sampled_from([f"n{number}" for number in range(8)])), max_size=40)


@settings(deadline=None)
@given(events)
def test_any_sequence_of_events_leads_to_what_a_recount_says(happened: list[Node | str]) -> None:
    found, there = Levels(), dict[str, Node]()
    for event in happened:
        if isinstance(event, str):
            there.pop(event, None)
            found.put(event, None)
        else:
            there[event.name] = event
            found.put(event.name, counted(event))
        profiles = {name: profile for name, one in there.items() if (profile := counted(one)) is not None}
        assert found.all() == plainly_counted(there.values()) == Levels(profiles).all()

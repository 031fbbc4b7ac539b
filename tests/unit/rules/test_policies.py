"""Which policy applies: the seed's own example in any order, and generated policies against the plain reading of its words."""

import random
from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from herder.api.kinds import MigrationPolicy
from herder.rules.configuration import cluster_migration_settings
from herder.rules.policies import Policies

Json = dict[str, Any]
INSTANCE = {"size": "small", "os": "fedora", "gpu": "nvidia"}
NAMESPACE = {"priority": "high", "bandwidth": "medium", "hpc-workload": "true"}


def policy(name: str, instance: Json | None = None, namespace: Json | None = None, made: str = "", **spec: Any) -> MigrationPolicy:
    given_ = (("virtualMachineInstanceSelector", instance), ("namespaceSelector", namespace))
    selectors = {field: value for field, value in given_ if value is not None}
    metadata = {"name": name, **({"creationTimestamp": made} if made else {})}
    return msgspec.convert({"metadata": metadata, "spec": {**spec, "selectors": selectors}}, MigrationPolicy)


# As the seed lists them, high to low; the names say nothing about the order.
SEVEN = [
    policy("g", {"size": "small", "gpu": "nvidia"}, {"priority": "high", "bandwidth": "medium"}),
    policy("f", {"size": "small", "gpu": "nvidia"}, {"priority": "high", "hpc-workload": True}),
    policy("e", {"size": "small", "gpu": "nvidia"}, {"priority": "high"}),
    policy("d", {"size": "small"}, {"priority": "high", "hpc-workload": True}),
    policy("c", {"gpu": "nvidia"}, {"priority": "high"}),
    policy("b", {"gpu": "nvidia"}, {}),
    policy("a", {"gpu": "intel"}, {"priority": "high"}),
]


def names(policies: Iterable[MigrationPolicy]) -> list[str]:
    return [one.name for one in policies]


@given(st.permutations(SEVEN))
def test_the_seven_policies_of_the_seed_come_out_in_its_order_however_they_came(shuffled: list[MigrationPolicy]) -> None:
    policies = Policies(shuffled)
    assert names(policies.matching(INSTANCE, NAMESPACE)) == ["g", "f", "e", "d", "c", "b"]
    assert [row.name for row in policies.explain(INSTANCE, NAMESPACE)] == ["g", "f", "e", "d", "c", "b", "a"]
    for left in range(6):
        assert policies.chosen(INSTANCE, NAMESPACE).name == "gfedcb"[left]
        policies.remove("gfedcb"[left])
    assert policies.chosen(INSTANCE, NAMESPACE).name is None


def test_who_wins_says_why() -> None:
    policies = Policies(SEVEN)
    said = []
    for name in "gfedc":
        said.append(policies.chosen(INSTANCE, NAMESPACE).why)
        policies.remove(name)
    assert said == [
        "g matches 4 labels (bandwidth, gpu, priority, size) and goes before f: both match 4 labels, and of their sorted keys"
        " bandwidth comes before gpu",
        "f matches 4 labels (gpu, hpc-workload, priority, size) and goes before e: 4 matching labels are more than 3",
        "e matches 3 labels (gpu, priority, size) and goes before d: both match 3 labels, and of their sorted keys gpu comes before"
        " hpc-workload",
        "d matches 3 labels (hpc-workload, priority, size) and goes before c: 3 matching labels are more than 2",
        "c matches 2 labels (gpu, priority) and goes before b: 2 matching labels are more than 1",
    ]
    assert policies.chosen(INSTANCE, NAMESPACE).why == "b matches 1 label (gpu), and no other policy matches"
    policies.remove("b")
    assert policies.chosen(INSTANCE, NAMESPACE).why == "no MigrationPolicy matches (there are 1): the cluster's settings apply"
    assert Policies().chosen({}, {}).why == "there are no MigrationPolicies: the cluster's settings apply"


def test_of_the_same_keys_more_labels_of_the_instance_win_and_then_the_name() -> None:
    crossed = policy("b", {"x": "1"}, {"y": "1"}), policy("a", {"y": "1"}, {"x": "1"})
    policies = Policies([*crossed, policy("c", {"x": "1", "y": "1"})])
    labels = {"x": "1", "y": "1"}
    assert names(policies.matching(labels, labels)) == ["c", "a", "b"]
    assert policies.chosen(labels, labels).why.endswith(
        "both match 2 labels with the same keys, 2 of them on the instance against 1"
    )
    policies.remove("c")
    assert policies.chosen(labels, labels).why.endswith("both match 2 labels with the same keys; a comes first by name")


def test_of_two_with_the_same_selectors_only_the_older_is_used_and_the_other_says_so() -> None:
    """Admission refuses the second, unless both come together or nobody is asked."""
    old, young = (policy(name, {"x": "1"}, made=f"2026-01-0{day}T00:00:00Z") for name, day in (("z", 1), ("a", 2)))
    for policies in (Policies([old, young]), Policies([young, old])):
        assert names(policies.matching({"x": "1"}, {})) == ["z"]
        said = "MigrationPolicy z has the same selectors and is older: add a label, or change z"
        assert policies.unused("a") == ("DuplicateSelectors", said)
        assert [(row.name, row.why) for row in policies.explain({"x": "1"}, {})][1] == ("a", said)
        assert policies.unused("z") is None
        policies.remove("z")
        assert (names(policies.matching({"x": "1"}, {})), policies.unused("a")) == (["a"], None)


def test_explain_says_of_every_policy_what_is_missing() -> None:
    policies = Policies([*SEVEN[4:], policy("none"), policy("odd", {"a": 1.5})])
    rows = {row.name: row for row in policies.explain({"gpu": "nvidia"}, {"zone": "a"})}
    assert rows["b"].applies and rows["b"].labels == 1
    assert rows["c"].why == "the namespace has no label priority (wanted: high)"
    assert rows["a"].why == "the instance has gpu=nvidia (wanted: intel); the namespace has no label priority (wanted: high)"
    assert rows["none"].why.startswith("a policy without selectors applies to no machine")
    assert rows["odd"].why == "spec.selectors: the value of a is no string: write it in quotes"
    second = policies.explain(INSTANCE, NAMESPACE)[1]
    assert second.matches and not second.applies
    assert second.why == "matches 1 label (gpu), but c goes before it: 2 matching labels are more than 1"


def test_a_policy_that_is_changed_is_no_longer_found_by_what_it_said_before() -> None:
    policies = Policies([policy("a", {"x": "1"})])
    policies.add(policy("a", {"x": "2"}))
    assert (names(policies.matching({"x": "1"}, {})), names(policies.matching({"x": "2"}, {}))) == ([], ["a"])
    policies.add(policy("a"))
    assert (names(policies.matching({"x": "2"}, {})), len(policies)) == ([], 1)


def test_the_same_selectors_are_found_whatever_their_order_and_spelling() -> None:
    policies = Policies([policy("a", {"x": True, "y": "1"}, {"z": 1})])
    assert policies.same_selectors(policy("b", {"y": "1", "x": "true"}, {"z": "1"})) == ["a"]
    assert policies.same_selectors(policy("a", {"y": "1", "x": "true"}, {"z": "1"})) == []
    assert policies.same_selectors(policy("b", {"y": "1"}, {"z": "1"})) == []
    assert policies.same_selectors(policy("b", {"z": "1"}, {"y": "1", "x": "true"})) == []


def test_the_chosen_policy_is_what_stands_in_the_status() -> None:
    policies = Policies([policy("a", {"x": "1"}, allowPostCopy=True)])
    applied = policies.chosen({"x": "1"}, {}).applied()
    assert (applied.name, applied.matched_labels) == ("a", 1)
    assert policies.chosen({}, {}).applied().name == ""
    long = {f"{number:0>63}": "x" for number in range(64)}
    assert len(Policies([policy("long", long, long)]).chosen(long, long).applied().why or "") == 4096
    cluster = cluster_migration_settings(None)
    assert policies.effective(cluster, {"x": "1"}, {}).allow_post_copy is True
    assert policies.effective(cluster, {}, {}).allow_post_copy is False


# --- against the plain reading of the seed ---------------------------------------------------------------------------------------

LABELS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "true"]), max_size=5)
SELECTOR = st.one_of(st.none(), st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "true", True, 1]), max_size=3))


def _text(value: Any) -> str:
    return "true" if value is True else str(value)


def reference(policies: list[MigrationPolicy], instance: Json, namespace: Json) -> list[str]:
    """Word by word: count, then sorted keys, then labels of the instance, then the name. Of the same selectors the oldest; all are
    equally old here, and then the name decides."""
    found: list[tuple[Any, ...]] = []
    seen: list[Any] = []
    for one in policies:
        selectors = one.spec.selectors
        assert selectors is not None
        own = selectors.virtual_machine_instance_selector or {}
        around = selectors.namespace_selector or {}
        holds = all(instance.get(key) == _text(value) for key, value in own.items())
        holds = holds and all(namespace.get(key) == _text(value) for key, value in around.items())
        same = [{key: _text(value) for key, value in labels.items()} for labels in (own, around)]
        if holds and (own or around) and same not in seen:
            seen.append(same)
            found.append((-len(own) - len(around), sorted([*own, *around]), -len(own), one.name))
    return [one[-1] for one in sorted(found)]


@given(st.lists(st.tuples(SELECTOR, SELECTOR), max_size=30), LABELS, LABELS, st.randoms(use_true_random=False))
def test_generated_policies_agree_with_the_plain_reading(
    selectors: list[tuple[Json | None, Json | None]], instance: Json, namespace: Json, chance: random.Random
) -> None:
    made = [policy(f"p{number:02}", own, around) for number, (own, around) in enumerate(selectors)]
    policies = Policies(made)
    # Some go, some come again: the index forgets nothing and keeps nothing.
    for one in chance.sample(made, len(made) // 2):
        policies.remove(one.name)
        if chance.random() < 0.5:
            policies.add(one)
        else:
            made = [other for other in made if other.name != one.name]
    expected = reference(made, instance, namespace)
    assert names(policies.matching(instance, namespace)) == expected
    assert policies.chosen(instance, namespace).name == (expected[0] if expected else None)
    rows = policies.explain(instance, namespace)
    assert sorted(row.name for row in rows) == sorted(names(made))
    assert [row.name for row in rows if row.matches] == expected

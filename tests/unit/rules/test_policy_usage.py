"""How many instances each policy applies to: always what counting anew would find, without counting anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.rules.policies import Counts, Policies, Usage
from herder.rules.policies.order import Labels, Pair, Ranked
from tests.unit.rules.test_policies import LABELS, SELECTOR, policy

NAMES = st.sampled_from(["p1", "p2", "p3", "p4"])
NAMESPACES = st.sampled_from(["n1", "n2"])
STEPS = st.one_of(
    st.tuples(st.just("policy"), NAMES, SELECTOR, SELECTOR),
    st.tuples(st.just("no policy"), NAMES),
    st.tuples(st.just("namespace"), NAMESPACES, LABELS),
    st.tuples(st.just("instance"), NAMESPACES, st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), LABELS)),
)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=25))
def test_the_counts_are_what_counting_anew_finds_and_every_change_is_told(steps: list[tuple[Any, ...]]) -> None:
    usage = Usage()
    policies: dict[str, Any] = {}
    namespaces: dict[str, Labels] = {}
    instances: dict[tuple[str, str], Labels] = {}
    shown: dict[str, Any] = {}
    for step in steps:
        match step:
            case ("policy", name, own, around):
                policies[name] = policy(name, own, around)
                usage.add(policies[name])
            case ("no policy", name):
                policies.pop(name, None)
                usage.remove(name)
            case ("namespace", name, labels):
                namespaces[name] = labels
                usage.put_namespace(name, labels)
            case (_, namespace, name, labels):
                instances.pop((namespace, name), None)
                if labels is not None:
                    instances[namespace, name] = labels
                usage.put_instance((namespace, name), labels)
            case _:
                raise AssertionError(step)
        fresh = Policies(policies.values())
        matched = [[one.name for one in fresh.matching(own, namespaces.get(name[0], {}))] for name, own in instances.items()]
        expected = {
            name: (Counts(sum(one[:1] == [name] for one in matched), sum(name in one for one in matched)), fresh.unused(name))
            for name in policies
        }
        assert {name: (usage.counts(name), usage.unused(name)) for name in policies} == expected
        told = usage.take_changed()
        written_anyway = step[1]  # a policy that is written is looked at by itself
        assert {name for name in expected if name in shown and expected[name] != shown[name]} <= {*told, written_anyway}
        shown = expected


def test_all_with_the_same_selectors_are_told_when_another_one_of_them_is_used() -> None:
    usage = Usage()
    for name in ("a", "b", "c"):
        usage.add(policy(name, {"x": "1"}))
    usage.take_changed()
    usage.remove("a")
    unused = usage.unused("c")
    assert unused is not None and "MigrationPolicy b has the same selectors" in unused.why
    assert usage.take_changed() == ["a", "b", "c"]


class Asked(Usage):
    """Counts what is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = 0
        self.candidates = 0

    def _matching(self, instance: Labels, namespace: Labels, most: int) -> list[Ranked]:
        self.questions += 1
        return super()._matching(instance, namespace, most)

    def _is_matched(self, name: tuple[str, str], own: list[Pair], namespaces: set[str] | None) -> bool:
        self.candidates += 1
        return super()._is_matched(name, own, namespaces)


def test_five_thousand_instances_and_two_hundred_policies_cost_what_changes_and_no_more() -> None:
    usage = Asked()
    for number in range(50):
        usage.put_namespace(f"n{number}", {"kubernetes.io/metadata.name": f"n{number}", "stage": "prod"})
    for number in range(5000):
        usage.put_instance((f"n{number % 50}", f"vm-{number}"), {"app": f"a{number % 200}", "os": "linux"})
    for number in range(200):
        usage.add(policy(f"p{number}", {"app": f"a{number}", "os": "linux"}, {"stage": "prod"}))
    # One question for each instance, and of each policy only those that have its rarest label.
    assert (usage.questions, usage.candidates) == (5000, 5000)
    assert [usage.counts(f"p{number}") for number in (0, 199)] == [Counts(25, 25), Counts(25, 25)]
    usage.take_changed()
    for _ in range(1000):
        usage.put_instance(("n0", "vm-0"), {"app": "a0", "os": "linux"})  # says what it has said before, as nodes do
    assert (usage.questions, usage.candidates, usage.take_changed()) == (5000, 5000, [])
    usage.put_instance(("n0", "vm-0"), {"app": "a1", "os": "linux"})
    assert (usage.questions, usage.candidates, usage.take_changed()) == (5001, 5000, ["p0", "p1"])
    usage.remove("p7")
    assert (usage.questions, usage.candidates) == (5001, 5000)
    usage.put_namespace("n1", {"kubernetes.io/metadata.name": "n1"})
    assert usage.questions == 5001 + 100, "those of this namespace"

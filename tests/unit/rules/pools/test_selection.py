"""Which machines go first."""

from typing import Any

import msgspec
import pytest

from herder.api.kinds.pool import SelectionPolicy
from herder.rules.pools.member import Member
from herder.rules.pools.selection import Inputs, ordered
from herder.rules.pools.selection.inputs import NodeState

from .things import A, B, broken, halted, member, name_of, starting

NODES = {"node-1": NodeState({"zone": "a"}), "node-2": NodeState({"zone": "b"})}
INPUTS = Inputs(NODES, name_of(A))


def order(*members: Member, **policy: Any) -> list[int | None]:
    return [one.number for one in ordered(members, msgspec.convert(policy, SelectionPolicy) if policy else None, INPUTS)]


LEAST_DISRUPTION = [halted(5), broken(4), starting(3), member(2, B), member(1)]


@pytest.mark.parametrize("shift", range(5))
def test_random_takes_those_first_that_are_missed_least(shift: int) -> None:
    assert order(*LEAST_DISRUPTION[shift:], *LEAST_DISRUPTION[:shift]) == [5, 4, 3, 2, 1]


def test_a_machine_is_outdated_by_what_runs_and_not_by_what_it_was_told() -> None:
    assert order(member(1), member(2, A, on=B)) == [2, 1]


def test_random_is_not_by_number_and_yet_the_same_each_time() -> None:
    many = [member(number) for number in range(1, 30)]
    assert order(*many) == order(*reversed(many))
    assert order(*many) != sorted(order(*many), key=lambda number: number or 0)


def test_equal_creation_times_are_ordered_by_the_lower_number() -> None:
    same = [member(number, created=5.0) for number in (3, 1, 2)]
    assert order(*same, basePolicy="Oldest") == order(*same, basePolicy="Newest") == [1, 2, 3]


def test_oldest_and_newest_go_by_when_machines_were_made() -> None:
    ages = [member(number, created=float(number)) for number in (2, 3, 1)]
    assert order(*ages, basePolicy="Oldest") == [1, 2, 3]
    assert order(*ages, basePolicy="Newest") == [3, 2, 1]


def test_ordered_policies_are_priorities_and_no_filters() -> None:
    first = {"labelSelector": {"matchLabels": {"important": "no"}}}
    second = {"nodeSelector": {"zone": "b"}}
    members = [member(1), member(2, node="node-2"), member(3, labels={"important": "no"}), member(4, node="node-2")]
    assert order(*members, orderedPolicies=[first, second], basePolicy="Oldest") == [3, 2, 4, 1]
    assert order(*members, orderedPolicies=[second, first], basePolicy="Oldest") == [2, 4, 3, 1]


def test_a_selector_that_cannot_be_read_fits_nobody() -> None:
    wrong = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}
    assert order(member(1), member(2), orderedPolicies=[wrong], basePolicy="Oldest") == [1, 2]

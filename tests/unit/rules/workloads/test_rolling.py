"""The arithmetic of a rolling update: whatever order pods get ready in, there are never too few and never too many."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from herder.api.core.workloads import DeploymentStrategy, RollingUpdateDeployment
from herder.rules.workloads.rolling import Limits, Share, limits_of, new_size, next_sizes
from herder.rules.workloads.scaling import scaled_sizes
from tests.examples import examples


def rolling(surge: int | str | None, unavailable: int | str | None) -> DeploymentStrategy:
    return DeploymentStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    )


@pytest.mark.parametrize(
    ("strategy", "wanted", "limits"),
    [
        (rolling("25%", "25%"), 10, Limits(10, 3, 2)),
        (rolling("25%", "25%"), 1, Limits(1, 1, 0)),
        (rolling(0, "25%"), 3, Limits(3, 0, 1)),
        (rolling("0%", "1%"), 10, Limits(10, 0, 1)),
        (rolling(3, 9), 2, Limits(2, 3, 2)),
        (rolling(1, 1), 0, Limits(0, 1, 0)),
        (rolling(None, None), 4, Limits(4, 0, 1)),
        (DeploymentStrategy(type="Recreate"), 4, Limits(4, 0, 0)),
    ],
)
def test_shares_are_rounded_so_that_something_can_move(strategy: DeploymentStrategy, wanted: int, limits: Limits) -> None:
    assert limits_of(strategy, wanted) == limits


def test_the_new_set_grows_into_the_room_that_there_is() -> None:
    limits = Limits(10, 3, 2)
    assert new_size(limits, Share("new", 0), [Share("old", 10, 10, 10)]) == 3
    assert new_size(limits, Share("new", 3, 3), [Share("old", 8, 8, 8)]) == 5
    assert new_size(limits, Share("new", 3, 3), [Share("old", 8, 10, 10)]) == 3, "two of the old ones are still there"
    assert new_size(limits, Share("new", 12, 12, 12), []) == 10


def test_old_pods_that_are_not_available_go_first() -> None:
    limits = Limits(10, 3, 2)
    broken = Share("broken", 5, 5, 0, created=2.0)
    good = Share("good", 8, 8, 8, created=1.0)
    assert next_sizes(limits, Share("new", 0), [good, broken]) == {"broken": 0}


def test_a_set_that_shrinks_already_is_not_counted_as_what_it_was() -> None:
    limits = Limits(4, 1, 1)
    assert next_sizes(limits, Share("new", 2, 2, 0), [Share("old", 3, 4, 4)]) == {}


def test_a_size_changed_in_the_middle_is_shared_as_kubernetes_shares_it() -> None:
    new, old = Share("new", 5, created=2.0), Share("old", 8, created=1.0)
    before = {"new": 13, "old": 13}
    grown = scaled_sizes(Limits(15, 3, 2), new, [old], before=before, saturated=False, rolling=True)
    assert grown == {"old": 11, "new": 7}
    gone = scaled_sizes(Limits(0, 3, 0), new, [old], before=before, saturated=False, rolling=True)
    assert gone == {"old": 0, "new": 0}


def test_one_set_alone_gets_the_whole_size() -> None:
    alone = Share("new", 3)
    assert scaled_sizes(Limits(5), alone, [Share("old", 0)], before={}, saturated=False, rolling=True) == {"new": 5}
    assert scaled_sizes(
        Limits(5), None, [Share("a", 0, created=1.0), Share("b", 0, created=2.0)], before={}, saturated=False, rolling=True
    ) == {"b": 5}
    assert scaled_sizes(Limits(3), alone, [Share("old", 2)], before={}, saturated=True, rolling=True) == {"old": 0}


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(0, 60), st.integers(0, 10), st.integers(1, 80))
def test_whatever_is_shared_is_all_that_there_may_be(sizes: list[int], wanted: int, surge: int, before: int) -> None:
    shares = [Share(f"s{number}", size, created=float(number)) for number, size in enumerate(sizes)]
    limits = Limits(wanted, surge, 0)
    found = scaled_sizes(
        limits, shares[-1], shares[:-1], before=dict.fromkeys((one.name for one in shares), before), saturated=False, rolling=True
    )
    assert all(size >= 0 for size in found.values())
    assert sum(found.values()) == (limits.most if wanted else 0)


class _Set(msgspec.Struct):
    """A ReplicaSet with its pods: True for each that is available."""

    name: str
    created: float
    size: int = 0
    pods: list[bool] = msgspec.field(default_factory=lambda: list[bool]())
    # As its status was last written.
    present: int = 0
    available: int = 0

    def share(self) -> Share:
        return Share(self.name, self.size, self.present, self.available, self.created)


class Rollout(RuleBasedStateMachine):
    """Whoever keeps the sets, the nodes and people do something in any order. Pods that are available stay so, but for those that
    are ended."""

    @initialize(wanted=st.integers(1, 12), surge=st.integers(0, 5), unavailable=st.integers(0, 5))
    def begin(self, wanted: int, surge: int, unavailable: int) -> None:
        assume(surge or unavailable)
        self.limits = Limits(wanted, surge, min(unavailable, wanted))
        first = _Set("s0", 0.0, wanted, [True] * wanted, wanted, wanted)
        self.sets = [first]

    @property
    def new(self) -> _Set:
        return self.sets[-1]

    @rule()
    def deploy(self) -> None:
        """The Deployment's next step."""
        sizes = next_sizes(self.limits, self.new.share(), [one.share() for one in self.sets[:-1]])
        for one in self.sets:
            one.size = sizes.get(one.name, one.size)

    @rule(pick=st.data())
    def keep(self, pick: st.DataObject) -> None:
        """A set makes or ends pods, those that are not available first, and says what it has."""
        one = pick.draw(st.sampled_from(self.sets))
        one.pods.sort()
        del one.pods[: max(0, len(one.pods) - one.size)]
        one.pods += [False] * (one.size - len(one.pods))
        self._say(one)

    @rule(pick=st.data())
    def say(self, pick: st.DataObject) -> None:
        """A status that follows what became of the pods."""
        self._say(pick.draw(st.sampled_from(self.sets)))

    def _say(self, one: _Set) -> None:
        one.present, one.available = len(one.pods), sum(one.pods)

    @rule(pick=st.data())
    def get_ready(self, pick: st.DataObject) -> None:
        one = pick.draw(st.sampled_from(self.sets))
        if False in one.pods:
            one.pods[one.pods.index(False)] = True

    @precondition(lambda self: len(self.sets) < 5)
    @rule()
    def change_template(self) -> None:
        self.sets.append(_Set(f"s{len(self.sets)}", float(len(self.sets))))

    @rule()
    def roll_back(self) -> None:
        self.sets = [*self.sets[1:], self.sets[0]]

    @invariant()
    def never_too_few(self) -> None:
        if hasattr(self, "sets"):
            assert sum(sum(one.pods) for one in self.sets) >= self.limits.fewest

    @invariant()
    def never_too_many(self) -> None:
        if hasattr(self, "sets"):
            assert sum(len(one.pods) for one in self.sets) <= self.limits.most
            assert sum(one.size for one in self.sets) <= self.limits.most

    def teardown(self) -> None:
        """Left alone, it comes to its end."""
        if not hasattr(self, "sets"):
            return
        for _ in range(200):
            for one in self.sets:
                one.pods.sort()
                del one.pods[: max(0, len(one.pods) - one.size)]
                one.pods = [True] * one.size
                self._say(one)
            self.deploy()
        assert [one.size for one in self.sets] == [*([0] * (len(self.sets) - 1)), self.limits.wanted]


TestRollout = Rollout.TestCase
TestRollout.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)

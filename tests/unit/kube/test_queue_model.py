"""Any sequence of what can be done to a queue, against what it should do in the simplest words."""

from __future__ import annotations

import asyncio

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from herder.kube.queue import Queue
from herder.kube.resources import Key
from tests.examples import examples
from tests.unit.kube.virtual import VirtualLoop, VirtualWorld

KEYS = st.sampled_from([Key("n", name) for name in "abcd"])


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.queue = self.runner.run(self._make())
        self.line: list[Key] = []
        # How many of them go first, and which shall, once they are no longer worked on.
        self.ahead = 0
        self.hurried: list[Key] = []
        self.working: list[Key] = []
        self.again: list[Key] = []
        self.due: dict[Key, float] = {}
        self.now = 0.0

    async def _make(self) -> Queue:
        return Queue(VirtualWorld())

    def teardown(self) -> None:
        self.runner.close()

    def _do(self, act: str, *arguments: object) -> None:
        async def inside() -> None:
            getattr(self.queue, act)(*arguments)

        self.runner.run(inside())

    def _added(self, key: Key) -> None:
        if key in self.working:
            if key not in self.again:
                self.again.append(key)
        elif key not in self.line:
            self.line.append(key)

    @rule(key=KEYS)
    def add(self, key: Key) -> None:
        self._do("add", key)
        self._added(key)

    @rule(key=KEYS)
    def add_ahead(self, key: Key) -> None:
        self._do("add_ahead", key)
        if key in self.line[: self.ahead] or key in self.hurried:
            return
        self._added(key)
        if key in self.working:
            self.hurried.append(key)
        else:
            self.line.remove(key)
            self._enter(key, ahead=True)

    def _enter(self, key: Key, *, ahead: bool) -> None:
        if ahead:
            self.line.insert(self.ahead, key)
            self.ahead += 1
        else:
            self.line.append(key)

    @rule(key=KEYS, seconds=st.integers(1, 20))
    def add_after(self, key: Key, seconds: int) -> None:
        self._do("add_after", key, seconds)
        if self.now + seconds < self.due.get(key, float("inf")):
            self.due.pop(key, None)
            self.due[key] = self.now + seconds

    @precondition(lambda self: self.line)
    @rule()
    def get(self) -> None:
        assert self.runner.run(self.queue.get()) == self.line[0]
        self.working.append(self.line.pop(0))
        self.ahead = max(0, self.ahead - 1)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.working))
        self._do("done", key)
        self.working.remove(key)
        if key in self.again:
            self.again.remove(key)
            self._enter(key, ahead=key in self.hurried)
            self.hurried = [one for one in self.hurried if one != key]

    @rule(seconds=st.integers(1, 25))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.runner.run(asyncio.sleep(seconds + 1e-6))
        # In the order of their times; of those with the same time the one that got it first.
        for key in sorted((key for key in self.due if self.due[key] <= self.now), key=lambda key: self.due[key]):
            del self.due[key]
            self._added(key)

    @invariant()
    def the_same_wait(self) -> None:
        assert len(self.queue) == len(self.line)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=examples(50), stateful_step_count=30, deadline=None)

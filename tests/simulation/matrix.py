"""Every write that a controller makes × every fault: the same end, nothing made or deleted twice. One line for each controller:

test_matrix = matrix_for(Scenario("flocks", kinds=(FLOCK,), controllers=(start_flocks,), steps=(...)))
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
import pytest

from herder.api.registry import KindInfo
from herder.kube.client import Client
from herder.kube.kit import Start
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.faults import ON_WRITES, Fault, OnWrite
from tests.simulation.loop import Stuck
from tests.simulation.machine import Machine
from tests.simulation.outcome import Outcome, compared, differences, named, stored_objects, unobserved
from tests.simulation.simulation import QUIET, Simulation, Wedged, simulate

Step = Callable[[Client], Awaitable[None]]
# From so many on, those of `make simulation`, no write is left out: fewer would have to take too many each.
MANY_SEEDS = 20
# Says what is wrong with the end of a run; nothing where it is what people wanted.
Expect = Callable[[dict[str, bytes]], str]
# Looks at a run from its beginning, and finds what was wrong on the way.
Watch = Callable[[Simulation], list[str]]
MakeNode = Callable[[Simulation, str], Machine]


class Scenario(msgspec.Struct, frozen=True):
    """What people do to some objects, one step after the world has come to rest from the other."""

    name: str
    kinds: tuple[KindInfo, ...]
    controllers: tuple[Start, ...]
    steps: tuple[Step, ...]
    expect: Expect = lambda _: ""
    nodes: int = 0
    # Where those keep volumes; none without.
    storage: str = ""
    quiet: float = QUIET
    # Of these more or fewer may be made and deleted: who tries again and again tries more often while somebody is away.
    tried: frozenset[str] = frozenset()
    watch: Watch = lambda _: []
    # So many of the first steps only prepare: what befalls their writes is another scenario's story.
    prepared: int = 0
    # Makes a node of this name; an ordinary one where it is not said.
    node: MakeNode | None = None


def play(scenario: Scenario, seed: int, faults: Sequence[Fault] = (), *, traced: bool = False, role: str = CONTROLLERS) -> Outcome:
    """One run, from an empty cluster to rest. `role` is whose writes are of interest."""

    async def main(simulation: Simulation) -> Outcome:
        found = scenario.watch(simulation)
        for fault in faults:
            fault.install(simulation)
        await simulation.started()
        first = frozenset(stored_objects(simulation.server))
        prepared = await _live(simulation, scenario, role)
        outcome = _outcome(simulation, scenario, faults, first, role)
        return msgspec.structs.replace(outcome, problems=[*found, *outcome.problems], prepared=prepared)

    try:
        return simulate(seed, main, scenario.kinds, traced=traced)
    except (Wedged, Stuck) as error:
        return Outcome({}, Counter(), Counter(), [], [str(error)])


async def _live(simulation: Simulation, scenario: Scenario, role: str) -> int:
    """How many writes the role had made when all was prepared."""
    processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.controllers) for letter in "ab"]
    await simulation.started(*processes, *nodes_of(simulation, scenario))
    person = simulation.client()
    prepared = 0
    for number, step in enumerate(scenario.steps):
        if number == scenario.prepared:
            prepared = len(simulation.wire(role).writes) if number else 0
        await person.wait_until_ready()
        await step(person)
        await simulation.at_rest(scenario.quiet)
    await person.wait_until_ready()
    return prepared


def nodes_of(simulation: Simulation, scenario: Scenario) -> list[Machine]:
    names = [f"node-{number + 1}" for number in range(scenario.nodes)]
    make = scenario.node or functools.partial(node, storage=scenario.storage)
    return [make(simulation, name) for name in names]


def _outcome(simulation: Simulation, scenario: Scenario, faults: Sequence[Fault], first: frozenset[str], role: str) -> Outcome:
    left = stored_objects(simulation.server, first)
    objects = compared(left)
    wrong = [scenario.expect(left), *(fault.aftermath(left) for fault in faults)]
    wrong += unobserved(objects, frozenset(info.crd_name for info in scenario.kinds))
    wrong += simulation.trace.errors()
    server, writes = simulation.server, simulation.wire(role).writes
    made, gone = (Counter(name for name in map(named, names) if name not in scenario.tried) for names in (server.made, server.gone))
    return Outcome(objects, made, gone, list(writes), [one for one in wrong if one], simulation.trace.lines)


def complaints(
    scenario: Scenario, seed: int, kinds: Sequence[type[OnWrite]] = ON_WRITES, role: str = CONTROLLERS, every: int = 1
) -> Iterator[str]:
    """All that is wrong with a controller; nothing where each fault at each write leads to the same end. `every`: only at each
    so-manieth write, at others for the next fault and the next seed."""
    clean = _without_faults(scenario, seed, role)
    yield from (f"without any fault: {one}" for one in clean.problems)
    for kind in kinds:
        for number in struck(kind, len(clean.writes), seed, every):
            if number <= clean.prepared:
                continue
            fault = kind(role, number)
            for problem in differences(clean, play(scenario, seed, [fault], role=role)):
                yield f"{fault} at {clean.writes[number - 1]}: {problem}"


def struck(kind: type[OnWrite], writes: int, seed: int, every: int) -> range:
    """Numbers of the writes that a fault befalls, from 1."""
    return range(1 + (seed + ON_WRITES.index(kind)) % every, writes + 1, every)


def stride(every: int, seeds: int) -> int:
    return min(every, seeds) if seeds >= MANY_SEEDS else every


@functools.cache
def _without_faults(scenario: Scenario, seed: int, role: str) -> Outcome:
    return play(scenario, seed, role=role)


def matrix_for(
    scenario: Scenario, role: str = CONTROLLERS, every: int = 1, but: Sequence[type[OnWrite]] = ()
) -> Callable[[type[OnWrite], int, int], None]:
    """A test for each fault, at every write. `python -m tests.simulation --fault ...` shows what happened in one of them. `but`:
    faults that may well lead to another end. Of a scenario that is too long for every write, one fault is quick enough for
    every day: another one for each scenario. Where many seeds are played (`make simulation`), each takes so many that together they
    leave out no write."""
    faults = [fault for fault in ON_WRITES if fault not in but]
    quick = faults if every == 1 else [faults[len(scenario.name) % len(faults)]]
    listed = [pytest.param(fault, marks=() if fault in quick else pytest.mark.slow, id=fault.__name__) for fault in faults]

    @pytest.mark.parametrize("fault", listed)
    def test_matrix(fault: type[OnWrite], seed: int, seeds: int) -> None:
        found = list(complaints(scenario, seed, [fault], role, stride(every, seeds)))
        assert not found, "\n".join(found[:10])

    return test_matrix

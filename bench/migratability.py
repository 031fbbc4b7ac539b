"""Levels of 5,000 nodes with 1,000 features each: all of them, after one node's event, and what joining costs in writes.

The alternative is what one writes first: the features of each node as Python sets, compared pair by pair as the seed says it, and
for one event with all others. Pair by pair is 25 million comparisons: a part of them is measured, and scaled up.

Times are CPU times, because nothing is waited for. Joining runs in virtual time, with the embedded engine and the real
controller in one process: 5,000 nodes within a minute, of ten kinds in random order, or one kind after the other.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Iterable

from bench.report import LESS, Report, Row, at_most
from bench.sides import Options
from herder.api import labels
from herder.api.registry import SETTINGS
from herder.controllers.migratability import Migratability
from herder.kube.resources import NODES
from herder.rules.migratability import Levels, profile_of
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.simulation import Simulation, simulate

NAME = "migratability"
FEATURES = 1000
SETS = "sets, pair by pair"
JOIN_SECONDS = 60.0
SEED = 1
Labels = dict[str, str]


def run(options: Options) -> Report:
    nodes = options.pick(5000, 500)
    rows: list[Row] = []
    for classes, full, event in ((10, 50.0, 1.0), (500, 300.0, 5.0)):
        rows += _counting(nodes, classes, full, event)
    for order in ("mixed", "kind by kind"):
        count = options.pick(5000, 200)
        written = _joining(count, order) / count
        rows.append(at_most(Row(f"label writes per node, {count} join in a minute, {order}", "", written), 2.0, "≤ 2"))
    notes = [
        f"{nodes} nodes, {FEATURES} features; one event of a kind of node that is new, and one of a kind that is known",
        "first reading of the labels of all nodes, which happens once in a leader's term, is a row of its own",
        "joining is in virtual time, with small nodes",
    ]
    return Report(NAME, "host-model levels: classes of bits, and plain sets", rows, notes, ("herder", SETS))


def processor(kind: int, features: int = FEATURES) -> Labels:
    """Each kind lacks some of the features, and requires some of those that it has."""
    dice = random.Random(kind)
    has = [f"feature-{number}" for number in range(features) if dice.random() < 0.97]
    required = [name for name in has if dice.random() < 0.02]
    found = {labels.CPU_FEATURE + name: "true" for name in has}
    found |= {labels.HOST_MODEL_REQUIRED_FEATURES + name: "true" for name in required}
    model = {labels.HOST_MODEL_CPU + "Haswell": "true", labels.CPU_MODEL_MIGRATION + "Haswell": "true"}
    return found | model | {labels.CPU_VENDOR + "Intel": "true"}


def _counting(nodes: int, classes: int, full: float, event: float) -> list[Row]:
    kinds = [processor(number) for number in range(classes)]
    written = {f"node-{number}": dict(kinds[number % classes]) for number in range(nodes)}
    reading = _milliseconds(lambda: {name: profile_of(one) for name, one in written.items()}, 1)
    profiles = {name: profile_of(one) for name, one in written.items()}
    levels = Levels(profiles)
    counted = _milliseconds(lambda: (Levels(profiles), levels.all()), 5)
    recounted = _milliseconds(levels.recounted, 5)
    sets = {name: _Sets(one) for name, one in written.items()}
    about = f"{classes} kinds"
    at_once = f"≤ {event:g} ms"
    known = [_event(levels, "node-1", kinds[number % classes]) for number in range(2, 52)]
    new = [_event(levels, "node-1", processor(10_000 + number)) for number in range(20)]
    one_of_them = _others(sets)
    return [
        Row(f"{about}: first reading of all labels", "ms", reading),
        at_most(Row(f"{about}: all from nothing", "ms", counted, _pairs(sets), LESS), full, f"≤ {full:g} ms"),
        Row(f"{about}: a recount alone", "ms", recounted),
        at_most(Row(f"{about}: one event, known kind", "ms", statistics.median(known), one_of_them, LESS), event, at_once),
        at_most(Row(f"{about}: one event, new kind", "ms", statistics.median(new), one_of_them, LESS), event, at_once),
    ]


def _event(levels: Levels, name: str, written: Labels) -> float:
    """From the labels to the new count; what is not changed costs nothing."""
    return _milliseconds(lambda: (levels.put(name, profile_of(written)), levels.level(name)), 1)


class _Sets:
    def __init__(self, written: Labels) -> None:
        prefix = labels.HOST_MODEL_REQUIRED_FEATURES
        self.required = {key[len(prefix) :] for key in written if key.startswith(prefix)}
        self.features = {key[len(labels.CPU_FEATURE) :] for key in written if key.startswith(labels.CPU_FEATURE)}
        self.models = {key.partition("/")[2] for key in written if key.startswith(labels.CPU_MODEL_MIGRATION)}
        self.model = next(key.partition("/")[2] for key in written if key.startswith(labels.HOST_MODEL_CPU))

    def takes(self, other: _Sets) -> bool:
        return other.model in self.models and other.required <= self.features


def _pairs(sets: dict[str, _Sets]) -> float:
    """Of some of the nodes with all others, and so many times as there are nodes."""
    some = list(sets.values())[:20]
    return _milliseconds(lambda: [_count(one, sets.values()) for one in some], 1) * len(sets) / len(some)


def _others(sets: dict[str, _Sets]) -> float:
    """One node that comes: who takes its guests, and whose guests it takes."""
    one = next(iter(sets.values()))
    return _milliseconds(lambda: (_count(one, sets.values()), [one.takes(other) for other in sets.values()]), 5)


def _count(one: _Sets, all_of_them: Iterable[_Sets]) -> int:
    return sum(other.takes(one) for other in all_of_them if other is not one)


def _milliseconds(work: Callable[[], object], times: int) -> float:
    taken: list[float] = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken) * 1000


def _joining(count: int, order: str) -> int:
    """How many labels are written until all is right."""
    kinds = [processor(number, 20) for number in range(10)]
    chosen = [kinds[number * len(kinds) // count] for number in range(count)]
    if order == "mixed":
        random.Random(SEED).shuffle(chosen)

    async def main(simulation: Simulation) -> int:
        await simulation.started(controllers(simulation, CONTROLLERS, (Migratability.start,)))
        person = simulation.client()
        await asyncio.sleep(30.0)
        began = simulation.loop.time()
        for number, written in enumerate(chosen):
            await asyncio.sleep(max(0.0, began + number * JOIN_SECONDS / count - simulation.loop.time()))
            status = {"conditions": [{"type": "Ready", "status": "True"}]}
            await person.create(NODES, {"metadata": {"name": f"node-{number}", "labels": written}, "status": status})
        await simulation.at_rest(quiet=120.0)
        return sum("/nodes/" in write for write in simulation.wire(CONTROLLERS).writes)

    return simulate(SEED, main, (SETTINGS,), traced=False, latency=False)

"""Each field changed in turn under the eyes of a controller: it neither crashes nor hangs, and going back leads back. One line:

test_inputs = inputs_to(FLOCKS_ALONE, FLOCKS, {"metadata": {...}, "spec": {...}})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api import labels
from herder.api.schemas import schema_of_kind
from herder.kube.resources import Resource
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.inputs import Inputs
from tests.simulation.matrix import Scenario, Step
from tests.simulation.mutations import Json
from tests.simulation.outcome import compared, stored_objects, unobserved
from tests.simulation.simulation import Simulation, Wedged, simulate

QUIET = 20.0


def inputs_to(
    scenario: Scenario,
    resource: Resource[Any],
    original: Json,
    most: int = 0,
    history: str = "",
    prepare: Step | None = None,
    but: str = "",
) -> Callable[[int], None]:
    """`most`: about so many of the mutations, others for each seed, where there are too many for every day. `history`: a kind of
    objects that tell what was, and so do not go back. `prepare`: what is there beforehand. `but`: a field that is left alone."""

    def test_inputs(seed: int) -> None:
        inputs = simulate(
            seed,
            lambda simulation: _go_through(simulation, scenario, resource, original, most, history, prepare, but),
            scenario.kinds,
            traced=False,
        )
        assert not inputs.wrong, "\n".join(inputs.wrong[:20])
        assert inputs.accepted
        assert inputs.refused

    return test_inputs


async def _go_through(
    simulation: Simulation,
    scenario: Scenario,
    resource: Resource[Any],
    original: Json,
    most: int,
    history: str,
    prepare: Step | None,
    but: str,
) -> Inputs:
    await simulation.started()
    if prepare is not None:
        await prepare(simulation.client())
    nodes = [node(simulation, f"node-{number + 1}") for number in range(scenario.nodes)]
    await simulation.started(controllers(simulation, CONTROLLERS, scenario.controllers), *nodes)
    await simulation.at_rest(QUIET)
    first = frozenset(stored_objects(simulation.server))

    async def settle(simulation: Simulation) -> Json:
        await simulation.at_rest(QUIET)
        state = _state(simulation, scenario, first)
        return {name: one for name, one in state.items() if not history or not name.startswith(history)}

    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **original}
    inputs = Inputs(simulation, resource, whole, settle)
    await inputs.go_through(schema_of_kind(resource.view), most, simulation.seed, but)
    return inputs


def _state(simulation: Simulation, scenario: Scenario, first: frozenset[str]) -> Json:
    objects = compared(stored_objects(simulation.server, first))
    wrong = unobserved(objects, frozenset(info.crd_name for info in scenario.kinds))
    wrong += simulation.trace.errors()
    simulation.trace.lines.clear()
    if wrong:
        raise Wedged("\n".join(wrong))
    return {name: _without_past(one) for name, one in objects.items()}


# How often something was changed, and what was asked for then, is no part of what it has become. What a machine has proven itself
# on is minutes behind what it runs.
_PAST = ("generation", "observedGeneration", "readyRevision", labels.RESTART_REQUEST, labels.UPDATED_IN_PLACE)


def _without_past(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_past(_guest(one) if name == labels.GUEST else one) for name, one in value.items() if name not in _PAST
        }
    return [_without_past(one) for one in value] if isinstance(value, list) else value


def _guest(text: str) -> Any:
    """What a node was told of a guest when it was started. Empty lists, and the order of fields, need no restart: they stay as they
    were then."""
    return _without_empty(msgspec.json.decode(text))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty(one) for name, one in value.items() if one not in ([], {}, "")}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value

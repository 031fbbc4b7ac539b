"""Whoever writes has something to say: a write that changes nothing costs the API server as much as one that does."""

import asyncio

import msgspec
import pytest

from herder.api import labels
from herder.kube.transport import Reply
from tests.simulation.cluster import CONTROLLERS, NODES, controllers, node
from tests.simulation.herd import scenario
from tests.simulation.simulation import Simulation, simulate
from tests.simulation.wire import PASSING, Go, Sent


class Needless:
    """Writes whose answer has the version that the object had before."""

    def __init__(self, simulation: Simulation) -> None:
        self._versions: dict[str, str] = {}
        self.found: list[str] = []
        # What was inherited is written into an object when that is made: a start that writes it once more costs a write more.
        self.inherited: list[str] = []
        self.statuses = 0
        for role in (CONTROLLERS, NODES):
            simulation.wire(role).around.append(self._around)

    async def _around(self, sent: Sent, go: Go) -> Reply:
        reply = await go()
        path = sent.call.path.removesuffix("/status")
        if sent.call.method == "PATCH" and reply.status == 200 and not any(one in path for one in PASSING):
            self.statuses += path != sent.call.path
            self.inherited += [sent.call.path] if labels.LAST_APPLIED.encode() in (sent.call.body or b"") else []
            version = msgspec.json.decode(reply.body)["metadata"]["resourceVersion"]
            if self._versions.get(path) == version:
                self.found.append(f"{sent.call.path} {sent.call.body!r}")
            self._versions[path] = version
        return reply


@pytest.mark.slow
def test_a_guest_is_started_and_moved_without_a_write_that_changes_nothing() -> None:
    async def main(simulation: Simulation) -> Needless:
        needless = Needless(simulation)
        machines = [node(simulation, f"node-{number + 1}") for number in range(2)]
        await simulation.started(controllers(simulation, CONTROLLERS, scenario.MOVED.controllers), *machines)
        person = simulation.client()
        await scenario.nodes_are_ready(person)
        await scenario.make(marked={"tier": "a"}, evictionStrategy="LiveMigrate")(person)
        await asyncio.sleep(30.0)
        await scenario.migrate("there")(person)
        await asyncio.sleep(30.0)
        return needless

    needless = simulate(1, main, scenario.MOVED.kinds, traced=False)
    assert needless.statuses > 20
    assert needless.found == []
    assert needless.inherited == []

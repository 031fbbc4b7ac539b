"""A guest that its node has ended while nobody could be told: it stays ended, and that is told as soon as somebody listens."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api import labels, reasons
from herder.kube.client import Client
from herder.kube.resources import PODS, Key
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.simulated import SimulatedRuntime
from tests.unit.kube.engine import engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

KEY = Key("default", "p")
PROBE = {"guestAgentPing": {}, "periodSeconds": 1}
GUEST: dict[str, Any] = {
    "instance": {"namespace": "default", "name": "i", "uid": "u"},
    "spec": {"domain": {"devices": {}}, "livenessProbe": PROBE},
    "simulated": {"boot": "50ms", "dies-after": "20s"},
}


def test_a_guest_that_was_ended_while_the_api_server_was_away_is_neither_made_up_again_nor_called_lost() -> None:
    async def story() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world) as place:
            person, line = place.client(), place.line()
            # No answer takes its time, too: who asks without a pause asks thousands of times.
            line.seconds = 0.005
            runtime = SimulatedRuntime("n1", world)
            agent = NodeAgent(
                Client(line, "nodes"), world, NodeSettings(name="n1"), runtime, Parts(NoVolumes()), CollectorRegistry()
            )
            running = asyncio.create_task(agent.run())
            await agent.registered.wait()
            metadata = {"name": KEY.name, "namespace": KEY.namespace, "annotations": {labels.GUEST: json.dumps(GUEST)}}
            containers = [{"name": "compute", "image": "guest"}]
            await person.create(PODS, {"metadata": metadata, "spec": {"nodeName": "n1", "containers": containers}})
            await asyncio.sleep(10)
            pod = await person.get(PODS, KEY)
            assert pod.status.phase == "Running"
            before, line.cut = len(line.calls), True
            await asyncio.sleep(60)
            assert runtime.status(pod.uid) is None
            assert len(line.calls) - before < 100
            line.cut = False
            await asyncio.sleep(60)
            pod = await person.get(PODS, KEY)
            told = next(one for one in pod.status.conditions if one.type == labels.GUEST_CONDITION)
            assert (pod.status.phase, json.loads(told.message or "")["reason"]) == ("Failed", reasons.LIVENESS_PROBE_FAILED)
            running.cancel()
            await asyncio.wait([running])

    in_virtual_time(story())

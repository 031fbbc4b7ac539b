"""What was found out about workloads is kept: whatever changes, in whatever order, the answer is that of a first look."""

import asyncio
from typing import Any, cast

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter

from herder.api.world import RealWorld
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Caches
from herder.kube.cache.reading import Reader
from herder.kube.client import Client
from herder.kube.discovery import Discovery
from herder.kube.events import Recorder
from herder.kube.kit import Kit
from herder.kube.resources import DEPLOYMENTS, INSTANCES, MACHINES, PODS, POOLS, REPLICA_SETS, STATEFUL_SETS, Anything, Key

Json = dict[str, Any]
DOMAIN: Json = {"domain": {"memory": {"guest": "64Mi"}}}
MACHINE: Json = {"running": True, "template": {"spec": DOMAIN}}
SPECS: dict[Anything, list[Json]] = {
    DEPLOYMENTS: [{"replicas": 1}, {"replicas": 3}],
    REPLICA_SETS: [{"replicas": 0}, {"replicas": 2}],
    STATEFUL_SETS: [{"replicas": 2}],
    POOLS: [{"replicas": 2, "template": {"spec": MACHINE}}],
    MACHINES: [MACHINE, {**MACHINE, "running": False}],
    INSTANCES: [DOMAIN],
    PODS: [{}],
}
OWNERS: dict[Anything, tuple[Anything, ...]] = {
    REPLICA_SETS: (DEPLOYMENTS,),
    MACHINES: (POOLS,),
    INSTANCES: (MACHINES,),
    PODS: (REPLICA_SETS, STATEFUL_SETS, INSTANCES, DEPLOYMENTS),
}
STATUSES: list[Json] = [
    {},
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "launcherPodName": "b"},
    {"phase": "Running", "launcherPodName": "a", "observedGeneration": 1},
    {"phase": "Failed"},
]


# Mostly the same, so that objects belong to each other.
NUMBERS = st.sampled_from((1, 1, 1, 2))


@st.composite
def changes(draw: st.DrawFn) -> tuple[Anything, str, Json | None]:
    """An object that comes, changes, or goes. The second uid is that of another one of the same name."""
    resource = draw(st.sampled_from((*SPECS, PODS, PODS, PODS)))
    name = draw(st.sampled_from("ab"))
    if draw(st.integers(0, 4)) == 0:
        return resource, name, None
    metadata: Json = {"name": name, "namespace": "shop", "uid": uid(resource, name, draw(NUMBERS)), "generation": 1}
    above = draw(st.sampled_from((*OWNERS.get(resource, ()), *OWNERS.get(resource, ()), None)))
    if above is not None:
        owner = draw(st.sampled_from("ab"))
        said = {
            "apiVersion": above.api_version,
            "kind": above.kind,
            "name": owner,
            "uid": uid(above, owner, draw(NUMBERS)),
        }
        metadata["ownerReferences"] = [{**said, "controller": True}]
    if draw(st.integers(0, 5)) == 0:
        metadata["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    status = draw(st.sampled_from(STATUSES)) if resource in (PODS, INSTANCES) else {}
    return resource, name, {"metadata": metadata, "spec": draw(st.sampled_from(SPECS[resource])), "status": status}


def uid(resource: Anything, name: str, number: int) -> str:
    return f"{resource.plural}-{name}-{number}"


def kit() -> Kit:
    """With caches that nobody fills but the test."""
    client = cast("Client", None)
    registry = CollectorRegistry()
    return Kit(client, Caches(client, RealWorld(), registry), cast("Recorder", None), RealWorld(), registry)


def answers(workloads: Workloads, held: Kit) -> list[Any]:
    pods = held.caches.of(PODS)
    found: list[Any] = []
    for key in pods.keys():  # noqa: SIM118 - a cache, not a dict
        stored = pods.stored(key)
        assert stored is not None
        workload = workloads.of(stored)
        found.append((key, workload, workload and (workloads.replicas(workload), workloads.pods(workload))))
    return found


@settings(max_examples=80, deadline=None)
@given(st.lists(changes(), min_size=1, max_size=25))
def test_what_is_kept_is_what_a_first_look_would_find(steps: list[tuple[Anything, str, Json | None]]) -> None:
    async def scenario() -> None:
        held = kit()
        discovery = Discovery(held.client)
        keeping = Workloads(held, discovery)
        readers = {resource: Reader(resource, Counter("unreadable", "", registry=None)) for resource in SPECS}
        for version, (resource, name, document) in enumerate(steps, 1):
            table = held.caches.of(resource)._table  # pyright: ignore[reportPrivateUsage]
            if document is None:
                table.remove(Key("shop", name))
            else:
                metadata = {**document["metadata"], "resourceVersion": str(version)}
                stored = readers[resource].stored(msgspec.json.encode({**document, "metadata": metadata}))
                assert stored is not None
                table.put(stored)
            assert answers(keeping, held) == answers(Workloads(held, discovery), held)
            # Asked again, it is the same.
            assert answers(keeping, held) == answers(keeping, held)

    asyncio.run(scenario())

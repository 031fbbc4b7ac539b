"""`herder evacuate`, `herder job` and `herder explain job`, by the installed program, on every engine; nobody carries jobs out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from herder.api import registry
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api, Json
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS

JOBS = resource_of(registry.JOB)
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "10"}
LABELS = {"app": "web"}
# Of a scheduler that is not there: nobody else would touch them.
SPEC: Json = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


@pytest.fixture
async def nodes(api: Api, unique: Callable[..., str]) -> AsyncIterator[list[str]]:
    names = sorted(unique(f"n{number}") for number in range(2))
    for name in names:
        (await api.create(NODES, {"metadata": {"name": name, "labels": {"only": names[0]}}})).ok  # noqa: B018
        (await api.patch(NODES, name, {"status": {"capacity": ROOM, "allocatable": ROOM}}, "", "status")).ok  # noqa: B018
        # A real API server taints new nodes until somebody says that they are ready.
        (await api.patch(NODES, name, {"spec": {"taints": None}})).ok  # noqa: B018
    yield names
    for name in names:
        await api.delete(NODES, name)


async def _herder(engine: Engine, *words: str, code: int = 0) -> str:
    pipe = asyncio.subprocess.PIPE
    command = [str(find_program()), *words, "--kubeconfig", str(engine.kubeconfig)]
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == code, (words, out, err)
    return out.decode() + err.decode()


async def _pods(api: Api, namespace: str, node: str) -> None:
    """Two of a ReplicaSet of no Deployment that anybody keeps: it is paused, so that a real cluster leaves them alone."""
    template = {"metadata": {"labels": LABELS}, "spec": SPEC}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    owner: Json = {}
    for kind, name in ((DEPLOYMENTS, "web"), (REPLICA_SETS, "web-1")):
        metadata = {"name": name, **({"ownerReferences": [owner]} if owner else {})}
        paused = {"paused": True} if kind is DEPLOYMENTS else {}
        made = (await api.create(kind, {"metadata": metadata, "spec": {**spec, **paused}}, namespace)).ok
        owner = {"apiVersion": "apps/v1", "kind": kind.kind, "name": name, "uid": made["metadata"]["uid"], "controller": True}
        seen = {"observedGeneration": 1, "replicas": 2, **({"updatedReplicas": 2} if paused else {})}
        (await api.patch(kind, name, {"status": seen}, namespace, "status")).ok  # noqa: B018
    for name in ("web-a", "web-b"):
        pinned = {**SPEC, "nodeName": node, "nodeSelector": {"only": node}}
        metadata = {"name": name, "labels": LABELS, "ownerReferences": [owner]}
        (await api.create(PODS, {"metadata": metadata, "spec": pinned}, namespace)).ok  # noqa: B018
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        (await api.patch(PODS, name, {"status": ready}, namespace, "status")).ok  # noqa: B018


@pytest.mark.slow
async def test_pods_of_a_node_are_planned_filed_and_their_jobs_explained(
    api: Api, engine: Engine, namespace: str, nodes: list[str]
) -> None:
    source, target = nodes
    await _pods(api, namespace, source)
    asked = ("evacuate", "--node", source, "-n", namespace)
    planned = json.loads(await _herder(engine, *asked, "--plan", "-o", "json"))
    assert [(row["pod"], row["targetNode"], row["waits"]) for row in planned["jobs"]] == [
        ("web-a", target, ""),
        ("web-b", target, "WaitingForWorkloadLimit"),
    ]
    await _herder(engine, *asked)
    first, second = (row["job"] for row in planned["jobs"])
    listed = json.loads(await _herder(engine, "job", "list", "-n", namespace, "-o", "json"))["jobs"]
    assert {row["name"]: (row["phase"], row["sourceNode"]) for row in listed} == dict.fromkeys((first, second), ("Pending", source))
    explained = await _herder(engine, "explain", "job", second)
    assert planned["jobs"][1]["why"] in explained and first in explained
    assert "is paused" in await _herder(engine, "job", "pause", first)
    assert "nothing holds it" in await _herder(engine, "explain", "job", second)
    assert "moves it already" in await _herder(engine, *asked, code=10)
    for name in (first, second):
        await api.delete(JOBS, name)

"""Two nodes, each with its own identity, and pods that are bound to them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.behaviour.manifests import pod
from tests.engines.api import Api, Json, Reply
from tests.engines.credentials import ACCESS_REVIEWS, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import NODES, PODS
from tests.engines.waiting import eventually

GROUP = "system:nodes"


@dataclass(frozen=True)
class Agent:
    """What acts as one node."""

    name: str
    api: Api

    async def register(self, **metadata: Any) -> Reply:
        return await self.api.create(NODES, {"metadata": {"name": self.name, **metadata}})


@asynccontextmanager
async def agent_of(engine: Engine, name: str) -> AsyncGenerator[Agent]:
    async with with_certificate(engine, f"system:node:{name}", GROUP) as connected:
        yield Agent(name, connected)


async def bound_pod(api: Api, namespace: str, name: str, node: str, **spec: Any) -> Json:
    """A pod on a node. A real API server hears a moment later that the two belong together."""
    body = pod(name)
    body["spec"] |= {"nodeName": node, **spec}
    made = (await api.create(PODS, body, namespace)).ok
    await until_may(api, node, "get", "pods", namespace, name)
    return made


async def until_may(api: Api, node: str, verb: str, resource: str, namespace: str, name: str, allowed: bool = True) -> None:
    asked = {"verb": verb, "resource": resource, "namespace": namespace, "name": name, "group": "", "version": "v1"}
    body = {"spec": {"user": f"system:node:{node}", "groups": [GROUP], "resourceAttributes": asked}}

    async def may() -> bool:
        return (await api.create(ACCESS_REVIEWS, body)).ok["status"]["allowed"] is allowed

    assert await eventually(may), f"node {node} {'may' if allowed else 'may still'} {verb} {resource} {name}"

"""A namespace in which no pod ever gets a node: which of them are ready, and when, the test says."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from typing import Any

from tests.behaviour.manifests import container, meta
from tests.engines.api import Api
from tests.engines.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Resource
from tests.engines.waiting import eventually

Json = dict[str, Any]
PATIENCE = 60.0
REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"


class Place:
    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    # What people do.

    async def deploy(self, replicas: int, *, name: str = "web", metadata: Json | None = None, **spec: Any) -> Json:
        return (await self.api.create(DEPLOYMENTS, workload(name, replicas, metadata, **spec), self.namespace)).ok

    async def keep(self, replicas: int, *, name: str = "web", metadata: Json | None = None, **spec: Any) -> Json:
        return (await self.api.create(REPLICA_SETS, workload(name, replicas, metadata, **spec), self.namespace)).ok

    async def change(self, patch: Json, name: str = "web", resource: Resource = DEPLOYMENTS) -> Json:
        return (await self.api.patch(resource, name, patch, self.namespace, kind="strategic")).ok

    async def image(self, image: str) -> Json:
        return await self.change({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})

    async def scale(self, replicas: int, resource: Resource = DEPLOYMENTS) -> None:
        (await self.api.patch(resource, "web", {"spec": {"replicas": replicas}}, self.namespace, "scale")).ok  # noqa: B018

    # What a node would say.

    async def ready(self, *pods: Json, is_ready: bool = True) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": now}
        for pod in pods:
            await self.tell(pod, {"phase": "Running", "conditions": [condition]})

    async def tell(self, pod: Json, status: Json) -> None:
        await self.api.patch(PODS, pod["metadata"]["name"], {"status": status}, self.namespace, "status", kind="strategic")

    async def all_ready(self) -> None:
        await self.ready(*[pod for pod in await self.pods() if not is_ready(pod)])

    async def rolled_out(self, name: str = "web") -> Json:
        """With every pod made ready that comes."""

        async def look() -> Json:
            await self.all_ready()
            deployment = await self.deployment(name)
            assert is_rolled_out(deployment), deployment["status"]
            return deployment

        return await self.eventually(look)

    # What people see.

    async def deployment(self, name: str = "web") -> Json:
        return (await self.api.get(DEPLOYMENTS, name, self.namespace)).ok

    async def replica_set(self, name: str = "web") -> Json:
        return (await self.api.get(REPLICA_SETS, name, self.namespace)).ok

    async def sets(self) -> list[Json]:
        """By revision."""
        found = (await self.api.list(REPLICA_SETS, self.namespace)).items
        return sorted(found, key=lambda one: int(one["metadata"].get("annotations", {}).get(REVISION, 0)))

    async def sizes(self) -> list[int]:
        return [one["spec"]["replicas"] for one in await self.sets()]

    async def pods(self) -> list[Json]:
        """Those that are to stay."""
        return [one for one in (await self.api.list(PODS, self.namespace)).items if counts(one)]

    async def has_pods(self, count: int) -> list[Json]:
        async def look() -> list[Json]:
            found = await self.pods()
            assert len(found) == count, [one["metadata"]["name"] for one in found]
            return found or [{}]

        return [one for one in await self.eventually(look) if one]

    async def has_sizes(self, *sizes: int) -> list[Json]:
        """When nothing moves any more: those who decide have seen everything."""

        async def look() -> list[Json]:
            sets = await self.sets()
            assert [one["spec"]["replicas"] for one in sets] == list(sizes)
            assert all(one["status"].get("observedGeneration") == one["metadata"]["generation"] for one in sets)
            assert all(one["status"]["replicas"] == one["spec"]["replicas"] for one in sets)
            return sets

        return await self.eventually(look)

    async def shows(self, test: Callable[[Json], object], name: str = "web", resource: Resource = DEPLOYMENTS) -> Json:
        async def look() -> Json:
            found = (await self.api.get(resource, name, self.namespace)).ok
            assert test(found), found.get("status")
            return found

        return await self.eventually(look)

    async def told(self, about: str, reason: str) -> list[str]:
        events = (await self.api.list(EVENTS, self.namespace)).items
        return [one["message"] for one in events if one["involvedObject"].get("name") == about and one["reason"] == reason]

    async def tells(self, about: str, reason: str, times: int) -> None:
        """Events are written beside the work, not before it."""

        async def look() -> bool:
            told = await self.told(about, reason)
            assert len(told) == times, told
            return True

        await self.eventually(look)

    async def eventually(self, look: Callable[[], Awaitable[Any]]) -> Any:
        return await eventually(look, PATIENCE)


def workload(name: str, replicas: int, metadata: Json | None = None, **spec: Any) -> Json:
    labels = {"app": name}
    # No node has this label.
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()], "nodeSelector": {"no": "where"}}}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"metadata": meta(name, **(metadata or {})), "spec": body}


def rolling(surge: int | str, unavailable: int | str) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def counts(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")


def is_ready(pod: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def is_rolled_out(deployment: Json) -> bool:
    """As `kubectl rollout status` sees it, and said to be so."""
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    numbers = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return seen and numbers == [wanted] * 3 and condition(deployment, "Progressing").get("reason") == "NewReplicaSetAvailable"


def condition(thing: Json, kind: str) -> Json:
    return next((one for one in thing.get("status", {}).get("conditions", ()) if one["type"] == kind), {})


def words(thing: Json, kind: str) -> tuple[str, str]:
    found = condition(thing, kind)
    return found.get("status", ""), found.get("reason", "")

"""Small nodes of a test's own, workloads on them, and jobs that move their pods: as people make and see them, through the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from herder.api import labels, registry
from herder.api.defaults import SCHEDULER_NAME
from tests.behaviour.manifests import container, meta
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import BUDGETS, DEPLOYMENTS, EVENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from tests.machines.herd import Herd

RESERVATIONS, JOBS = resource_of(registry.RESERVATION), resource_of(registry.JOB)
OVER = ("Succeed", "Failed", "Aborted")
# A condition of pods that only the test makes true: until then they are not ready.
GATE = "tests.example.com/let-in"
# Keeps a pod that was told to end from being gone.
HELD = "tests.example.com/held"


class Stage:
    def __init__(self, herd: Herd, unique: Callable[..., str]) -> None:
        self.herd, self.api, self.namespace = herd, herd.api, herd.namespace
        self._unique = unique
        self._label = unique("jobs")
        self._jobs: list[str] = []
        self._reservations: list[str] = []

    # What people do.

    async def nodes(self, *cpus: int) -> list[str]:
        """One with so many processors each. Pods of this stage go there, and nobody else's."""
        made: list[str] = []
        for cpu in cpus:
            room = {"cpu": str(cpu), "memory": "8Gi", "pods": "20"}
            made.append(await self.herd.node(self._label, capacity=room, allocatable=room))
        return made

    async def cordon(self, node: str, cordoned: bool = True) -> None:
        (await self.api.patch(NODES, node, {"spec": {"unschedulable": cordoned or None}})).ok  # noqa: B018

    def pod_spec(self, cpu: str, **more: Any) -> Json:
        tolerates = [{"key": labels.VM_HOST_TAINT, "operator": "Exists"}]
        placed = {"schedulerName": SCHEDULER_NAME, "nodeSelector": {self._label: "yes"}, "tolerations": tolerates}
        return {
            "containers": [container(resources={"requests": {"cpu": cpu}})],
            "terminationGracePeriodSeconds": 0,
            **placed,
            **more,
        }

    async def deploy(
        self,
        replicas: int,
        cpu: str,
        *,
        name: str = "web",
        of: Resource = DEPLOYMENTS,
        metadata: Json | None = None,
        workload: Json | None = None,
        **pod: Any,
    ) -> list[Json]:
        """Its pods, once they run. `metadata` and `pod` are of the template; `workload` is the rest of the spec."""
        template = {"metadata": {**(metadata or {}), "labels": {"app": name, **(metadata or {}).get("labels", {})}}}
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {**template, "spec": self.pod_spec(cpu, **pod)},
            **({"serviceName": name} if of is STATEFUL_SETS else {}),
            **(workload or {}),
        }
        (await self.api.create(of, {"metadata": meta(name), "spec": spec}, self.namespace)).ok  # noqa: B018
        return await self.running(replicas, name)

    async def scale(self, replicas: int, name: str = "web", of: Resource = DEPLOYMENTS) -> None:
        await self.herd.patch(name, {"spec": {"replicas": replicas}}, of)

    async def change(self, annotation: str, name: str = "web", of: Resource = DEPLOYMENTS, **pod: Any) -> None:
        """Another template: a rollout."""
        template = {"metadata": {"annotations": {"changed": annotation}}, "spec": pod}
        await self.herd.patch(name, {"spec": {"template": template}}, of, kind="strategic")

    async def pod(self, name: str, cpu: str, **more: Any) -> Json:
        body = {"metadata": meta(name), "spec": self.pod_spec(cpu, **more)}
        return (await self.api.create(PODS, body, self.namespace)).ok

    async def budget(self, name: str = "web", **spec: Any) -> None:
        """About the pods of the workload of this name, once it is in force."""
        app = spec.pop("app", "web")
        body = {"metadata": meta(name), "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
        (await self.api.create(BUDGETS, body, self.namespace)).ok  # noqa: B018

        async def observed() -> bool:
            found = (await self.api.get(BUDGETS, name, self.namespace)).ok
            return found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]

        await self.herd.eventually(observed)

    async def let_in(self, pod: Json, ready: bool = True) -> None:
        """Makes a pod ready that waits for it."""
        condition = {"type": GATE, "status": "True" if ready else "False"}
        await self.herd.patch(
            pod["metadata"]["name"], {"status": {"conditions": [condition]}}, PODS, kind="strategic", subresource="status"
        )

    async def hold(self, pod: Json) -> None:
        """Told to end, it will not be gone before it is let go."""
        await self.herd.patch(pod["metadata"]["name"], {"metadata": {"finalizers": [HELD]}}, PODS)

    async def let_go(self, name: str) -> None:
        await self.herd.patch(name, {"metadata": {"finalizers": None}}, PODS)

    async def reserve(self, cpu: str, owners: list[Json], **more: Any) -> str:
        name = self._unique("room")
        self._reservations.append(name)
        template = {"metadata": {"namespace": self.namespace}, "spec": self.pod_spec(cpu, **more.pop("template", {}))}
        spec = {"template": template, "owners": owners, **more}
        (await self.api.create(RESERVATIONS, {"metadata": meta(name), "spec": spec})).ok  # noqa: B018
        return name

    async def try_to_file(self, pod: Json, by: Api | None = None, annotations: Json | None = None, **spec: Any) -> Reply:
        name = self._unique("job")
        self._jobs.append(name)
        reference = {"namespace": self.namespace, "name": pod["metadata"]["name"]}
        body = {"metadata": meta(name, annotations=annotations or {}), "spec": {"podRef": reference, **spec}}
        return await (by or self.api).create(JOBS, body)

    async def file(self, pod: Json, by: Api | None = None, annotations: Json | None = None, **spec: Any) -> str:
        """The name of the job."""
        return (await self.try_to_file(pod, by, annotations, **spec)).ok["metadata"]["name"]

    async def change_job(self, name: str, **spec: Any) -> None:
        (await self.api.patch(JOBS, name, {"spec": spec})).ok  # noqa: B018

    async def abort(self, name: str) -> None:
        (await self.api.patch(JOBS, name, {"metadata": {"annotations": {labels.ABORT: "true"}}})).ok  # noqa: B018

    async def delete_job(self, name: str) -> None:
        (await self.api.delete(JOBS, name)).ok  # noqa: B018

    async def clear_away(self) -> None:
        for resource, names in ((JOBS, self._jobs), (RESERVATIONS, self._reservations)):
            for name in names:
                await self.api.delete(resource, name)

    async def tight(self, cpu: str = "3") -> Json:
        """A pod that has no other place to go to, until `full` is scaled down."""
        await self.nodes(4, 4)
        await self.deploy(1, "3", name="full")
        (web,) = await self.deploy(1, cpu)
        return web

    async def about_to_evict(self, cpu: str = "3") -> tuple[Json, str, str]:
        """A pod, its job, which has found room and is held by a budget, and the node of the room."""
        web = await self.tight(cpu)
        job = await self.file(web, ttl="1h")
        await self.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
        await self.budget(maxUnavailable=0)
        await self.scale(0, "full")
        await self.has_condition(job, "ReservationScheduled", "True")
        await self.shows(job, "Running", "WaitingForDisruptionBudget", says="web")
        room = await self.reservation_of(job)
        assert room is not None and room["spec"]["unschedulable"] is True, "nobody else may take it meanwhile"
        await self.is_untouched(web)
        return web, job, room["status"]["nodeName"]

    async def allow(self, unavailable: int = 1, name: str = "web") -> None:
        """What a budget lets go from now on."""
        await self.herd.patch(name, {"spec": {"maxUnavailable": unavailable}}, BUDGETS)

    # What people see.

    async def pods(self, app: str = "web") -> list[Json]:
        """All of a workload that are to stay."""
        listed = (await self.api.list(PODS, self.namespace, labelSelector=f"app={app}")).items
        return [one for one in listed if "deletionTimestamp" not in one["metadata"]]

    async def running(self, count: int, app: str = "web") -> list[Json]:
        async def look() -> list[Json]:
            found = await self.pods(app)
            ran = [one for one in found if one["status"].get("phase") == "Running"]
            assert len(ran) == len(found) == count, [(one["metadata"]["name"], one["status"]) for one in found]
            return ran or [{}]

        return [one for one in await self.herd.eventually(look) if one]

    async def ready(self, count: int, app: str = "web") -> list[Json]:
        async def look() -> list[Json]:
            found = await self.pods(app)
            assert [is_ready(one) for one in found] == [True] * count, [(one["metadata"]["name"], one["status"]) for one in found]
            return found

        return await self.herd.eventually(look)

    async def replacement_of(self, *old: Json, app: str = "web") -> Json:
        """The pod of the workload that was not there before, once it has a node."""
        known = {one["metadata"]["uid"] for one in old}

        async def look() -> Json:
            new = [one for one in await self.pods(app) if one["metadata"]["uid"] not in known]
            assert len(new) == 1, [one["metadata"]["name"] for one in new]
            assert new[0]["spec"].get("nodeName"), new[0]["status"]
            return new[0]

        return await self.herd.eventually(look)

    async def job(self, name: str) -> Json:
        return (await self.api.get(JOBS, name)).ok

    async def ends(self, name: str, phase: str, reason: str | None = None, says: str = "") -> Json:
        """The job, once it is over: so, and not otherwise."""

        async def look() -> Json:
            found = await self.job(name)
            status = found.get("status", {})
            assert status.get("phase") in OVER, status
            if (status["phase"], status.get("reason")) != (phase, reason) or says not in status.get("message", ""):
                pytest.fail(f"{name} should have ended as {phase}/{reason} ({says}): {status}")
            return found

        return await self.herd.eventually(look)

    async def shows(self, name: str, phase: str, reason: str | None = None, says: str = "") -> Json:
        """The job, once it is so for now."""

        async def look() -> Json:
            found = await self.job(name)
            status = found.get("status", {})
            if phase not in OVER and status.get("phase") in OVER:
                pytest.fail(f"{name} is over: {status}")
            assert (status.get("phase"), status.get("reason")) == (phase, reason), status
            assert says in status.get("message", ""), status
            return found

        return await self.herd.eventually(look)

    async def has_condition(self, name: str, kind: str, status: str, reason: str | None = None, says: str = "") -> Json:
        async def look() -> Json:
            job = await self.job(name)
            found = condition_of(job, kind)
            if job.get("status", {}).get("phase") in OVER and found.get("status") != status:
                pytest.fail(f"{name} is over: {job['status']}")
            assert found.get("status") == status, job.get("status")
            assert reason in (None, found.get("reason")), found
            assert says in found.get("message", ""), found
            return job

        return await self.herd.eventually(look)

    async def reservation_of(self, job: str) -> Json | None:
        """The one that the job has made."""
        uid = (await self.job(job))["metadata"]["uid"]
        reply = await self.api.get(RESERVATIONS, f"job-{uid}")
        return None if reply.code == 404 else reply.ok

    async def no_reservation_of(self, job: str) -> None:
        async def look() -> bool:
            assert await self.reservation_of(job) is None
            return True

        await self.herd.eventually(look)

    async def reservation_shows(self, name: str, **status: Any) -> Json:
        async def look() -> Json:
            found = (await self.api.get(RESERVATIONS, name)).ok
            shown = found.get("status", {})
            assert {field: shown.get(field) for field in status} == status, shown
            return found

        return await self.herd.eventually(look)

    async def replica_set(self, app: str = "web") -> Json:
        """As an owner names it."""
        listed = (await self.api.list(REPLICA_SETS, self.namespace, labelSelector=f"app={app}")).items
        found = listed[0]["metadata"]
        named = {"namespace": self.namespace, "name": found["name"], "uid": found["uid"]}
        return {"apiVersion": "apps/v1", "kind": "ReplicaSet", **named}

    async def told(self, job: str, reason: str) -> str:
        """What an event about the job says."""

        async def look() -> str:
            listed = (await self.api.list(EVENTS, fieldSelector=f"involvedObject.name={job}")).items
            found = [one["message"] for one in listed if one["reason"] == reason]
            assert found, [(one["reason"], one["message"]) for one in listed]
            return found[-1]

        return await self.herd.eventually(look)

    async def is_untouched(self, pod: Json) -> None:
        found = (await self.api.get(PODS, pod["metadata"]["name"], self.namespace)).ok
        assert found["metadata"]["uid"] == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]


def is_ready(pod: Json) -> bool:
    return condition_of(pod, "Ready").get("status") == "True"


def condition_of(thing: Json, kind: str) -> Json:
    return next((one for one in thing.get("status", {}).get("conditions") or () if one["type"] == kind), {})


def node_of(pod: Json) -> str:
    return pod["spec"]["nodeName"]

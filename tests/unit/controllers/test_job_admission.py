"""PodMigrationJobs before the webhook: what it asks the API server for, and what it says where that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from herder.api import registry
from herder.controllers.job_admission import JobAdmission
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.errors import Unreachable
from herder.kube.resources import CLUSTER_ROLES, CONFIG_MAPS, JOBS, PODS, ROLE_BINDINGS, Key
from herder.kube.webhook.reviews import GroupKind, GroupResource, Question, UserInfo
from tests.unit.kube.engine import Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

MASTER = UserInfo("root", groups=("system:masters",))
SETTINGS = Key("herder-system", "herder-config")


class Stage:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.client, self.line = place.client(), place.line()
        own = Client(self.line, "herder")
        self.caches = Caches(own, world)
        self.judge = JobAdmission(own, self.caches)

    async def pod(self, name: str, owned: bool = True, phase: str = "Running") -> None:
        owner = await self.client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner.uid, "controller": True}
        metadata = {"name": name, **({"ownerReferences": [reference]} if owned else {})}
        await self.client.create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "a", "image": "b"}]}}, "default")
        await self.client.patch(PODS, Key("default", name), {"status": {"phase": phase}}, subresource="status")

    async def said(self, pod: str, user: UserInfo = MASTER, operation: Any = "CREATE") -> str:
        info = registry.JOB
        spec = {"podRef": {"namespace": "default", "name": pod}}
        document = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "new"}, "spec": spec}
        kind, resource = GroupKind(info.group, info.version, info.kind), GroupResource(info.group, info.version, info.plural)
        question = Question("u", kind, resource, operation, name="new", object=document, user_info=user)
        return "; ".join(map(str, await self.judge(question)))


def on_stage(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (registry.JOB,)) as place:
            stage = Stage(place, world)
            running = asyncio.create_task(stage.caches.run())
            await scenario(stage)
            running.cancel()

    in_virtual_time(run())


def test_the_creator_must_be_let_evict_that_pod_by_whatever_they_are() -> None:
    """By name, group or what an authenticator said besides; also where a role names single pods."""

    async def scenario(stage: Stage) -> None:
        await stage.pod("web-0")
        await stage.pod("web-1")
        rule = {"apiGroups": [""], "resources": ["pods/eviction"], "resourceNames": ["web-0"], "verbs": ["create"]}
        await stage.client.create(CLUSTER_ROLES, {"metadata": {"name": "evict"}, "rules": [rule]})
        bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "evict"}}
        people = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "movers"}]
        await stage.client.create(ROLE_BINDINGS, {"metadata": {"name": "evict"}, "subjects": people, **bound}, "default")
        mover = UserInfo("jane", "1234", ("movers",), {"example.com/team": ("a", "b")})
        assert await stage.said("web-0", mover) == ""
        assert 'user "jane" may not create pods/eviction of web-1' in await stage.said("web-1", mover)
        assert 'user "jane" may not create pods/eviction of web-0' in await stage.said("web-0", UserInfo("jane"))
        asked = [call.body for call in stage.line.calls if call.path.endswith("subjectaccessreviews")]
        assert b'"extra":{"example.com/team":["a","b"]}' in (asked[0] or b"")

    on_stage(scenario)


def test_where_the_api_server_does_not_say_who_may_what_the_job_is_refused() -> None:
    """Nobody could find out later who has created it."""

    async def scenario(stage: Stage) -> None:
        await stage.pod("web-0")
        stage.line.refusals["subjectaccessreviews"] = Unreachable("away")
        assert "must be tried again" in await stage.said("web-0")
        assert await stage.said("web-0", operation="UPDATE") == "", "a job that is there goes on"
        stage.line.refusals.clear()
        assert await stage.said("web-0") == ""
        stage.line.seconds = 5.0
        assert "must be tried again" in await stage.said("web-0")

    on_stage(scenario)


def test_a_job_is_in_the_way_for_as_long_as_it_really_is_unfinished() -> None:
    """The cache may be behind: it does not know yet that the job has ended."""

    async def scenario(stage: Stage) -> None:
        await stage.pod("web-0")
        reference = {"namespace": "default", "name": "web-0"}
        await stage.client.create(JOBS, {"metadata": {"name": "first"}, "spec": {"podRef": reference}})
        assert "PodMigrationJob first of pod default/web-0 is not finished" in await stage.said("web-0")
        ended = stage.client.patch(JOBS, Key("", "first"), {"status": {"phase": "Succeed"}}, subresource="status")
        cache = stage.caches.of(JOBS)
        # Without a turn for the watch in between.
        await ended
        seen = cache.get(Key("", "first"))
        assert seen is not None and (seen.status is None or seen.status.phase != "Succeed")
        assert await stage.said("web-0") == ""

    on_stage(scenario)


def test_bare_pods_that_failed_are_let_go_by_the_last_good_setting() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.pod("web-0", owned=False, phase="Failed")
        assert "evictFailedBarePods: true in jobs.yaml" in await stage.said("web-0")
        settings = {"metadata": {"name": SETTINGS.name}, "data": {"jobs.yaml": "evictFailedBarePods: true"}}
        await stage.client.create(CONFIG_MAPS, settings, SETTINGS.namespace)
        await asyncio.sleep(1)
        assert await stage.said("web-0") == ""
        await stage.client.patch(CONFIG_MAPS, SETTINGS, {"data": {"jobs.yaml": "evictFailedBarePods: maybe"}})
        await asyncio.sleep(1)
        assert await stage.said("web-0") == ""
        await stage.client.delete(CONFIG_MAPS, SETTINGS)
        await asyncio.sleep(1)
        assert "evictFailedBarePods: true in jobs.yaml" in await stage.said("web-0")

    on_stage(scenario)

"""Rules about more than one object, asked with the rights of the account that `herder install` makes, and no others."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from prometheus_client import CollectorRegistry

from herder.api import registry
from herder.api.account import ACCOUNT
from herder.api.world import RealWorld
from herder.controllers.admission import AmongOthers
from herder.controllers.job.webhook_guard import NOT_REGISTERED, WebhookGuard
from herder.controllers.job_admission import JobAdmission
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.discovery import Discovery
from herder.kube.events import Recorder
from herder.kube.kit import Kit
from herder.kube.webhook import Registration, Settings
from herder.kube.webhook.reviews import GroupKind, GroupResource, Question, UserInfo
from herder.kube.webhook.settings import NAMESPACE
from herder.rules.jobs.judged import Judged
from tests.behaviour.our_kinds import make_owned_pod, resource_of
from tests.engines.api import Api
from tests.engines.credentials import token_for
from tests.engines.engine import Engine
from tests.engines.waiting import eventually
from tests.webhook.test_program import herder

pytestmark = pytest.mark.kubernetes
MIGRATIONS, POLICIES, INSTANCES = (resource_of(info) for info in (registry.MIGRATION, registry.POLICY, registry.INSTANCE))
JOBS = resource_of(registry.JOB)


def _question(info: registry.KindInfo, name: str, spec: dict[str, Any]) -> Question:
    document = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": name}, "spec": spec}
    kind, resource = GroupKind(info.group, info.version, info.kind), GroupResource(info.group, info.version, info.plural)
    return Question("u", kind, resource, "CREATE", name=name, namespace="default", object=document)


async def test_the_account_of_the_controllers_sees_what_the_rules_ask_for(server: Engine, api: Api, tmp_path: Path) -> None:
    installed = herder("install", "--kubeconfig", str(server.kubeconfig))
    assert installed.returncode == 0, installed.stderr
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    token = await token_for(api, NAMESPACE, ACCOUNT)
    kubeconfig["users"] = [{"name": one["name"], "user": {"token": token}} for one in kubeconfig["users"]]
    own = tmp_path / "kubeconfig"
    own.write_bytes(msgspec.json.encode(kubeconfig))
    own.chmod(0o600)
    selectors = {"selectors": {"namespaceSelector": {"a": "b"}}}
    (await api.create(POLICIES, {"metadata": {"name": "first"}, "spec": selectors})).ok  # noqa: B018
    (await api.create(INSTANCES, {"metadata": {"name": "web"}, "spec": {"domain": {}}}, "default")).ok  # noqa: B018
    (await api.create(MIGRATIONS, {"metadata": {"name": "first"}, "spec": {"vmiName": "web"}}, "default")).ok  # noqa: B018
    async with Client(connect(own, None, "test"), "test") as client:
        judge = AmongOthers(client)

        async def refused(question: Question) -> bool:
            """A real API server hears of new roles a moment later; without rights nothing is held against anybody."""
            return bool(await judge(question))

        await eventually(lambda: refused(_question(registry.POLICY, "second", selectors)))
        await eventually(lambda: refused(_question(registry.MIGRATION, "second", {"vmiName": "web"})))
        await eventually(lambda: refused(_question(registry.MIGRATION, "second", {"vmiName": "nobody"})))
        assert await judge(_question(registry.MIGRATION, "first", {"vmiName": "web"})) == []
        await _jobs_are_judged(api, client)
        await _jobs_begin_where_they_are_judged(client)


async def _jobs_are_judged(api: Api, client: Client) -> None:
    """Without a right to find something out every job is refused."""
    await make_owned_pod(api, "web-0", "default")
    caches = Caches(client, RealWorld())
    judge = JobAdmission(client, caches)
    spec = {"podRef": {"namespace": "default", "name": "web-0"}}

    async def said(name: str) -> str:
        question = msgspec.structs.replace(
            _question(registry.JOB, name, spec), user_info=UserInfo("root", groups=("system:masters",))
        )
        return "; ".join(map(str, await judge(question)))

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(caches.run())
        assert await said("first") == ""
        (await api.create(JOBS, {"metadata": {"name": "first"}, "spec": spec})).ok  # noqa: B018

        async def refused() -> bool:
            return "PodMigrationJob first of pod default/web-0 is not finished" in await said("second")

        await eventually(refused)
        running.cancel()


async def _jobs_begin_where_they_are_judged(client: Client) -> None:
    """By what the account may read of the registration, while it comes and goes."""
    caches = Caches(client, RealWorld())
    kit = Kit(client, caches, Recorder(client, RealWorld(), "test"), RealWorld(), CollectorRegistry())
    guard = WebhookGuard(kit, Discovery(client))
    registration = Registration(client, RealWorld(), Settings(url="https://127.0.0.1:1"))

    async def judged() -> bool:
        return guard.judged().since is not None

    async def unjudged() -> bool:
        return guard.judged().since is None

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(caches.run())
        await guard.run()
        assert guard.judged() == Judged(None, NOT_REGISTERED)
        await registration.register()
        await eventually(judged)
        await registration.remove()
        await eventually(unjudged)
        running.cancel()

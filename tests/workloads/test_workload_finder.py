"""What jobs find out about a pod, under the rights of our controllers: from what real controllers have made, too."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from herder.api.account import ACCOUNT, SYSTEM_NAMESPACE, documents
from herder.api.world import RealWorld
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Caches, Stored
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.discovery import Discovery
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Runs, Together, run_controllers
from herder.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SERVICE_ACCOUNTS, Anything, Key
from herder.kube.resources import PODS as CACHED_PODS
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.replicas import Replicas
from herder.rules.jobs.workload import Workload
from tests.behaviour.crds import install, widget, widgets_definition
from tests.behaviour.manifests import container
from tests.engines.credentials import token_for
from tests.engines.engine import Engine
from tests.engines.resources import BUDGETS, PODS, Resource
from tests.workloads.place import Place, workload

Json = dict[str, Any]
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")


class Finder:
    workloads: Workloads
    budgets: Budgets

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def start(self, kit: Kit) -> Runs:
        discovery = Discovery(kit.client)
        self._pods = kit.caches.of(CACHED_PODS)
        self.workloads = Workloads(kit, discovery)
        self.budgets = Budgets(kit, discovery, self.workloads)
        return Together(self.workloads.scales.work, self.budgets)

    def look(self, pod: str) -> tuple[Workload, Replicas, PodBudgets]:
        stored: Stored[Any] | None = self._pods.stored(Key(self._namespace, pod))
        assert stored is not None
        found = self.workloads.of(stored)
        assert found is not None
        return found, self.workloads.replicas(found), self.budgets.of(stored, found)


@asynccontextmanager
async def finder(place: Place, kubeconfig: Path) -> AsyncGenerator[Finder]:
    found, synced, world, registry = Finder(place.namespace), asyncio.Event(), RealWorld(), CollectorRegistry()
    async with Client(connect(kubeconfig, None, "test"), "test") as client:
        recorder = Recorder(client, world, "test", registry=registry)
        kit = Kit(client, Caches(client, world, registry), recorder, world, registry)
        task = asyncio.create_task(run_controllers(kit, (found.start,), synced.set))
        try:
            await asyncio.wait_for(synced.wait(), 60)
            yield found
        finally:
            task.cancel()
            await asyncio.wait([task])


async def install_account(engine: Engine) -> None:
    """With what it may do everywhere. The embedded engine has it already."""
    kinds: dict[str, Anything] = {one.kind: one for one in (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)}
    async with Client(connect(engine.kubeconfig, None, "test"), "test") as client:
        await client.apply(NAMESPACES, Key("", SYSTEM_NAMESPACE), {})
        for document in documents():
            metadata = document["metadata"]
            if document["kind"] in kinds:
                key = Key(metadata.get("namespace", ""), metadata["name"])
                await client.apply(kinds[document["kind"]], key, document)


@pytest.fixture
async def as_controllers(place: Place, engine: Engine, tmp_path: Path) -> Path:
    """A kubeconfig with the account that our controllers have in a cluster."""
    if engine.name == "kubernetes":
        await install_account(engine)
    document = yaml.safe_load(engine.kubeconfig.read_text())
    token = await token_for(place.api, SYSTEM_NAMESPACE, ACCOUNT)
    for user in document["users"]:
        user["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def pod_of(place: Place, name: str, resource: Resource, owner: Json) -> None:
    metadata = owner["metadata"]
    reference = {"apiVersion": resource.api_version, "kind": resource.kind, "name": metadata["name"], "uid": metadata["uid"]}
    labels = {"app": metadata["name"]}
    body = {
        "metadata": {"name": name, "labels": labels, "ownerReferences": [{**reference, "controller": True}]},
        "spec": {"containers": [container()], "nodeSelector": {"no": "where"}},
    }
    (await place.api.create(PODS, body, place.namespace)).ok  # noqa: B018
    await place.ready({"metadata": {"name": name}})


async def test_what_a_pod_is_a_replica_of_and_what_its_budget_allows(
    place: Place, engine: Engine, as_controllers: Path, unique: Callable[..., str]
) -> None:
    await place.deploy(3)
    first, second, _ = await place.has_pods(3)
    await place.rolled_out()
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}
    (await place.api.create(BUDGETS, budget, place.namespace)).ok  # noqa: B018
    widgets = await install(place.api, widgets_definition(f"{unique('group')}.example.com"))
    owner = (await place.api.create(widgets, widget("w", {"replicas": 4}), place.namespace)).ok
    await pod_of(place, "of-widget", widgets, owner)
    expected = {first["metadata"]["name"]: ("Deployment", 3, 0), "of-widget": ("Widget", 4, 3)}
    if engine.name == "kubernetes":
        kept = workload("rc", 2)
        controller = {**kept, "spec": {**kept["spec"], "selector": {"app": "rc"}}}
        made = (await place.api.create(REPLICATION_CONTROLLERS, controller, place.namespace)).ok
        assert made["kind"] == "ReplicationController"
        pods = [one["metadata"]["name"] for one in await place.has_pods(6) if one["metadata"]["labels"].get("app") == "rc"]
        await place.all_ready()
        expected[pods[0]] = ("ReplicationController", 2, 0)
    async with finder(place, as_controllers) as found:

        async def all_found() -> bool:
            for pod, (kind, replicas, missing) in expected.items():
                known, counted, budgets = found.look(pod)
                assert (known.kind, known.replicas, known.rolling_out, counted.unavailable) == (kind, replicas, False, missing), (
                    known
                )
                assert budgets.problem == ""
            return True

        async def allows(number: int) -> bool:
            budgets = found.look(first["metadata"]["name"])[2].budgets
            assert [(one.name, one.allowed) for one in budgets] == [("web", number)]
            return True

        await place.eventually(all_found)
        await place.eventually(lambda: allows(1))
        # One is evicted: no rollout, one missed, and nothing more allowed.
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": second["metadata"]["name"]}}
        path = PODS.path(place.namespace, second["metadata"]["name"], "eviction")
        assert (await place.api.request("POST", path, eviction)).code == 201
        await place.eventually(lambda: allows(0))

        async def one_is_missed() -> bool:
            known, counted, _ = found.look(first["metadata"]["name"])
            assert (known.rolling_out, counted.unavailable) == (False, 1)
            return True

        await place.eventually(one_is_missed)
        await place.image("web:2")

        async def rolls() -> bool:
            return found.look(first["metadata"]["name"])[0].rolling_out

        await place.eventually(rolls)

"""On generated clusters our rules find the same nodes feasible as kube-scheduler, and say why not in the same words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from herder.cli.placement import gather
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.errors import AlreadyExists
from herder.kube.resources import CLAIMS, NAMESPACES, NODES, PODS, VOLUMES, Anything, Key
from herder.rules.placement import RULES, Snapshot, decide, message, needs_of
from herder.rules.placement.gather import snapshot_of
from tests.agreement import generated
from tests.agreement.generated import Generated
from tests.agreement.kube_scheduler import asked_scheduler
from tests.conftest import or_skipped
from tests.engines.engine import Engine
from tests.engines.kubernetes import run_api_server
from tests.engines.waiting import eventually

pytestmark = pytest.mark.kubernetes
# At least; more with --seeds.
SEEDS = 4


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first, more = int(str(metafunc.config.getoption("--seed"))), int(str(metafunc.config.getoption("--seeds")))
    metafunc.parametrize("seed", range(first, first + max(SEEDS, more)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    """An API server of its own: nobody else may place these pods."""
    with or_skipped(run_api_server(tmp_path_factory.mktemp("agreement"))) as engine:
        yield engine


@pytest.fixture
async def client(server: Engine) -> AsyncGenerator[Client]:
    async with Client(connect(server.kubeconfig, None, "agreement"), "agreement") as made:
        yield made


async def fill(client: Client, cluster: Generated) -> None:
    for name, labels in generated.NAMESPACES.items():
        try:
            await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        except AlreadyExists:
            continue
    await together(client.create(NODES, node) for node in cluster.nodes)
    # The API server itself taints a new node as not ready, and it takes no status from a create.
    await together(client.patch(NODES, Key("", node["metadata"]["name"]), {"spec": node["spec"]}) for node in cluster.nodes)
    await together(client.create(VOLUMES, volume) for volume in cluster.volumes)
    await together(client.create(CLAIMS, claim) for claim in cluster.claims)
    await together(client.create(PODS, pod) for pod in (*cluster.placed, *cluster.pending))


async def together(calls: Any) -> None:
    waiting: list[Coroutine[Any, Any, object]] = list(calls)
    await asyncio.gather(*waiting)


async def clear(client: Client) -> None:
    for resource in (PODS, CLAIMS, VOLUMES, NODES):
        await together(_remove(client, resource, one.namespace, one.name) for one in (await client.list(resource)).items)


async def _remove(client: Client, resource: Anything, namespace: str, name: str) -> None:
    key = Key(namespace, name)
    await client.patch(resource, key, {"metadata": {"finalizers": None}})
    await client.delete(resource, key, grace_period_seconds=0)


def ours(snapshot: Snapshot, pod: Any) -> tuple[list[str], str]:
    decision = decide(needs_of(pod), snapshot, RULES)
    fitting = sorted(name for name, row in snapshot.nodes.rows.items() if decision.fitting[row])
    return fitting, "" if fitting else message(needs_of(pod), decision, snapshot)


async def test_the_same_nodes_fit_and_the_same_words_say_why_none_does(
    server: Engine, client: Client, tmp_path: Path, seed: int
) -> None:
    try:
        await fill(client, Generated(seed))
        await compare(server, client, tmp_path)
    finally:
        await clear(client)


async def compare(server: Engine, client: Client, folder: Path) -> None:
    everything = await gather(client)
    snapshot = snapshot_of(everything)
    pending = [pod for pod in everything.pods if not pod.spec.node_name]
    answers = {pod.name: ours(snapshot, pod) for pod in pending}
    async with asked_scheduler(server, folder) as extender:

        async def told() -> dict[str, str]:
            """What is written into the conditions; there for all pods once all were looked at."""
            pods = [pod for pod in (await client.list(PODS)).items if not pod.spec.node_name]
            said = {pod.name: one.message for pod in pods for one in pod.status.conditions if one.type == "PodScheduled"}
            return said if len(said) == len(pods) else {}

        messages = await eventually(told, patience=60)
    theirs = {name: (extender.feasible.get(name, []), messages[name] if name not in extender.feasible else "") for name in answers}
    different = {name: (ours, theirs[name]) for name, ours in answers.items() if ours != theirs[name]}
    assert different == {}
    assert any(fits for fits, _ in theirs.values()), "a cluster in which nothing fits says little"
    assert any(not fits for fits, _ in theirs.values())

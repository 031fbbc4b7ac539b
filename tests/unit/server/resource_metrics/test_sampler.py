"""The engine asks nodes over real TLS, and tells what they use as metrics.k8s.io. Some of the nodes are hostile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from herder.server.kubelets import Place
from herder.server.request import User
from herder.server.resource_metrics import sampler as sampling
from herder.server.resource_metrics.sampler import Sampler
from tests.unit.server.inside import Inside, engine_inside
from tests.unit.server.node_servers import Cluster, Handler, node_pair

ROOT = "/apis/metrics.k8s.io/v1beta1"
END = "resource_scrape_error 0\n"
Cores = Callable[[], float]


def line(pod: str, cpu: float, memory: int = 1 << 20) -> str:
    labels = f'{{container="main",namespace="default",pod="{pod}"}}'
    return f"container_cpu_usage_seconds_total{labels} {cpu}\ncontainer_memory_working_set_bytes{labels} {memory}\n"


def saying(*pods: str, cpu: Cores = lambda: 0.0) -> Handler:
    """A node whose pods have all used so much."""

    async def answer(request: web.Request) -> web.StreamResponse:
        used = cpu()
        lines = "".join(line(pod, used) for pod in pods)
        return web.Response(text=f"{lines}node_cpu_usage_seconds_total {used}\nnode_memory_working_set_bytes 5242880\n{END}")

    return answer


class Metered:
    """An engine inside the test, with nodes outside of it."""

    def __init__(self, inside: Inside, cluster: Cluster, stack: AsyncExitStack, sampler: Sampler) -> None:
        self.inside, self.sampler = inside, sampler
        self.cluster, self.stack = cluster, stack
        self.used = 0.0

    async def node(self, name: str, handler: Handler) -> None:
        place = await self.stack.enter_async_context(self.cluster.node(name, node_pair(self.cluster.authority, name), handler))
        await self.registered(place)

    async def registered(self, place: Place) -> None:
        code, _ = await self.inside.ask("POST", "/api/v1/nodes", {"metadata": {"name": place.node, "labels": {"zone": place.node}}})
        assert code == 201
        status = {
            "addresses": [{"type": "InternalIP", "address": place.host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": place.port}},
        }
        path, merge = f"/api/v1/nodes/{place.node}/status", "application/merge-patch+json"
        code, _ = await self.inside.ask("PATCH", path, {"status": status}, content_type=merge)
        assert code == 200

    async def pod(self, name: str, node: str) -> None:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "x"}]}
        body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
        code, made = await self.inside.ask("POST", "/api/v1/namespaces/default/pods", body)
        assert code == 201, made

    async def rounds(self, count: int = 2, cores: float = 0.25) -> None:
        """Fifteen seconds apart, in which so much is used."""
        for _ in range(count):
            await self.sampler.round()
            self.inside.world.seconds += 15
            self.used += 15 * cores
        self.inside.running.engine.samples.ready = True

    async def pods(self, query: str = "") -> list[str]:
        code, found = await self.inside.ask("GET", f"{ROOT}/pods{query}")
        assert code == 200, found
        return [one["metadata"]["name"] for one in found["items"]]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Metered]:
    cluster = Cluster(tmp_path)
    (tmp_path / "data").mkdir()
    async with AsyncExitStack() as stack:
        inside = await stack.enter_async_context(engine_inside(tmp_path / "data"))
        kubelets = await stack.enter_async_context(cluster.engine())
        yield Metered(inside, cluster, stack, Sampler(inside.running.engine, kubelets))


async def test_what_pods_and_nodes_use_is_told_as_a_metrics_server_tells_it(place: Metered) -> None:
    await place.node("left", saying("web", cpu=lambda: place.used))
    await place.pod("web", "left")
    await place.rounds()
    code, web_metrics = await place.inside.ask("GET", f"{ROOT}/namespaces/default/pods/web")
    assert code == 200
    assert (web_metrics["kind"], web_metrics["apiVersion"]) == ("PodMetrics", "metrics.k8s.io/v1beta1")
    assert web_metrics["metadata"]["labels"] == {"app": "web"}
    assert (web_metrics["window"], web_metrics["timestamp"]) == ("15s", "2025-06-15T15:06:55Z")
    assert web_metrics["containers"] == [{"name": "main", "usage": {"cpu": "250m", "memory": "1Mi"}}]
    code, listed = await place.inside.ask("GET", f"{ROOT}/nodes")
    assert (code, listed["kind"]) == (200, "NodeMetricsList")
    (node,) = listed["items"]
    assert (node["metadata"]["name"], node["usage"]) == ("left", {"cpu": "250m", "memory": "5Mi"})


async def test_lists_are_selected_by_labels_fields_and_namespace(place: Metered) -> None:
    await place.node("left", saying("web", "db"))
    for name in ("web", "db"):
        await place.pod(name, "left")
    await place.rounds()
    assert sorted(await place.pods()) == ["db", "web"]
    assert await place.pods("?labelSelector=app%3Dweb") == ["web"]
    assert await place.pods("?fieldSelector=metadata.name%3Ddb") == ["db"]
    assert await place.pods("?fieldSelector=spec.nodeName%3Dright") == []
    code, found = await place.inside.ask("GET", f"{ROOT}/namespaces/kube-system/pods")
    assert (code, found["items"]) == (200, [])
    code, found = await place.inside.ask("GET", f"{ROOT}/nodes?labelSelector=zone%3Dright")
    assert (code, found["items"]) == (200, [])


async def test_before_anybody_was_asked_twice_it_is_unavailable_and_then_not_found(place: Metered) -> None:
    await place.pod("web", "left")
    for path in ("/pods", "/nodes", "/namespaces/default/pods/web"):
        code, answer = await place.inside.ask("GET", ROOT + path)
        assert (code, answer["reason"]) == (503, "ServiceUnavailable")
    await place.rounds()
    assert await place.pods() == []
    code, answer = await place.inside.ask("GET", f"{ROOT}/namespaces/default/pods/web")
    assert (code, answer["message"]) == (404, 'pods.metrics.k8s.io "web" not found')
    code, answer = await place.inside.ask("GET", f"{ROOT}/nodes/nobody")
    assert (code, answer["message"]) == (404, 'nodes.metrics.k8s.io "nobody" not found')


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/namespaces/default/pods"), ("DELETE", "/nodes/left"), ("GET", "/pods?watch=1")]
)
async def test_nothing_can_be_done_but_look(place: Metered, method: str, path: str) -> None:
    code, answer = await place.inside.ask(method, ROOT + path, {} if method == "POST" else None)
    assert (code, answer["reason"]) == (405, "MethodNotAllowed")


async def test_it_is_found_by_discovery(place: Metered) -> None:
    code, found = await place.inside.ask("GET", ROOT)
    assert code == 200
    assert [(one["name"], one["kind"], one["namespaced"], one["verbs"]) for one in found["resources"]] == [
        ("nodes", "NodeMetrics", False, ["get", "list"]),
        ("pods", "PodMetrics", True, ["get", "list"]),
    ]
    code, groups = await place.inside.ask("GET", "/apis")
    assert "metrics.k8s.io" in [one["name"] for one in groups["groups"]]
    code, _ = await place.inside.ask("GET", "/openapi/v3/apis/metrics.k8s.io/v1beta1")
    assert code == 200


async def test_who_may_see_pods_may_not_see_what_they_use_unless_they_are_told_so(place: Metered) -> None:
    await place.rounds()
    code, _ = await place.inside.ask("GET", f"{ROOT}/namespaces/default/pods", user=User("anna"))
    assert code == 403
    role = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "anna"}]
    body = {"metadata": {"name": "anna"}, **role, "subjects": subjects}
    code, _ = await place.inside.ask("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", body)
    assert code == 201
    code, _ = await place.inside.ask("GET", f"{ROOT}/namespaces/default/pods", user=User("anna"))
    assert code == 200
    code, _ = await place.inside.ask("GET", f"{ROOT}/nodes", user=User("anna"))
    assert code == 403


# Hostile nodes, and dead ones.


async def test_what_a_node_says_of_other_nodes_pods_counts_for_nothing(place: Metered) -> None:
    await place.node("left", saying("web", cpu=lambda: place.used))
    await place.node("right", saying("web", "made-up", cpu=lambda: place.used * 1000))
    await place.pod("web", "left")
    await place.rounds()
    code, listed = await place.inside.ask("GET", f"{ROOT}/pods")
    (web_metrics,) = listed["items"]
    assert (code, web_metrics["containers"][0]["usage"]["cpu"]) == (200, "250m")


async def never(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"# and so on\n" * 1000)
        await asyncio.sleep(0)  # for whoever reads it, in the same loop


async def long_lined(request: web.Request) -> web.StreamResponse:
    return web.Response(text="x" * 100_000)


async def elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("https://127.0.0.1:1/")


async def cut_off(request: web.Request) -> web.StreamResponse:
    return web.Response(text=line("web", 1e9))


@pytest.mark.parametrize("hostile", [never, endless, long_lined, elsewhere, cut_off])
async def test_a_node_that_answers_nonsense_or_nothing_hurts_nobody_else(
    place: Metered, monkeypatch: pytest.MonkeyPatch, hostile: Handler
) -> None:
    monkeypatch.setattr(sampling, "PATIENCE", 0.5)
    for index in range(sampling.DOUBTED_AT_ONCE + 2):
        await place.node(f"hostile-{index}", hostile)
    await place.node("left", saying("web", cpu=lambda: place.used))
    await place.pod("web", "left")
    await place.pod("victim", "hostile-0")
    async with asyncio.timeout(20):
        await place.rounds(3)
    assert await place.pods() == ["web"]


async def test_a_node_that_nobody_listens_for_is_asked_again_and_heard_when_it_is_back(place: Metered) -> None:
    await place.registered(Place("left", "127.0.0.1", 1))
    await place.pod("web", "left")
    await place.rounds(2)
    assert await place.pods() == []
    await place.inside.ask("DELETE", "/api/v1/nodes/left")
    await place.node("left", saying("web"))
    await place.rounds(2)
    assert await place.pods() == ["web"]

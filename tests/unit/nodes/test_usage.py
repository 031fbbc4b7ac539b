"""What a node says of what it and its pods use: as a kubelet says it, over real TLS, with simulated guests."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from herder.api.core import Pod
from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.nodes.endpoint import Endpoint, server_tls
from herder.nodes.endpoint.callers import Caller, Wanted
from herder.nodes.endpoint.usage import Usages
from herder.nodes.plain import PlainPods
from herder.nodes.work import Work
from herder.pki.authority import Authority
from tests.unit.nodes.test_endpoint import CALLER, PLAIN, Node, Rig

RESOURCE, SUMMARY = "/metrics/resource", "/stats/summary"


class Noting:
    """Lets everybody in, and notes what they wanted."""

    def __init__(self) -> None:
        self.asked: list[Wanted] = []

    async def refusal(self, caller: Caller, wanted: Wanted) -> str:
        self.asked.append(wanted)
        return "" if caller.name == CALLER else "no"


class Usage(Rig):
    callers = Noting()
    endpoint: Endpoint

    async def samples(self) -> dict[str, dict[str, float]]:
        """By name, then by what is in the labels."""
        code, text = await self.get(RESOURCE)
        assert code == 200, text
        found: dict[str, dict[str, float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, {})["/".join(value for _, value in sorted(sample.labels.items()))] = sample.value
        return found


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Usage]:
    authority, node = Authority.make(), Node()
    files = {"ca.pem": authority.pair.certificate, **dict(zip(("s.crt", "s.key"), authority.server(("127.0.0.1",)), strict=True))}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    callers = Noting()
    endpoint = Endpoint(server_tls(tmp_path / "s.crt", tmp_path / "s.key", tmp_path / "ca.pem"), callers, RealWorld())
    endpoint.add(node)
    await endpoint.start(listen_on("the test", "127.0.0.1", 0))
    await node.guests.start(node.pods["web"][0])
    await node.plain.start(node.pods["plain"][0])
    await asyncio.sleep(0.05)
    rig = Usage(tmp_path, authority, endpoint.port, node)
    rig.callers, rig.endpoint = callers, endpoint
    yield rig
    await endpoint.stop()


async def test_a_node_tells_what_its_pods_use_in_a_kubelets_words(rig: Usage) -> None:
    samples = await rig.samples()
    assert set(samples) == {
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_start_time_seconds",
        "node_cpu_usage_seconds_total",
        "node_memory_working_set_bytes",
        "pod_cpu_usage_seconds_total",
        "pod_memory_working_set_bytes",
        "resource_scrape_error",
    }
    assert samples["container_memory_working_set_bytes"] == {"compute/shop/web": 64 << 20, "compute/shop/plain": 64 << 20}
    assert samples["pod_memory_working_set_bytes"] == {"shop/web": 64 << 20, "shop/plain": 64 << 20}
    assert samples["node_memory_working_set_bytes"] == {"": 128 << 20}
    assert samples["resource_scrape_error"] == {"": 0}
    assert 0 < samples["pod_cpu_usage_seconds_total"]["shop/web"] < 1


async def test_the_labels_and_the_times_are_a_kubelets(rig: Usage) -> None:
    _, text = await rig.get(RESOURCE)
    lines = [line for line in text.splitlines() if "web" in line]
    assert lines[0].startswith('container_cpu_usage_seconds_total{container="compute",namespace="shop",pod="web"} ')
    timed = {line.partition("{")[0]: len(line.rpartition("}")[2].split()) for line in lines}
    assert timed == {
        "container_cpu_usage_seconds_total": 2,
        "container_memory_working_set_bytes": 2,
        "container_start_time_seconds": 1,
        "pod_cpu_usage_seconds_total": 2,
        "pod_memory_working_set_bytes": 2,
    }


async def test_the_summary_has_the_same_numbers(rig: Usage) -> None:
    code, text = await rig.get(SUMMARY)
    assert code == 200
    summary = json.loads(text)
    assert summary["node"]["nodeName"] == "node-1"
    assert summary["node"]["memory"]["workingSetBytes"] == 128 << 20
    web = next(one for one in summary["pods"] if one["podRef"]["name"] == "web")
    assert web["podRef"] == {"name": "web", "namespace": "shop", "uid": "web-uid"}
    (compute,) = web["containers"]
    assert compute["name"] == "compute"
    assert compute["cpu"] == web["cpu"]
    assert 0 < web["cpu"]["usageCoreNanoSeconds"] < 1e9
    assert web["startTime"].endswith("Z") and web["cpu"]["time"].endswith("Z")


async def test_who_asks_needs_the_rights_that_a_kubelet_asks_for(rig: Usage) -> None:
    for path in (RESOURCE, SUMMARY, "/healthz"):
        await rig.get(path)
    assert rig.callers.asked == [Wanted("get", "node-1", "metrics"), Wanted("get", "node-1", "stats"), Wanted("get")]


@pytest.mark.parametrize("path", [RESOURCE, SUMMARY])
async def test_who_may_not_ask_hears_nothing(rig: Usage, path: str) -> None:
    async with rig.session(rig.authority.client("metrics-reader", ())) as session, session.get(path) as answer:
        assert (answer.status, await answer.text()) == (403, "no")


async def test_where_several_nodes_answer_one_has_to_be_named(rig: Usage) -> None:
    other = Node()
    other.name = "node-2"
    other.pods.clear()
    rig.endpoint.add(other)
    code, text = await rig.get(RESOURCE)
    assert (code, text) == (400, "several nodes answer here, or none does; name one of them: ?node=NAME")
    code, text = await rig.get(f"{RESOURCE}?node=node-2")
    assert code == 200 and "pod_cpu_usage_seconds_total" not in text and "node_cpu_usage_seconds_total 0.0 " in text
    code, text = await rig.get(f"{RESOURCE}?node=node-2&node=node-1&node=node-3")
    assert code == 200 and [line for line in text.splitlines() if line.startswith("# node ")] == ["# node node-2", "# node node-1"]
    assert text.endswith("resource_scrape_error 0\n") and text.count("resource_scrape_error 0") == 2
    assert rig.callers.asked[-1] == Wanted("get", "", "metrics"), "several are every node's"
    code, text = await rig.get(f"{RESOURCE}?{'&'.join(f'node=n{number}' for number in range(101))}")
    assert (code, text) == (400, "node: 101 of them are asked for, at most 100 may be")
    code, text = await rig.get(f"{RESOURCE}?node=node-3")
    assert (code, text) == (404, "node 'node-3' is none of this process")


class Clock:
    time = 1000.0

    def now(self) -> float:
        return self.time


def with_containers(name: str, count: int) -> Pod:
    containers = [{"name": f"c{index}", "image": "app"} for index in range(count)]
    return msgspec.convert({"metadata": {**PLAIN["metadata"], "name": name, "uid": name}, "spec": {"containers": containers}}, Pod)


async def test_what_a_node_has_used_never_falls_when_pods_go() -> None:
    clock = Clock()
    plain = PlainPods(clock)  # pyright: ignore[reportArgumentType]
    usages = Usages(clock)  # pyright: ignore[reportArgumentType]
    pods: list[tuple[Pod, Work]] = [(with_containers(name, 1), plain) for name in ("a", "b")]
    for one, _ in pods:
        await plain.start(one)
    clock.time += 100
    before = usages.measure("n", pods)
    assert round(before.usage.cpu_seconds, 6) == 2.0
    await plain.remove("b")
    clock.time += 100
    after = usages.measure("n", pods)
    assert round(after.usage.cpu_seconds, 6) == 3.0
    assert [one.name for one in after.pods] == ["a"]


async def test_the_containers_of_a_pod_share_what_it_uses() -> None:
    clock = Clock()
    plain = PlainPods(clock)  # pyright: ignore[reportArgumentType]
    both = with_containers("a", 2)
    await plain.start(both)
    clock.time += 100
    (usage,) = Usages(clock).measure("n", [(both, plain)]).pods  # pyright: ignore[reportArgumentType]
    assert [(one.name, one.usage.memory_bytes, round(one.usage.cpu_seconds, 6)) for one in usage.containers] == [
        ("c0", 32 << 20, 0.5),
        ("c1", 32 << 20, 0.5),
    ]


async def test_a_pod_that_has_not_started_is_not_told_of(rig: Usage) -> None:
    assert "later" not in (await rig.get(RESOURCE))[1]

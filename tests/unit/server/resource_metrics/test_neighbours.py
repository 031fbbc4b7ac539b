"""Nodes that are in one place: our own agents are asked for all of them on one connection, and nobody else is taken for them."""

from typing import Any

import msgspec
import pytest
from aiohttp import web

from herder.pki.authority import Pair
from herder.server.kubelets import Kubelets, NodeAnswer, Place
from herder.server.node_identity import AGENTS, problem_with
from herder.server.resource_metrics.neighbours import Neighbours
from herder.server.store import Record
from tests.unit.server.node_servers import Handler, node_pair
from tests.unit.server.resource_metrics.test_sampler import ROOT, Metered, saying
from tests.unit.server.resource_metrics.test_sampler import place as metered  # a fixture

__all__ = ["metered"]
NAMES = ("one", "two", "three")


class Seen:
    """Counts connections and questions."""

    def __init__(self) -> None:
        self.connections: set[object] = set()
        self.asked: list[str] = []
        self.questions = 0
        self.untold: set[str] = set()

    def answering(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.connections.add(request.transport)
            self.asked += (names := request.query.getall("node"))
            self.questions += 1
            said = await handler(request)
            assert isinstance(said, web.Response)
            parts = "".join(f"# node {name}\n{said.text}" for name in names if name not in self.untold)
            return said if len(names) == 1 else web.Response(text=parts)

        return answer


@pytest.fixture
def seen() -> Seen:
    return Seen()


async def in_one_place(metered: Metered, pair: Pair, handler: Handler, *names: str) -> Place:
    place = await metered.stack.enter_async_context(metered.cluster.node(names[0], pair, handler))
    for name in names:
        await metered.registered(Place(name, place.host, place.port))
    return place


async def nodes_told_of(metered: Metered) -> list[str]:
    code, listed = await metered.inside.ask("GET", f"{ROOT}/nodes")
    assert code == 200
    return sorted(one["metadata"]["name"] for one in listed["items"])


async def test_our_own_agents_are_asked_for_all_their_nodes_at_once_on_a_connection_that_is_kept(
    metered: Metered, seen: Seen
) -> None:
    agents = metered.cluster.authority.client(AGENTS, (), hosts=("127.0.0.1",))
    await in_one_place(metered, agents, seen.answering(saying("web", cpu=lambda: metered.used)), *NAMES)
    await metered.pod("web", "two")
    await metered.rounds(3)
    assert sorted(seen.asked) == sorted(NAMES * 3)
    assert (seen.questions, len(seen.connections)) == (3, 1)
    assert await nodes_told_of(metered) == sorted(NAMES)
    # Each part is one node's word, which counts for the pods of that node.
    code, told = await metered.inside.ask("GET", f"{ROOT}/namespaces/default/pods/web")
    assert (code, told["containers"][0]["usage"]["cpu"]) == (200, "250m")


async def test_a_node_that_the_agents_leave_out_is_asked_by_itself_until_they_tell_of_it(metered: Metered, seen: Seen) -> None:
    agents = metered.cluster.authority.client(AGENTS, (), hosts=("127.0.0.1",))
    await in_one_place(metered, agents, seen.answering(saying(cpu=lambda: metered.used)), *NAMES)
    seen.untold = {"two"}
    await metered.rounds(2)
    assert seen.questions == 1 + 2
    seen.untold.clear()
    await metered.rounds(1)
    assert await nodes_told_of(metered) == sorted(NAMES)
    assert len(seen.connections) <= 2


async def test_a_node_that_says_it_is_where_another_is_keeps_nobody_from_hearing_of_that_one(
    metered: Metered, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[str] = []
    get = Kubelets.get

    async def noting(self: Kubelets, place: Place, *rest: Any, **more: Any) -> NodeAnswer:
        sought.append(place.answerer)
        return await get(self, place, *rest, **more)

    monkeypatch.setattr(Kubelets, "get", noting)
    honest = node_pair(metered.cluster.authority, "honest")
    await in_one_place(metered, honest, seen.answering(saying(cpu=lambda: metered.used)), "honest", "liar")
    await metered.rounds(3)
    assert await nodes_told_of(metered) == ["honest"]
    assert set(seen.asked) == {"honest"}
    # Each question on a connection of its own, as to any node, from the second time on.
    assert len(seen.connections) == len(seen.asked) == 2
    assert sought.count(AGENTS) == 1, "that our own agents are not there is known from then on"


async def test_a_node_that_leaves_its_neighbour_is_asked_by_itself_again(metered: Metered, seen: Seen) -> None:
    agents = metered.cluster.authority.client(AGENTS, (), hosts=("127.0.0.1",))
    await in_one_place(metered, agents, seen.answering(saying(cpu=lambda: metered.used)), "one", "two")
    await metered.rounds(2)
    before = len(seen.connections)
    code, _ = await metered.inside.ask("DELETE", "/api/v1/nodes/two")
    assert code == 200
    await metered.rounds(2)
    assert len(seen.connections) == before + 2, "one for each question"


def test_a_question_has_so_many_nodes_and_so_many_letters_at_most() -> None:
    neighbours = Neighbours()
    status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
    long = [f"{number:03d}-{'n' * 240}" for number in range(40)]
    short = [f"s{number}" for number in range(120)]
    for revision, name in enumerate([*long, *short, "elsewhere"]):
        where = status if name != "elsewhere" else {}
        raw = msgspec.json.encode({"metadata": {"name": name, "uid": name}, "status": where})
        assert neighbours.see(Record(name, revision + 1, raw))
    groups = neighbours.groups([*long, *short, "elsewhere"], {"s7"})
    assert sorted(name for group in groups for name in group) == sorted([*long, *short, "elsewhere"])
    assert max(len(group) for group in groups) == 50
    assert max(sum(map(len, group)) for group in groups) <= 4000
    assert ("s7",) in groups and ("elsewhere",) in groups


def test_nobody_but_the_agents_is_the_agents() -> None:
    def subject(name: str, *groups: str) -> dict[str, object]:
        return {"subject": ((("commonName", name),), *((("organizationName", group),) for group in groups))}

    assert problem_with(subject(AGENTS), AGENTS) == ""
    assert problem_with(subject(AGENTS), "one") == ""
    assert problem_with(subject("system:node:one", "system:nodes"), "one") == ""
    for name in ("system:node:one", f"system:node:{AGENTS}"):
        assert problem_with(subject(name, "system:nodes"), AGENTS) != ""

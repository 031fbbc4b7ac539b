"""What a node can make of being asked: an answer of its own, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from herder.app.data_directory import DataDirectory
from herder.app.refusal import Refusal
from herder.app.users import NewUser, add
from herder.pki.authority import Authority
from herder.server.fairness import NodeWaits
from herder.server.kubelets import LONGEST_REFUSAL, Kubelets, Place
from herder.server.node_identity import AGENTS
from herder.server.request import User
from herder.server.status import ApiError
from tests.unit.server.node_servers import LOG, QUICK, Cluster, node_pair

ANNA, BERT = User("anna"), User("bert")
CHANNEL = "v4.channel.k8s.io"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


async def says_log(_: web.Request) -> web.StreamResponse:
    return web.Response(text="its log\n")


async def asked(kubelets: Kubelets, place: Place, user: User = ANNA) -> str:
    answer = await kubelets.get(place, LOG, {}, user)
    try:
        return b"".join([piece async for piece in answer.pieces()]).decode()
    finally:
        answer.close()


async def refused(kubelets: Kubelets, place: Place, *, console: bool = False) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await (kubelets.connect(place, LOG, {}, ANNA, CHANNEL) if console else kubelets.get(place, LOG, {}, ANNA))
    return raised.value


# Who answers.


async def test_a_node_is_heard_by_its_own_certificate_and_the_agents_of_herder_up_by_theirs(cluster: Cluster) -> None:
    async with cluster.engine() as kubelets:
        for pair in (node_pair(cluster.authority, "left"), cluster.authority.server(("127.0.0.1",), name=AGENTS)):
            async with cluster.node("left", pair, says_log) as place:
                assert await asked(kubelets, place) == "its log\n"


@pytest.mark.parametrize("shown", ["another node", "the engine itself", "a node by name only", "another authority"])
async def test_nobody_else_is_asked_though_the_address_fits(cluster: Cluster, shown: str) -> None:
    pairs = {
        "another node": cluster.authority.client("system:node:right", ("system:nodes",), hosts=("left", "127.0.0.1")),
        "the engine itself": cluster.authority.server(("127.0.0.1", "left")),
        "a node by name only": cluster.authority.client("system:node:left", (), hosts=("left", "127.0.0.1")),
        "another authority": node_pair(Authority.make(), "left"),
    }
    heard: list[str] = []

    async def listens(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        return web.Response(text="the log of somebody else")

    async with cluster.engine() as kubelets, cluster.node("left", pairs[shown], listens) as place:
        for console in (False, True):
            refusal = await refused(kubelets, place, console=console)
            assert (refusal.code, refusal.reason) == (500, "InternalError")
            assert f"node left does not answer at 127.0.0.1:{place.port}" in refusal.message
        assert not heard
    if shown == "another node":
        assert "who answers there is system:node:right, and not system:node:left in system:nodes" in refusal.message


async def test_what_was_opened_to_one_node_is_not_used_for_another_that_claims_the_same_address(cluster: Cluster) -> None:
    async with cluster.engine() as kubelets, cluster.left(says_log) as place:
        assert await asked(kubelets, place) == "its log\n"
        assert "who answers there is system:node:left" in (await refused(kubelets, Place("right", place.host, place.port))).message


@pytest.mark.parametrize("groups", [(), ("system:nodes",), ("system:masters",)])
def test_the_name_of_the_agents_is_given_to_nobody(tmp_path: Path, groups: tuple[str, ...]) -> None:
    directory = DataDirectory(tmp_path)
    directory.pki.mkdir()
    Authority.open(directory.pki)
    with pytest.raises(Refusal):
        add(NewUser(AGENTS, groups, 1), directory, tmp_path / "config")


# Where it leads.


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("console", [False, True], ids=["log", "console"])
async def test_a_node_that_sends_us_elsewhere_is_not_obeyed(cluster: Cluster, code: int, console: bool) -> None:
    heard: list[str] = []

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        heard.append(request.path)
        return web.Response(text="a secret")

    async with cluster.engine() as kubelets, cluster.node("right", node_pair(cluster.authority, "right"), elsewhere) as right:

        async def leads(_: web.Request) -> web.StreamResponse:
            return web.Response(status=code, headers={"Location": f"https://127.0.0.1:{right.port}{LOG}"})

        async with cluster.left(leads) as left:
            refusal = await refused(kubelets, left, console=console)
    assert (refusal.code, refusal.reason) == (502, "InternalError")
    assert refusal.message == (
        f"node left gave no answer of its own: it answered {code}, which leads elsewhere, and that is never followed"
    )
    assert not heard


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_no_proxy_of_the_environment_is_in_between(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    async with cluster.engine() as kubelets, cluster.left(says_log) as place:
        assert await asked(kubelets, place) == "its log\n"


@pytest.mark.parametrize("host", ["not a host", "127.0.0.1/x?", "[::1", "a" * 300, "x@127.0.0.1"])
async def test_an_address_that_makes_no_sense_is_named(cluster: Cluster, host: str) -> None:
    async with cluster.engine() as kubelets:
        refusal = await refused(kubelets, Place("left", host, 1))
        assert refusal.code == 500
        assert "node left does not answer" in refusal.message


async def test_a_name_that_no_certificate_can_hold_is_no_bug_of_ours(cluster: Cluster) -> None:
    async with cluster.engine() as kubelets, cluster.left(says_log) as place:
        refusal = await refused(kubelets, Place("n" * 200, place.host, place.port))
        assert refusal.code == 500


# What it says.


async def test_of_a_refusal_without_an_end_only_the_beginning_is_read(cluster: Cluster) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=404)
        await response.prepare(request)
        while True:
            await response.write(b"no " * 20_000)
            sent += 60_000

    async with cluster.engine() as kubelets, cluster.left(endless) as place:
        refusal = await refused(kubelets, place)
    assert (refusal.code, refusal.reason) == (404, "NotFound")
    assert len(refusal.message) <= LONGEST_REFUSAL
    # No more than the buffers of both sides hold.
    assert sent < 20_000_000


async def test_a_refusal_in_strange_letters_is_told_and_one_that_is_the_nodes_own_trouble_is_no_refusal(cluster: Cluster) -> None:
    async def strange(_: web.Request) -> web.StreamResponse:
        return web.Response(status=401, body=b"\xff\xfe who?", headers={"Content-Type": "text/plain; charset=no-such-letters"})

    async with cluster.engine() as kubelets, cluster.left(strange) as place:
        refusal = await refused(kubelets, place)
    # 401 would tell the client that we do not know who it is.
    assert (refusal.code, refusal.reason) == (502, "InternalError")
    assert refusal.message.startswith("node left answered 401: ")


@pytest.mark.parametrize("console", [False, True], ids=["log", "console"])
async def test_a_node_that_does_not_begin_to_answer_is_given_up(cluster: Cluster, console: bool) -> None:
    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    waits = NodeWaits(20, 40)
    quick = type(QUICK)(connect=0.2, head=0.2, piece=0.2)
    async with cluster.engine(waits, quick) as kubelets, cluster.left(silent) as place:
        refusal = await refused(kubelets, place, console=console)
    assert (refusal.code, "it took too long" in refusal.message) == (500, True)
    assert waits.open == 0


async def test_so_is_one_that_says_nothing_in_the_handshake(cluster: Cluster) -> None:
    async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    async with cluster.engine(patience=type(QUICK)(connect=0.2, head=0.2)) as kubelets:
        refusal = await refused(kubelets, Place("left", "127.0.0.1", server.sockets[0].getsockname()[1]))
    server.close()
    assert refusal.code == 500


@pytest.mark.slow
async def test_a_log_that_is_followed_may_be_quiet_and_one_that_is_not_ends(cluster: Cluster) -> None:
    go_on = asyncio.Event()

    async def pauses(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first ")
        await go_on.wait()
        await response.write(b"last")
        return response

    async with cluster.engine(patience=QUICK) as kubelets, cluster.left(pauses) as place:
        assert await asked(kubelets, place) == "first "
        answer = await kubelets.get(place, LOG, {}, ANNA, endless=True)
        pieces = answer.pieces()
        assert await anext(pieces) == b"first "
        rest = asyncio.ensure_future(anext(pieces))
        # Whoever is not followed would have been given up by now.
        assert await asked(kubelets, place) == "first "
        assert not rest.done()
        go_on.set()
        assert await rest == b"last"
        answer.close()


# How many.


async def test_a_silent_node_takes_no_more_than_its_places_and_one_user_half_of_them(cluster: Cluster) -> None:
    release = asyncio.Event()

    async def waits_long(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response(text="at last")

    waits = NodeWaits(per_node=4, in_all=8)
    async with cluster.engine(waits) as kubelets, cluster.left(waits_long) as left:
        waiting = [asyncio.ensure_future(asked(kubelets, left)) for _ in range(2)]
        await asyncio.sleep(0)
        refusal = await refused(kubelets, left)
        assert (refusal.code, refusal.reason) == (429, "TooManyRequests")
        assert refusal.message.startswith("2 logs and consoles of node left are open for anna, and there may be 2")
        waiting += [asyncio.ensure_future(asked(kubelets, left, BERT)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="4 logs and consoles of node left are open, and there may be 4"):
            await asked(kubelets, left, User("carl"))
        async with cluster.node("right", node_pair(cluster.authority, "right"), says_log) as right:
            assert await asked(kubelets, right) == "its log\n"
        release.set()
        assert await asyncio.gather(*waiting) == ["at last"] * 4
    assert waits.open == 0


def test_the_accounts_of_one_namespace_have_one_share() -> None:
    waits = NodeWaits(per_node=4, in_all=100)
    for name in ("one", "two"):
        waits.enter("left", User(f"system:serviceaccount:shop:{name}"))
    with pytest.raises(ApiError, match="open for system:serviceaccount:shop,"):
        waits.enter("left", User("system:serviceaccount:shop:three"))
    waits.enter("left", User("system:serviceaccount:other:one"))

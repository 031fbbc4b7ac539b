"""Who comes to a node with a token: over real TLS, with an API server that knows some tokens and counts what it is asked."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from herder.api.world import RealWorld
from herder.app.address import listen_on
from herder.kube.client import Client
from herder.kube.errors import Unreachable
from herder.kube.transport import Call, Reply
from herder.net.crowd import Limits
from herder.nodes.endpoint import Endpoint, Reviewed, Tokens, server_tls
from herder.nodes.endpoint import tokens as module
from herder.nodes.endpoint.callers import Wanted
from herder.nodes.endpoint.remembered import Allowance, Rate, Remembered
from herder.nodes.endpoint.tokens import Refused, bearer
from herder.pki.authority import Authority
from tests.unit.nodes.test_endpoint import CALLER, LOG, Node, Rig

METRICS = "/metrics/resource"
SCRAPER = "system:serviceaccount:kube-system:metrics-server"
GOOD = {"good": SCRAPER, "tenant": "system:serviceaccount:shop:default"}
WANTED = Wanted("get", "node-1", "metrics")
EXTRA = {"authentication.kubernetes.io/pod-name": ["metrics-server-0"]}


class ApiServer:
    """Transport and API server in one: `metrics-server` may see what is measured, nobody else may do anything."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.reviews: list[dict[str, Any]] = []
        self.at_once = self.most_at_once = 0
        self.answers = True

    async def send(self, call: Call) -> Reply:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        review = msgspec.json.decode(call.body)
        self.asked[review["kind"]] += 1
        self.reviews.append(review["spec"])
        if not self.answers:
            raise Unreachable("nobody answers")
        status = self._whose(review["spec"]) if review["kind"] == "TokenReview" else self._may(review["spec"])
        return Reply(201, msgspec.json.encode({**review, "status": status}))

    def _whose(self, spec: dict[str, Any]) -> dict[str, Any]:
        name = GOOD.get(spec["token"].partition("-")[0])
        if name is None:
            return {"user": {}, "error": "invalid bearer token"}
        groups = ["system:serviceaccounts", "system:authenticated"]
        return {"authenticated": True, "user": {"username": name, "uid": "u1", "groups": groups, "extra": EXTRA}}

    def _may(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": spec["user"] == SCRAPER and spec["resourceAttributes"]["subresource"] == "metrics"}


class Clock:
    time = 1000.0

    def __call__(self) -> float:
        return self.time


class Door(Rig):
    server: ApiServer
    clock: Clock
    endpoint: Endpoint

    @asynccontextmanager
    async def asking(self, token: str | None, path: str = METRICS) -> AsyncGenerator[aiohttp.ClientResponse]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.session(None) as session, session.get(path, headers=headers) as answer:
            yield answer

    async def status(self, token: str | None, path: str = METRICS) -> int:
        async with self.asking(token, path) as answer:
            return answer.status


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    authority, node, server, clock = Authority.make(), Node(), ApiServer(), Clock()
    files = {"ca.pem": authority.pair.certificate, **dict(zip(("s.crt", "s.key"), authority.server(("127.0.0.1",)), strict=True))}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    callers = Reviewed(client(server))
    tls = server_tls(tmp_path / "s.crt", tmp_path / "s.key", tmp_path / "ca.pem", tokens=True)
    endpoint = Endpoint(tls, callers, RealWorld(), Limits(8, 6, 8, 4, 2), Tokens(client(server), callers, clock))
    endpoint.add(node)
    await endpoint.start(listen_on("the test", "127.0.0.1", 0))
    await node.guests.start(node.pods["web"][0])
    door = Door(tmp_path, authority, endpoint.port, node)
    door.server, door.clock, door.endpoint = server, clock, endpoint
    yield door
    await endpoint.stop()


def client(server: ApiServer) -> Client:
    return Client(cast("Any", server), "test")


async def test_a_token_lets_in_whoever_the_api_server_says_it_is_if_they_may(door: Door) -> None:
    async with door.asking("good") as answer:
        assert answer.status == 200
        assert 'pod="web"' in await answer.text()
    whose, may = door.server.reviews
    assert whose == {"token": "good"}, "the audiences are the API server's own"
    assert may["user"] == SCRAPER
    assert (may["uid"], may["extra"]) == ("u1", EXTRA)
    assert may["groups"] == ["system:serviceaccounts", "system:authenticated"]
    assert may["resourceAttributes"] == {
        "verb": "get",
        "version": "v1",
        "resource": "nodes",
        "subresource": "metrics",
        "name": "node-1",
    }


@pytest.mark.parametrize("path", [METRICS, "/healthz", LOG, "/no/such/path", "/stats/summary"])
@pytest.mark.parametrize("token", [None, "", "unheard-of", "gööd"])
async def test_nobody_without_a_certificate_or_a_good_token_gets_anything(door: Door, token: str | None, path: str) -> None:
    async with door.asking(token, path) as answer:
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert (await answer.text()).startswith(("who asks has to say who they are", module.UNKNOWN))
    assert door.server.asked["SubjectAccessReview"] == 0


async def test_a_good_token_of_somebody_who_may_not_is_forbidden(door: Door) -> None:
    async with door.asking("tenant") as answer:
        assert (answer.status, await answer.text()) == (403, f"{GOOD['tenant']!r} may not get nodes/metrics node-1")
    assert await door.status("good", LOG) == 403


async def test_a_certificate_still_has_to_be_of_the_clusters_authority_and_counts_before_a_token(door: Door) -> None:
    strange = Authority.make().client(CALLER, ())
    async with door.session(strange) as session:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await session.get(METRICS, headers={"Authorization": "Bearer good"})
    assert not door.server.asked
    theirs = door.authority.client("somebody", ())
    async with door.session(theirs) as session, session.get(METRICS, headers={"Authorization": "Bearer good"}) as answer:
        assert (answer.status, await answer.text()) == (403, "'somebody' may not get nodes/metrics node-1")
    assert door.server.asked == {"SubjectAccessReview": 1}


async def test_where_nobody_answers_nobody_is_let_in(door: Door) -> None:
    door.server.answers = False
    async with door.asking("good") as answer:
        assert (answer.status, await answer.text()) == (503, "nobody can say who may look: nobody answers")


async def test_a_node_that_is_none_of_this_process_is_no_new_question(door: Door) -> None:
    for number in range(5):
        assert await door.status("good", f"{METRICS}?node=made-up-{number}") == 404
    assert door.server.asked == {"TokenReview": 1, "SubjectAccessReview": 1}


async def test_connections_of_those_who_are_nobody_are_bounded(door: Door) -> None:
    sessions = [aiohttp.ClientSession(door.base, connector=aiohttp.TCPConnector(ssl=door.tls(None))) for _ in range(12)]
    try:
        for session in sessions:
            async with session.get(METRICS) as answer:
                assert answer.status == 401
        assert door.endpoint.connections <= 8
        assert await door.status("good") == 200
    finally:
        for session in sessions:
            await session.close()


async def test_whoever_comes_with_a_token_has_no_more_than_a_share_of_the_places(door: Door) -> None:
    sessions = [aiohttp.ClientSession(door.base, connector=aiohttp.TCPConnector(ssl=door.tls(None))) for _ in range(7)]
    try:
        for session in sessions:
            async with session.get(METRICS, headers={"Authorization": "Bearer good"}) as answer:
                assert answer.status == 200
        assert door.endpoint.connections <= 4
    finally:
        for session in sessions:
            await session.close()


# What is kept, and for how long.


async def test_the_answers_are_kept_for_two_minutes_and_not_longer_however_often_they_are_used(door: Door) -> None:
    for _ in range(4):
        assert await door.status("good") == 200
        door.clock.time += 35
    assert door.server.asked == {"TokenReview": 1, "SubjectAccessReview": 1}
    assert await door.status("good") == 200
    assert door.server.asked == {"TokenReview": 2, "SubjectAccessReview": 2}


async def test_a_token_does_not_live_longer_by_new_questions(door: Door) -> None:
    assert await door.status("good") == 200
    door.clock.time += 100
    assert await door.status("good", "/stats/summary") == 403
    door.clock.time += 30
    assert await door.status("good", "/stats/summary") == 403
    assert door.server.asked["TokenReview"] == 2


async def test_refusals_are_kept_for_a_shorter_time(door: Door) -> None:
    for token, status in (("unheard-of", 401), ("tenant", 403)):
        assert [await door.status(token) for _ in range(5)] == [status] * 5
    assert door.server.asked == {"TokenReview": 2, "SubjectAccessReview": 1}
    door.clock.time += 11
    assert await door.status("unheard-of") == 401
    assert await door.status("tenant") == 403
    assert door.server.asked == {"TokenReview": 3, "SubjectAccessReview": 2}


# How much strangers may cause.


def tokens(server: ApiServer, clock: Clock) -> Tokens:
    return Tokens(client(server), Reviewed(client(server)), clock)


async def outcome(door: Tokens, token: str, address: str = "10.0.0.1", wanted: Wanted = WANTED) -> int:
    try:
        await door.admit(token, address, wanted)
    except Refused as refused:
        return refused.status
    return 200


@pytest.mark.parametrize("made", ["unheard-of-{}", "tenant-{}"])
async def test_whoever_makes_up_tokens_or_has_many_is_soon_not_asked_for(made: str) -> None:
    server, clock = ApiServer(), Clock()
    door = tokens(server, clock)
    assert await outcome(door, "good") == 200
    seen = Counter([await outcome(door, made.format(number)) for number in range(500)])
    assert seen[429] == 480
    assert server.asked["TokenReview"] == 21
    # Whoever is known stays known, and others are asked for; after a while also those at that address.
    assert await outcome(door, "good") == 200
    assert await outcome(door, "good-too", "10.0.0.2") == 200
    assert await outcome(door, "good-three") == 429
    clock.time += 1
    assert await outcome(door, "good-three") == 200


async def test_from_many_addresses_no_more_comes_than_is_allowed_for_all_together() -> None:
    server, clock = ApiServer(), Clock()
    door = tokens(server, clock)
    for number in range(1000):
        await outcome(door, f"made-up-{number}", f"10.0.{number % 250}.{number // 250}")
    assert server.asked["TokenReview"] == 100
    clock.time += 60
    for number in range(1000, 2000):
        await outcome(door, f"made-up-{number}", f"10.0.{number % 250}.{number // 250}")
    assert server.asked["TokenReview"] == 200


async def test_good_tokens_cost_nothing_of_what_is_allowed() -> None:
    server = ApiServer()
    door = tokens(server, Clock())
    assert {await outcome(door, f"good-{number}") for number in range(300)} == {200}


async def test_many_at_once_with_one_token_are_few_questions() -> None:
    server = ApiServer()
    door = tokens(server, Clock())
    assert set(await asyncio.gather(*(outcome(door, "good") for _ in range(200)))) == {200}
    assert server.asked["TokenReview"] <= module.AT_ONCE
    assert server.most_at_once <= module.AT_ONCE


async def test_an_api_server_in_trouble_is_not_asked_ever_more_often() -> None:
    server = ApiServer()
    door = tokens(server, Clock())
    server.answers = False
    for number in range(100):
        try:
            await door.admit(f"good-{number}", "10.0.0.1", WANTED)
        except Unreachable:
            continue
        except Refused as refused:
            assert refused.status == 429
    assert server.asked["TokenReview"] == 20


def test_what_is_remembered_is_bounded() -> None:
    clock = Clock()
    kept: Remembered[int, int] = Remembered(10, clock, most=100)
    allowance = Allowance(Rate(1, 1.0), Rate(10_000, 1.0), clock, most=100)
    for number in range(1000):
        kept.keep(number, number)
        assert allowance.take(f"10.0.0.{number}")
    assert (len(kept), len(allowance)) == (100, 100)
    assert (kept.get(999), kept.get(0)) == (999, None)
    assert not allowance.take("10.0.0.999")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("Bearerabc", ""),
        ("", ""),
        ("Bearer \udcff", ""),
    ],
)
def test_a_token_is_read_from_what_a_request_says(header: str, token: str) -> None:
    assert bearer(header) == token

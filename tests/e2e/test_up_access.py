"""What somebody gets who only knows the address."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.program import Up
from tests.engines.api import Api
from tests.engines.certificates import Authority
from tests.engines.processes import server_context

OPEN = ["/version", "/healthz", "/livez", "/readyz"]
CLOSED = [
    "/",
    "/api",
    "/apis",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/api/v1/nodes",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/secrets",
    "/apis/kubevirt.io/v1/virtualmachines?watch=true",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "//api/v1/nodes",
    "/version/../api/v1/nodes",
    "/readyz/api",
]


@pytest.fixture
async def stranger(herd: Up, tmp_path: Path) -> AsyncIterator[Api]:
    """Somebody who trusts the server and shows nothing."""
    engine = herd.connection(tmp_path)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server_context(engine))) as session:
        yield Api(engine, session)


@pytest.mark.parametrize("path", OPEN)
async def test_health_and_version_are_open(stranger: Api, path: str) -> None:
    assert (await stranger.request("GET", path)).code == 200


@pytest.mark.parametrize("path", CLOSED)
async def test_everything_else_is_closed(stranger: Api, path: str) -> None:
    reply = await stranger.request("GET", path)
    assert reply.code in (401, 403, 404)
    assert b"node-1" not in reply.raw
    assert b"items" not in reply.raw


async def test_nobody_is_told_what_it_is_made_of(stranger: Api) -> None:
    assert (await stranger.request("GET", "/readyz")).headers["Server"] == "herder"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(stranger: Api, method: str) -> None:
    assert (await stranger.request(method, "/api/v1/namespaces/default/configmaps/a", {})).code == 403


async def test_plain_text_is_not_spoken(herd: Up) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{herd.port}/api/v1/nodes")


async def test_a_certificate_that_somebody_made_opens_nothing(herd: Up, tmp_path: Path) -> None:
    engine = herd.connection(tmp_path)
    folder = tmp_path / "other"
    folder.mkdir()
    mine = Authority(folder).sign("herder-admin", "system:masters")
    context = server_context(engine)
    context.load_cert_chain(mine.certificate, mine.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        try:
            code = (await Api(engine, session).request("GET", "/api/v1/nodes")).code
        except aiohttp.ClientError:
            code = 403  # refused before a word was said
        assert code in (401, 403)

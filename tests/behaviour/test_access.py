"""What a stranger may see."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.behaviour.manifests import config_map
from tests.engines.api import Api
from tests.engines.certificates import Authority
from tests.engines.engine import Engine
from tests.engines.processes import server_context
from tests.engines.resources import CONFIG_MAPS


@pytest.fixture
async def stranger(engine: Engine) -> AsyncIterator[Api]:
    """Somebody who knows the server but shows no certificate."""
    connector = aiohttp.TCPConnector(ssl=server_context(engine))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Api(engine, session)


@pytest.mark.parametrize("path", ["/version", "/healthz", "/readyz", "/livez"])
async def test_health_and_version_are_for_everybody(stranger: Api, path: str) -> None:
    assert (await stranger.request("GET", path)).code == 200


@pytest.mark.parametrize("path", ["/api", "/apis", "/openapi/v3", "/", "/metrics", "/nothing"])
async def test_other_paths_are_not(stranger: Api, path: str) -> None:
    reply = await stranger.request("GET", path)
    assert reply.refused(403, "Forbidden") == {}
    assert reply.message == f'forbidden: User "system:anonymous" cannot get path "{path}"'


@pytest.mark.parametrize(
    ("method", "path", "details", "message"),
    [
        (
            "GET",
            "/api/v1/pods",
            {"kind": "pods"},
            'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope',
        ),
        (
            "GET",
            "/api/v1/namespaces/default/secrets/a",
            {"name": "a", "kind": "secrets"},
            'secrets "a" is forbidden: User "system:anonymous" cannot get resource "secrets" in API group "" '
            'in the namespace "default"',
        ),
        (
            "POST",
            "/apis/apps/v1/namespaces/default/deployments",
            {"group": "apps", "kind": "deployments"},
            'deployments.apps is forbidden: User "system:anonymous" cannot create resource "deployments" in API group "apps" '
            'in the namespace "default"',
        ),
    ],
    ids=["list", "get", "create"],
)
async def test_objects_are_not(stranger: Api, method: str, path: str, details: dict[str, str], message: str) -> None:
    reply = await stranger.request(method, path, {} if method == "POST" else None)
    assert reply.refused(403, "Forbidden") == details
    assert reply.message == message


async def test_a_stranger_learns_nothing_of_what_exists(api: Api, stranger: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("there"), namespace)
    there, not_there = [await stranger.get(CONFIG_MAPS, name, namespace) for name in ("there", "nowhere")]
    assert there.code == not_there.code == 403
    assert there.message.replace("there", "X") == not_there.message.replace("nowhere", "X")


@pytest.mark.parametrize("path", ["/version", "/api/v1/pods"])
async def test_a_token_that_is_none_is_unauthorized(stranger: Api, path: str) -> None:
    reply = await stranger.request("GET", path, headers={"Authorization": "Bearer nonsense"})
    reply.refused(401, "Unauthorized")
    assert reply.message == "Unauthorized"


async def test_a_certificate_of_another_authority_opens_nothing(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> None:
    mine = Authority(tmp_path_factory.mktemp("other")).sign("admin", "system:masters")
    context = server_context(engine)
    context.load_cert_chain(mine.certificate, mine.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        try:
            reply = await Api(engine, session).request("GET", "/api/v1/pods")
        except aiohttp.ClientError:
            return  # refused before a word was said
        assert reply.code in (401, 403)

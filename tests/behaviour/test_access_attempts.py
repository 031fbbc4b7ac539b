"""Trying to get in where one does not belong: by other verbs, other paths, other shapes of the same thing."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from yarl import URL

from tests.behaviour.manifests import config_map
from tests.engines.api import Api
from tests.engines.credentials import grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.processes import client_context, server_context
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, SECRETS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
TREASURE = "dHJlYXN1cmU="


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("thief")


@pytest.fixture
async def thief(engine: Engine, name: str) -> AsyncIterator[Api]:
    async with with_certificate(engine, name, "thieves") as connected:
        yield connected


@pytest.fixture
async def secret(api: Api, namespace: str) -> str:
    body = {"metadata": {"name": "treasure", "labels": {"a": "b"}}, "data": {"gold": TREASURE}}
    (await api.create(SECRETS, body, namespace)).ok  # noqa: B018
    return "treasure"


async def test_one_secret_by_name_does_not_show_the_others(api: Api, thief: Api, name: str, namespace: str, secret: str) -> None:
    (await api.create(SECRETS, {"metadata": {"name": "mine"}}, namespace)).ok  # noqa: B018
    await grant(api, namespace, user(name), rule("get", "secrets", "", "mine"))
    assert (await thief.get(SECRETS, "mine", namespace)).code == 200
    path = SECRETS.path(namespace)
    for attempt in (
        path,
        f"{path}?limit=1",
        f"{path}?watch=true&timeoutSeconds=1",
        f"{path}?watch=1&timeoutSeconds=1",
        f"{path}?fieldSelector=metadata.name%3Dmine",
        f"{path}?labelSelector=a%3Db",
        f"{path}/{secret}",
        f"{path}/{secret}?watch=true",
        f"{path}/{secret}/status",
        f"{path}/mine/../{secret}",
        f"{path}/mine%2F..%2F{secret}",
        f"/api/v1/secrets/{namespace}%2F{secret}",
        "/api/v1/secrets",
        f"/api/v1/secrets?fieldSelector=metadata.namespace%3D{namespace}",
        f"/api/v1/watch/namespaces/{namespace}/secrets?timeoutSeconds=1",
        f"/api/v1/namespaces/{namespace}/secrets/",
        f"/api//v1/namespaces/{namespace}/secrets",
        f"/apis/v1/namespaces/{namespace}/secrets",
    ):
        for accept in ("application/json", TABLE, METADATA, "application/yaml"):
            reply = await _raw(thief, "GET", attempt, accept)
            assert reply[0] in (400, 403, 404, 405, 406), (attempt, accept, reply)
            assert TREASURE.encode() not in reply[1]


async def _raw(api: Api, method: str, path: str, accept: str = "application/json") -> tuple[int, bytes]:
    """The path as it is, with nothing tidied up on the way."""
    url = URL(api.engine.server + path, encoded=True)
    async with api.session.request(method, url, headers={"Accept": accept}) as answer:
        return answer.status, await answer.read()


@pytest.mark.parametrize("verbs", ["list", "watch", "create", "deletecollection"])
async def test_no_verb_stands_for_get(api: Api, thief: Api, name: str, namespace: str, secret: str, verbs: str) -> None:
    await grant(api, namespace, user(name), rule(verbs, "secrets"))
    for method in ("GET", "HEAD"):
        assert (await thief.request(method, SECRETS.path(namespace, secret))).code == 403
    assert (await thief.patch(SECRETS, secret, {"metadata": {"labels": {"x": "y"}}}, namespace)).code == 403
    assert (await thief.update(SECRETS, {"metadata": {"name": secret}}, namespace)).code == 403
    assert (await thief.delete(SECRETS, secret, namespace)).code == 403


async def test_what_may_be_created_cannot_be_read_by_creating_it_again(
    api: Api, thief: Api, name: str, namespace: str, secret: str
) -> None:
    await grant(api, namespace, user(name), rule("create update", "secrets"))
    again = await thief.create(SECRETS, {"metadata": {"name": secret}}, namespace)
    again.refused(409, "AlreadyExists")
    assert TREASURE.encode() not in again.raw
    dry = await thief.update(SECRETS, {"metadata": {"name": secret}, "type": "Other"}, namespace, dryRun="All")
    assert TREASURE.encode() not in dry.raw


async def test_a_dry_run_needs_the_same_rights(thief: Api, namespace: str, secret: str) -> None:
    assert (await thief.create(SECRETS, {"metadata": {"name": "a"}}, namespace, dryRun="All")).code == 403
    assert (await thief.delete(SECRETS, secret, namespace, dryRun="All")).code == 403
    assert (await thief.patch(SECRETS, secret, {}, namespace, dryRun="All")).code == 403


@pytest.mark.parametrize("kind", ["merge", "json", "strategic", "apply"])
async def test_no_kind_of_patch_is_free(thief: Api, namespace: str, kind: str) -> None:
    assert (await thief.patch(CONFIG_MAPS, "a", {}, namespace, kind=kind, fieldManager="me")).code == 403


async def test_what_does_not_exist_is_refused_alike(api: Api, thief: Api, namespace: str, secret: str) -> None:
    there, not_there = await thief.get(SECRETS, secret, namespace), await thief.get(SECRETS, "nothing", namespace)
    assert (there.code, not_there.code) == (403, 403)
    assert there.message.replace(secret, "X") == not_there.message.replace("nothing", "X")
    nowhere = await thief.get(SECRETS, secret, "no-such-namespace")
    assert nowhere.code == 403
    assert (await thief.request("GET", "/apis/no.such.group/v1/things")).code == 403


async def test_a_namespace_cannot_be_left_by_its_name(api: Api, thief: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("*", "*", "*"))
    for attempt in (
        f"/api/v1/namespaces/{namespace}/../kube-system/secrets",
        f"/api/v1/namespaces/{namespace}%2F..%2Fkube-system/secrets",
        "/api/v1/namespaces/kube-system/secrets",
        f"/api/v1/namespaces/{namespace}/nodes",
        "/api/v1/nodes",
        "/api/v1/namespaces",
        "/api/v1/namespaces//secrets",
        "/api/v1/namespaces/*/secrets",
        "/api/v1/namespaces/%2A/secrets",
    ):
        code, body = await _raw(thief, "GET", attempt)
        assert code in (301, 400, 403, 404), (attempt, code, body)
        assert b'"items"' not in body


async def test_rights_in_a_namespace_do_not_delete_or_make_namespaces(
    api: Api, thief: Api, name: str, namespace: str, unique: Callable[..., str]
) -> None:
    await grant(api, namespace, user(name), rule("create update", "namespaces/finalize"), rule("get", "namespaces"))
    assert (await thief.create(NAMESPACES, {"metadata": {"name": unique()}})).code == 403
    assert (await thief.delete(NAMESPACES, namespace)).code == 403
    assert (await thief.delete(NAMESPACES, "default")).code == 403


@pytest.mark.parametrize(
    "header",
    ["Basic YWRtaW46YWRtaW4=", "Bearer", "bearer ", "Negotiate abc", "admin"],
)
async def test_other_ways_to_say_who_one_is_say_nothing(engine: Engine, header: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server_context(engine))) as session:
        reply = await Api(engine, session).list(SECRETS, headers={"Authorization": header})
        assert reply.code in (401, 403)


@pytest.mark.parametrize("header", ["X-Remote-User", "X-Forwarded-User", "Remote-User", "X-Remote-Group"])
async def test_headers_of_proxies_are_not_believed(thief: Api, header: str) -> None:
    assert (await thief.list(SECRETS, headers={header: "system:masters"})).code == 403


async def test_a_certificate_counts_more_than_a_token_that_is_none(engine: Engine) -> None:
    connector = aiohttp.TCPConnector(ssl=client_context(engine))
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": "Bearer nonsense"}) as session:
        assert (await Api(engine, session).list(SECRETS)).code == 200


async def test_an_expired_certificate_opens_nothing(engine: Engine, unique: Callable[..., str]) -> None:
    async with with_certificate(engine, unique("late"), "system:masters", days=-1) as late:
        try:
            code = (await late.list(SECRETS)).code
        except aiohttp.ClientError:
            code = 401  # refused before a word was said
        assert code == 401


async def test_a_certificate_without_a_name_is_nobody(engine: Engine) -> None:
    async with with_certificate(engine, "", "system:masters") as nameless:
        assert (await nameless.list(SECRETS)).code in (401, 403)


async def test_a_name_is_not_a_group(engine: Engine) -> None:
    async with with_certificate(engine, "system:masters", "system:masters-not") as pretender:
        assert (await pretender.list(SECRETS)).code == 403


async def test_labels_and_selectors_are_no_side_channel(api: Api, thief: Api, name: str, namespace: str) -> None:
    (await api.create(CONFIG_MAPS, config_map("hidden", labels={"pin": "1234"}), namespace)).ok  # noqa: B018
    await grant(api, namespace, user(name), rule("get", "configmaps", "", "other"))
    for selector in ("pin=1234", "pin=0000"):
        assert (await thief.list(CONFIG_MAPS, namespace, labelSelector=selector)).code == 403
        assert (await thief.delete_collection(CONFIG_MAPS, namespace, labelSelector=selector)).code == 403

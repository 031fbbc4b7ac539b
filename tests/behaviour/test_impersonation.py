"""`kubectl --as`: only for those who may, and then with the rights of the other and none of one's own."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from tests.engines.api import Api, Json
from tests.engines.credentials import grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.processes import server_context
from tests.engines.resources import CONFIG_MAPS, SECRETS, Resource

WHO_AM_I = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


async def who(api: Api, **headers: str) -> Json:
    return (await api.request("POST", WHO_AM_I.path(), _QUESTION, headers=_named(headers))).ok["status"]["userInfo"]


_QUESTION = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {f"Impersonate-{name.replace('_', '-').title()}": value for name, value in headers.items()}


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("actor")


@pytest.fixture
async def actor(engine: Engine, name: str) -> AsyncIterator[Api]:
    async with with_certificate(engine, name) as connected:
        yield connected


async def test_the_request_is_the_others(api: Api) -> None:
    assert await who(api, user="jane") == {"username": "jane", "groups": ["system:authenticated"]}
    assert await who(api, user="jane", group="devs") == {"username": "jane", "groups": ["devs", "system:authenticated"]}
    assert await who(api, user="jane", uid="7", extra_scopes="view") == {
        "username": "jane",
        "uid": "7",
        "groups": ["system:authenticated"],
        "extra": {"scopes": ["view"]},
    }


async def test_accounts_and_nobody_have_their_groups(api: Api) -> None:
    known = await who(api, user="system:serviceaccount:default:robot")
    assert known["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]


async def test_rights_are_those_of_the_other_alone(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    other = unique("other")
    await grant(api, namespace, user(other), rule("list", "configmaps"))
    as_other = _named({"user": other})
    assert (await api.list(CONFIG_MAPS, namespace, headers=as_other)).code == 200
    reply = await api.list(SECRETS, namespace, headers=as_other)
    reply.refused(403, "Forbidden")
    assert f'User "{other}" cannot list' in reply.message
    nobody = await api.list(CONFIG_MAPS, namespace, headers=_named({"user": "system:anonymous"}))
    assert 'User "system:anonymous"' in nobody.message


async def test_it_has_to_be_allowed(actor: Api, name: str, namespace: str) -> None:
    for headers in ({"user": "jane"}, {"user": name}, {"user": "system:serviceaccount:default:a"}, {"user": "", "group": "x"}):
        reply = await actor.list(CONFIG_MAPS, namespace, headers=_named(headers))
        assert reply.code in (400, 403)
    reply = await actor.list(CONFIG_MAPS, namespace, headers=_named({"user": "jane"}))
    reply.refused(403, "Forbidden")
    assert f'User "{name}" cannot impersonate' in reply.message


async def test_each_part_has_to_be_allowed(api: Api, actor: Api, name: str, namespace: str) -> None:
    await grant(api, "", user(name), rule("impersonate", "users", "", "jane"))
    assert (await who(actor, user="jane"))["username"] == "jane"
    for headers, kind in (
        ({"user": "john"}, "users"),
        ({"user": "jane", "group": "system:masters"}, "groups"),
        ({"user": "jane", "uid": "1"}, "uids"),
        ({"user": "jane", "extra_scopes": "all"}, "userextras"),
        ({"user": "system:serviceaccount:kube-system:default"}, "serviceaccounts"),
    ):
        reply = await actor.list(SECRETS, namespace, headers=_named(headers))
        reply.refused(403, "Forbidden")
        assert f'cannot impersonate resource "{kind}' in reply.message


async def test_an_account_may_be_played_in_its_namespace(api: Api, actor: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("impersonate", "serviceaccounts"))
    assert (await who(actor, user=f"system:serviceaccount:{namespace}:robot"))["username"].endswith(":robot")
    reply = await actor.list(SECRETS, namespace, headers=_named({"user": "system:serviceaccount:kube-system:robot"}))
    assert reply.code == 403


@pytest.mark.parametrize("headers", [{"group": "system:masters"}, {"uid": "1"}, {"extra_a": "b"}], ids=["group", "uid", "extra"])
async def test_a_group_without_a_user_is_nobody(api: Api, headers: dict[str, str]) -> None:
    (await api.list(CONFIG_MAPS, "default", headers=_named(headers))).refused(400, "BadRequest")


async def test_strangers_cannot_become_somebody(api: Api, engine: Engine) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server_context(engine))) as session:
        reply = await Api(engine, session).list(SECRETS, headers=_named({"user": "admin", "group": "system:masters"}))
        reply.refused(403, "Forbidden")
        assert 'User "system:anonymous" cannot impersonate' in reply.message

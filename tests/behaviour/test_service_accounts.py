"""ServiceAccounts: one in every namespace, tokens that say who they are for, and end when they should."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.behaviour.manifests import node, pod
from tests.engines.api import Api, Json
from tests.engines.credentials import account, grant, request_token, rule, token_for, with_certificate, with_token
from tests.engines.engine import Engine
from tests.engines.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from tests.engines.waiting import eventually

ISSUER = "https://kubernetes.default.svc"
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


def claims_of(token: str) -> Json:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def who_is(engine: Engine, token: str) -> Any:
    async with with_token(engine, token) as shown:
        reply = await shown.create(SELF_REVIEWS, {})
        return reply.ok["status"]["userInfo"] if reply.code == 201 else reply.code


@pytest.fixture
async def robot(api: Api, namespace: str) -> AsyncIterator[Json]:
    yield (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)).ok


async def test_every_namespace_has_a_default_account(api: Api, namespace: str) -> None:
    async def there() -> bool:
        return (await api.get(SERVICE_ACCOUNTS, "default", namespace)).code == 200

    await eventually(there)
    first = (await api.get(SERVICE_ACCOUNTS, "default", namespace)).ok["metadata"]["uid"]
    (await api.delete(SERVICE_ACCOUNTS, "default", namespace)).ok  # noqa: B018
    await eventually(there)
    assert (await api.get(SERVICE_ACCOUNTS, "default", namespace)).ok["metadata"]["uid"] != first


async def test_an_account_does_not_keep_its_namespace_from_going(api: Api, namespace: str) -> None:
    (await api.delete(NAMESPACES, namespace)).ok  # noqa: B018

    async def gone() -> bool:
        return (await api.get(NAMESPACES, namespace)).code == 404

    await eventually(gone, patience=30)


async def test_a_token_says_who_it_is_for(api: Api, engine: Engine, namespace: str, robot: Json) -> None:
    answer = await request_token(api, namespace, "robot")
    uid = robot["metadata"]["uid"]
    assert (answer["kind"], answer["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    claims = claims_of(answer["status"]["token"])
    assert claims.pop("jti")
    issued = claims["iat"]
    assert claims == {
        "iss": ISSUER,
        "sub": f"system:serviceaccount:{namespace}:robot",
        "aud": [ISSUER],
        "iat": issued,
        "nbf": issued,
        "exp": issued + 3600,
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": "robot", "uid": uid}},
    }


async def test_a_token_lets_its_account_in(api: Api, engine: Engine, namespace: str, robot: Json) -> None:
    token = await token_for(api, namespace, "robot")
    found = await who_is(engine, token)
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]}
    wanted = {"username": f"system:serviceaccount:{namespace}:robot", "uid": robot["metadata"]["uid"]}
    assert found == {**wanted, "groups": groups, "extra": extra}
    async with with_token(engine, token) as shown:
        assert (await shown.list(CONFIG_MAPS, namespace)).code == 403
        await grant(api, namespace, account(namespace, "robot"), rule("list", "configmaps"))
        assert (await shown.list(CONFIG_MAPS, namespace)).code == 200
        assert (await shown.list(SECRETS, namespace)).code == 403


@pytest.mark.usefixtures("robot")
async def test_a_namesake_in_another_namespace_is_another(
    api: Api, engine: Engine, namespace: str, unique: Callable[..., str]
) -> None:
    other = unique()
    (await api.create(NAMESPACES, {"metadata": {"name": other}})).ok  # noqa: B018
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, other)).ok  # noqa: B018
    await grant(api, namespace, account(namespace, "robot"), rule("list", "configmaps"))
    async with with_token(engine, await token_for(api, other, "robot")) as shown:
        assert (await shown.list(CONFIG_MAPS, namespace)).code == 403


@pytest.mark.usefixtures("robot")
async def test_a_deleted_account_has_no_tokens_and_its_successor_has_others(api: Api, engine: Engine, namespace: str) -> None:
    token = await token_for(api, namespace, "robot")
    assert (await who_is(engine, token))["username"].endswith(":robot")
    (await api.delete(SERVICE_ACCOUNTS, "robot", namespace)).ok  # noqa: B018

    async def refused() -> bool:
        return await who_is(engine, token) == 401

    await eventually(refused, patience=30)
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)).ok  # noqa: B018
    fresh = await token_for(api, namespace, "robot")
    assert (await who_is(engine, fresh))["username"].endswith(":robot")
    assert await who_is(engine, token) == 401


@pytest.mark.usefixtures("robot")
async def test_a_token_bound_to_a_secret_ends_with_it(api: Api, engine: Engine, namespace: str) -> None:
    secret = (await api.create(SECRETS, {"metadata": {"name": "lifeline"}}, namespace)).ok
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "lifeline", "uid": secret["metadata"]["uid"]}
    token = await token_for(api, namespace, "robot", boundObjectRef=reference)
    assert claims_of(token)["kubernetes.io"]["secret"] == {"name": "lifeline", "uid": secret["metadata"]["uid"]}
    assert (await who_is(engine, token))["username"].endswith(":robot")
    (await api.delete(SECRETS, "lifeline", namespace)).ok  # noqa: B018

    async def refused() -> bool:
        return await who_is(engine, token) == 401

    await eventually(refused, patience=30)


@pytest.mark.usefixtures("robot")
async def test_a_token_bound_to_a_pod_tells_of_it_and_ends_with_it(
    api: Api, engine: Engine, namespace: str, unique: Callable[..., str]
) -> None:
    machine = (await api.create(NODES, node(unique("node")))).ok["metadata"]
    made = (await api.create(PODS, pod("a", serviceAccountName="robot", nodeName=machine["name"]), namespace)).ok["metadata"]
    token = await token_for(api, namespace, "robot", boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "a"})
    bound = claims_of(token)["kubernetes.io"]
    assert bound["pod"] == {"name": "a", "uid": made["uid"]}
    assert bound["node"] == {"name": machine["name"], "uid": machine["uid"]}
    extra = (await who_is(engine, token))["extra"]
    about = "authentication.kubernetes.io"
    assert (extra[f"{about}/pod-name"], extra[f"{about}/pod-uid"]) == (["a"], [made["uid"]])
    assert (extra[f"{about}/node-name"], extra[f"{about}/node-uid"]) == ([machine["name"]], [machine["uid"]])
    (await api.delete(PODS, "a", namespace, {"gracePeriodSeconds": 0})).ok  # noqa: B018

    async def refused() -> bool:
        return await who_is(engine, token) == 401

    await eventually(refused, patience=30)


@pytest.mark.usefixtures("robot")
async def test_a_token_for_others_is_none_for_the_server(api: Api, engine: Engine, namespace: str) -> None:
    token = await token_for(api, namespace, "robot", audiences=["vault"])
    assert claims_of(token)["aud"] == ["vault"]
    assert await who_is(engine, token) == 401
    both = await token_for(api, namespace, "robot", audiences=["vault", ISSUER])
    assert (await who_is(engine, both))["username"].endswith(":robot")


@pytest.mark.usefixtures("robot")
async def test_a_token_that_was_touched_is_none(api: Api, engine: Engine, namespace: str) -> None:
    token = await token_for(api, namespace, "robot")
    header, payload, signature = token.split(".")
    claims = {**claims_of(token), "sub": "system:serviceaccount:kube-system:default"}
    forged = _encoded(claims)
    unsigned = _encoded({"alg": "none", "kid": json.loads(base64.urlsafe_b64decode(header + "==="))["kid"]})
    for bad in (
        f"{header}.{forged}.{signature}",
        f"{unsigned}.{payload}.",
        f"{unsigned}.{payload}.{signature}",
        f"{header}.{payload}.{signature[:-8]}AAAAAAAA",
        f"{header}.{payload}",
        token[:-2],
        token + ".x",
    ):
        assert await who_is(engine, bad) == 401, bad


def _encoded(value: Json) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.usefixtures("robot")
@pytest.mark.parametrize(("seconds", "why"), [(599, "less than 10 minutes"), (2**32 + 1, "larger than 2^32 seconds")])
async def test_a_token_lives_neither_too_short_nor_too_long(api: Api, namespace: str, seconds: int, why: str) -> None:
    reply = await api.request("POST", SERVICE_ACCOUNTS.path(namespace, "robot", "token"), _request(expirationSeconds=seconds))
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "spec.expirationSeconds")]
    assert why in reply.message


def _request(**spec: Any) -> Json:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


@pytest.mark.usefixtures("robot")
async def test_a_token_is_bound_to_what_is_there_and_fits(api: Api, namespace: str) -> None:
    path = SERVICE_ACCOUNTS.path(namespace, "robot", "token")
    (await api.create(PODS, pod("other", serviceAccountName="default"), namespace)).ok  # noqa: B018

    async def bound(kind: str, name: str, **more: str) -> Any:
        return await api.request("POST", path, _request(boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name, **more}))

    (await bound("Pod", "nowhere")).refused(404, "NotFound")
    (await bound("Secret", "nowhere")).refused(404, "NotFound")
    other = await bound("Pod", "other")
    other.refused(400, "BadRequest")
    assert "different serviceaccount name" in other.message
    (await bound("ConfigMap", "a")).refused(400, "BadRequest")
    (await api.create(SECRETS, {"metadata": {"name": "s"}}, namespace)).ok  # noqa: B018
    (await bound("Secret", "s", uid="11111111-1111-4111-8111-111111111111")).refused(409, "Conflict")


async def test_there_is_no_token_for_an_account_that_is_not_there(api: Api, namespace: str) -> None:
    reply = await api.request("POST", SERVICE_ACCOUNTS.path(namespace, "nobody", "token"), _request())
    reply.refused(404, "NotFound")
    assert reply.message == 'serviceaccounts "nobody" not found'
    assert (await api.request("GET", SERVICE_ACCOUNTS.path(namespace, "nobody", "token"))).code == 405


@pytest.mark.usefixtures("robot")
async def test_making_a_token_is_a_right_of_its_own(api: Api, engine: Engine, namespace: str, unique: Callable[..., str]) -> None:
    name = unique("maker")
    subject = {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    path = SERVICE_ACCOUNTS.path(namespace, "robot", "token")
    async with with_certificate(engine, name) as maker:
        await grant(api, namespace, subject, rule("*", "serviceaccounts"))
        reply = await maker.request("POST", path, _request())
        reply.refused(403, "Forbidden")
        assert 'cannot create resource "serviceaccounts/token"' in reply.message
        await grant(api, namespace, subject, rule("create", "serviceaccounts/token", "", "robot"))
        assert (await maker.request("POST", path, _request())).code == 201
        assert (await maker.request("POST", SERVICE_ACCOUNTS.path(namespace, "default", "token"), _request())).code == 403

"""Questions about access: may I, may they, who am I, whose token is this."""

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from tests.engines.api import Api, Json
from tests.engines.credentials import grant, rule, token_for, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.processes import server_context
from tests.engines.resources import SERVICE_ACCOUNTS, Resource


def _review(group: str, kind: str, namespaced: bool = False) -> Resource:
    return Resource(group, "v1", f"{kind.lower()}s", kind, namespaced)


MAY_I = _review("authorization.k8s.io", "SelfSubjectAccessReview")
MAY_THEY = _review("authorization.k8s.io", "SubjectAccessReview")
MAY_THEY_HERE = _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True)
MY_RULES = _review("authorization.k8s.io", "SelfSubjectRulesReview")
WHO_AM_I = _review("authentication.k8s.io", "SelfSubjectReview")
WHOSE = _review("authentication.k8s.io", "TokenReview")
GLOBAL = [MAY_I, MAY_THEY, MY_RULES, WHO_AM_I, WHOSE]


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("asker")


@pytest.fixture
async def asker(engine: Engine, name: str) -> AsyncIterator[Api]:
    async with with_certificate(engine, name, "askers") as connected:
        yield connected


def about(verb: str, resource: str, namespace: str = "", **more: str) -> Json:
    return {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": namespace, **more}}


async def may(asker: Api, question: Json) -> Json:
    reply = await asker.create(MAY_I, {"spec": question})
    assert reply.code == 201
    return reply.ok["status"]


async def test_may_i_is_told_with_the_reason(api: Api, asker: Api, name: str, namespace: str) -> None:
    granted = await grant(api, namespace, user(name), rule("list", "pods"))
    status = await may(asker, about("list", "pods", namespace))
    source = f'RoleBinding "{granted}/{namespace}" of Role "{granted}" to User "{name}"'
    assert status == {"allowed": True, "reason": f"RBAC: allowed by {source}"}
    for question in (
        about("watch", "pods", namespace),
        about("list", "pods"),
        about("list", "pods", namespace, group="apps"),
        about("list", "pods", namespace, subresource="log"),
        about("list", "secrets", namespace),
        about("*", "*", namespace),
    ):
        assert await may(asker, question) == {"allowed": False}


async def test_the_answer_repeats_the_question(asker: Api, namespace: str) -> None:
    question = about("get", "nodes", name="n1")
    reply = (await asker.create(MAY_I, {"spec": question})).ok
    assert (reply["kind"], reply["apiVersion"]) == ("SelfSubjectAccessReview", "authorization.k8s.io/v1")
    asked = {key: value for key, value in question["resourceAttributes"].items() if value}
    assert {key: value for key, value in reply["spec"]["resourceAttributes"].items() if value} == asked


async def test_paths_can_be_asked_about(asker: Api) -> None:
    assert (await may(asker, {"nonResourceAttributes": {"verb": "get", "path": "/version"}}))["allowed"]
    assert not (await may(asker, {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}))["allowed"]


async def test_masters_may_everything(api: Api) -> None:
    assert await may(api, about("anything", "everywhere", "nowhere", group="of.nothing")) == {"allowed": True}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"spec": {}}, "spec.resourceAttributes"),
        ({"spec": {**about("get", "pods"), "nonResourceAttributes": {"verb": "get", "path": "/"}}}, "spec.nonResourceAttributes"),
        ({"spec": about("get", "pods"), "metadata": {"name": "a"}}, "metadata"),
    ],
    ids=["nothing asked", "two questions", "a name"],
)
async def test_a_question_that_is_none_is_refused(asker: Api, body: Json, field: str) -> None:
    reply = await asker.create(MAY_I, body)
    reply.refused(422, "Invalid")
    assert field in [place for _, place in reply.causes]


async def test_an_unknown_field_in_a_question_is_noticed(asker: Api) -> None:
    body = {"spec": {**about("get", "pods"), "usr": "x"}}
    assert (await asker.create(MAY_I, body, fieldValidation="Strict")).code == 400


async def test_asking_about_others_is_a_right(api: Api, asker: Api, name: str, namespace: str) -> None:
    question = {"spec": {"user": "somebody", **about("get", "pods", namespace)}}
    assert (await asker.create(MAY_THEY, question)).code == 403
    assert (await asker.create(MAY_THEY_HERE, question, namespace)).code == 403
    await grant(api, namespace, user(name), rule("create", "localsubjectaccessreviews", "authorization.k8s.io"))
    assert (await asker.create(MAY_THEY_HERE, question, namespace)).ok["status"] == {"allowed": False}
    assert (await asker.create(MAY_THEY, question)).code == 403


async def test_groups_of_others_are_as_told(api: Api, namespace: str) -> None:
    question = {"nonResourceAttributes": {"verb": "get", "path": "/api"}}
    alone = (await api.create(MAY_THEY, {"spec": {"user": "somebody", **question}})).ok["status"]
    grouped = (await api.create(MAY_THEY, {"spec": {"groups": ["system:authenticated"], **question}})).ok["status"]
    assert (alone["allowed"], grouped["allowed"]) == (False, True)
    assert grouped["reason"].endswith('of ClusterRole "system:discovery" to Group "system:authenticated"')
    nobody = await api.create(MAY_THEY, {"spec": question})
    nobody.refused(422, "Invalid")
    assert nobody.causes == [("FieldValueInvalid", "spec.user")]


async def test_a_local_question_stays_in_its_namespace(api: Api, namespace: str) -> None:
    elsewhere = {"spec": {"user": "somebody", **about("get", "pods", "elsewhere")}}
    reply = await api.create(MAY_THEY_HERE, elsewhere, namespace)
    reply.refused(422, "Invalid")
    assert ("FieldValueInvalid", "spec.resourceAttributes.namespace") in reply.causes
    path = {"spec": {"user": "somebody", "nonResourceAttributes": {"verb": "get", "path": "/"}}}
    assert (await api.create(MAY_THEY_HERE, path, namespace)).code == 422


async def test_all_of_ones_rules_can_be_listed(api: Api, asker: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("get", "secrets", "", "mine"))
    status = (await asker.create(MY_RULES, {"spec": {"namespace": namespace}})).ok["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]} in status["resourceRules"]
    assert any("/version" in one["nonResourceURLs"] for one in status["nonResourceRules"])
    assert status["incomplete"] is False
    assert all("secrets" not in one["resources"] for one in (await _rules(asker, "default"))["resourceRules"])
    assert (await asker.create(MY_RULES, {"spec": {}})).code == 400


async def _rules(asker: Api, namespace: str) -> Json:
    return (await asker.create(MY_RULES, {"spec": {"namespace": namespace}})).ok["status"]


async def test_one_can_ask_who_one_is(asker: Api, name: str) -> None:
    known = (await asker.create(WHO_AM_I, {})).ok["status"]["userInfo"]
    (credential,) = known.pop("extra")["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
    assert known == {"username": name, "groups": ["askers", "system:authenticated"]}


async def test_a_token_can_be_looked_at(api: Api, asker: Api, namespace: str) -> None:
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)).ok  # noqa: B018
    token = await token_for(api, namespace, "robot")
    status = (await api.create(WHOSE, {"spec": {"token": token}})).ok["status"]
    assert status["authenticated"] is True
    assert status["audiences"] == ["https://kubernetes.default.svc"]
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    for spec in ({"token": "nonsense"}, {"token": token, "audiences": ["vault"]}):
        status = (await api.create(WHOSE, {"spec": spec})).ok["status"]
        assert not status.get("authenticated")
        assert status["error"]
        assert not status["user"]
    assert (await api.create(WHOSE, {"spec": {}})).code == 400
    assert (await asker.create(WHOSE, {"spec": {"token": token}})).code == 403


@pytest.mark.parametrize("resource", GLOBAL, ids=lambda one: one.kind)
async def test_questions_are_asked_and_never_kept(api: Api, resource: Resource) -> None:
    for method, path in (("GET", ""), ("GET", "?watch=true"), ("DELETE", ""), ("GET", "/a"), ("PUT", "/a"), ("DELETE", "/a")):
        reply = await api.request(method, resource.path() + path, {} if method == "PUT" else None)
        assert reply.code in (404, 405), (method, path)


async def test_questions_are_in_discovery(api: Api) -> None:
    for version, wanted in (
        ("authentication.k8s.io/v1", [WHO_AM_I, WHOSE]),
        ("authorization.k8s.io/v1", [MAY_I, MAY_THEY, MY_RULES]),
    ):
        listed = {one["name"]: one for one in (await api.request("GET", f"/apis/{version}")).ok["resources"]}
        for resource in wanted:
            found = listed[resource.plural]
            assert (found["kind"], found["verbs"], found["namespaced"]) == (resource.kind, ["create"], False)
    listed = {one["name"]: one for one in (await api.request("GET", "/api/v1")).ok["resources"]}
    token = listed["serviceaccounts/token"]
    assert (token["kind"], token["group"], token["verbs"]) == ("TokenRequest", "authentication.k8s.io", ["create"])


async def test_strangers_may_not_even_ask(engine: Engine) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server_context(engine))) as session:
        stranger = Api(engine, session)
        for resource in (MAY_I, MY_RULES, WHO_AM_I, WHOSE, MAY_THEY):
            assert (await stranger.create(resource, {"spec": {}})).code == 403

"""What roles and bindings allow, with real credentials: nothing more, nothing less, nowhere else."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.behaviour.manifests import config_map
from tests.engines.api import Api, Json
from tests.engines.credentials import bind, grant, group, rule, until_allowed, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
)


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("person")


@pytest.fixture
async def person(engine: Engine, name: str) -> AsyncIterator[Api]:
    """Somebody with a certificate, of the group "herders", and nothing else."""
    async with with_certificate(engine, name, "herders") as connected:
        yield connected


@pytest.fixture
async def elsewhere(api: Api, unique: Callable[..., str]) -> str:
    other = unique("elsewhere")
    (await api.create(NAMESPACES, {"metadata": {"name": other}})).ok  # noqa: B018
    return other


async def test_somebody_with_a_certificate_and_no_roles_may_only_look_around(person: Api, name: str, namespace: str) -> None:
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz"):
        assert (await person.request("GET", path)).code == 200, path
    for path in ("/", "/metrics", "/api/v1/nodes", f"/api/v1/namespaces/{namespace}"):
        assert (await person.request("GET", path)).code == 403, path
    reply = await person.list(PODS, namespace)
    assert reply.message == (
        f'pods is forbidden: User "{name}" cannot list resource "pods" in API group "" in the namespace "{namespace}"'
    )


async def test_each_verb_is_its_own_right(api: Api, person: Api, name: str, namespace: str) -> None:
    (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok  # noqa: B018
    await grant(api, namespace, user(name), rule("get", "configmaps"))
    body = config_map("a", {"k": "v"})
    assert (await person.get(CONFIG_MAPS, "a", namespace)).code == 200
    for refused in (
        await person.list(CONFIG_MAPS, namespace),
        await person.list(CONFIG_MAPS, namespace, watch=True, timeoutSeconds=1),
        await person.create(CONFIG_MAPS, config_map("b"), namespace),
        await person.update(CONFIG_MAPS, body, namespace),
        await person.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace),
        await person.delete(CONFIG_MAPS, "a", namespace),
        await person.delete_collection(CONFIG_MAPS, namespace),
    ):
        refused.refused(403, "Forbidden")


@pytest.mark.parametrize(
    ("verb", "method", "path"),
    [
        ("list", "GET", ""),
        ("watch", "GET", "?watch=true&timeoutSeconds=1"),
        ("create", "POST", ""),
        ("update", "PUT", "/a"),
        ("patch", "PATCH", "/a"),
        ("delete", "DELETE", "/nowhere"),
        ("deletecollection", "DELETE", ""),
    ],
)
async def test_a_refusal_names_the_verb(person: Api, name: str, namespace: str, verb: str, method: str, path: str) -> None:
    body = {} if method in ("POST", "PUT", "PATCH") else None
    reply = await person.request(method, CONFIG_MAPS.path(namespace) + path, body, content_type="application/merge-patch+json")
    reply.refused(403, "Forbidden")
    assert f'User "{name}" cannot {verb} resource "configmaps" in API group ""' in reply.message


async def test_rights_in_one_namespace_are_none_in_another(
    api: Api, person: Api, name: str, namespace: str, elsewhere: str
) -> None:
    await grant(api, namespace, user(name), rule("*", "*"))
    assert (await person.list(CONFIG_MAPS, namespace)).code == 200
    assert (await person.list(CONFIG_MAPS, elsewhere)).code == 403
    assert (await person.list(CONFIG_MAPS)).code == 403
    assert (await person.create(CONFIG_MAPS, config_map("a"), elsewhere)).code == 403
    smuggled = await person.create(CONFIG_MAPS, config_map("a", namespace=elsewhere), namespace)
    assert smuggled.code == 400
    assert (await api.get(CONFIG_MAPS, "a", elsewhere)).code == 404


async def test_cluster_roles_bound_in_a_namespace_hold_there_only(api: Api, person: Api, name: str, namespace: str) -> None:
    await bind(api, namespace, "view", user(name), rule("list", "pods"))
    assert (await person.list(PODS, namespace)).code == 200
    assert (await person.list(PODS)).code == 403
    assert (await person.list(NODES)).code == 403


async def test_a_role_in_a_namespace_may_show_that_namespace(
    api: Api, person: Api, name: str, namespace: str, elsewhere: str
) -> None:
    await grant(api, namespace, user(name), rule("get", "namespaces"))
    assert (await person.get(NAMESPACES, namespace)).code == 200
    reply = await person.get(NAMESPACES, elsewhere)
    reply.refused(403, "Forbidden")
    assert f'in the namespace "{elsewhere}"' in reply.message
    assert (await person.list(NAMESPACES)).code == 403


async def test_groups_count_as_users_do(api: Api, engine: Engine, unique: Callable[..., str], namespace: str) -> None:
    crew = unique("crew")
    await grant(api, namespace, group(crew), rule("list", "configmaps"))
    async with with_certificate(engine, unique("member"), "others", crew) as member:
        assert (await member.list(CONFIG_MAPS, namespace)).code == 200
    async with with_certificate(engine, crew, "others") as namesake:
        assert (await namesake.list(CONFIG_MAPS, namespace)).code == 403


async def test_names_limit_what_may_be_touched(api: Api, person: Api, name: str, namespace: str) -> None:
    for one in ("mine", "other"):
        (await api.create(CONFIG_MAPS, config_map(one), namespace)).ok  # noqa: B018
    await grant(api, namespace, user(name), rule("*", "configmaps", "", "mine"))
    assert (await person.get(CONFIG_MAPS, "mine", namespace)).code == 200
    assert (await person.patch(CONFIG_MAPS, "mine", {"data": {"k": "v"}}, namespace)).code == 200
    assert (await person.get(CONFIG_MAPS, "other", namespace)).code == 403
    assert (await person.list(CONFIG_MAPS, namespace)).code == 403
    assert (await person.create(CONFIG_MAPS, config_map("mine-too"), namespace)).code == 403
    assert (await person.delete_collection(CONFIG_MAPS, namespace)).code == 403
    assert (await person.delete(CONFIG_MAPS, "mine", namespace)).code == 200


async def test_a_list_of_one_name_is_allowed_to_whoever_may_list_that_name(
    api: Api, person: Api, name: str, namespace: str
) -> None:
    for one in ("mine", "other"):
        (await api.create(CONFIG_MAPS, config_map(one), namespace)).ok  # noqa: B018
    await grant(api, namespace, user(name), rule("list watch", "configmaps", "", "mine"))
    assert (await person.list(CONFIG_MAPS, namespace, fieldSelector="metadata.name=mine")).names == ["mine"]
    async with person.watch(CONFIG_MAPS, namespace, fieldSelector="metadata.name==mine") as watch:
        _, found = await watch.next()
        assert found["metadata"]["name"] == "mine"
    for selector in ("metadata.name=other", "metadata.name!=other", "metadata.namespace=mine", "metadata.name=mine/../other"):
        assert (await person.list(CONFIG_MAPS, namespace, fieldSelector=selector)).code == 403, selector
    both = await person.list(CONFIG_MAPS, namespace, fieldSelector="metadata.name=mine,metadata.name=other")
    assert both.code == 403 or both.names == []


async def test_subresources_are_rights_of_their_own(api: Api, person: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("get patch update", "deployments/scale", "apps"))
    assert (await person.get(DEPLOYMENTS, "a", namespace, "scale")).code == 404
    assert (await person.get(DEPLOYMENTS, "a", namespace)).code == 403
    reply = await person.get(DEPLOYMENTS, "a", namespace, "status")
    reply.refused(403, "Forbidden")
    assert 'cannot get resource "deployments/status" in API group "apps"' in reply.message


async def test_the_object_alone_does_not_open_its_subresources(api: Api, person: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("*", "deployments", "apps"))
    assert (await person.get(DEPLOYMENTS, "a", namespace)).code == 404
    assert (await person.get(DEPLOYMENTS, "a", namespace, "status")).code == 403
    assert (await person.get(DEPLOYMENTS, "a", namespace, "scale")).code == 403


async def test_a_star_before_the_slash_is_every_kind(api: Api, person: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("get", "*/status", "apps"))
    assert (await person.get(DEPLOYMENTS, "a", namespace, "status")).code == 404
    assert (await person.get(DEPLOYMENTS, "a", namespace, "scale")).code == 403
    assert (await person.get(PODS, "a", namespace, "status")).code == 403


async def test_groups_of_kinds_are_kept_apart(api: Api, person: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("list", "deployments leases", "apps"))
    assert (await person.list(DEPLOYMENTS, namespace)).code == 200
    assert (await person.list(LEASES, namespace)).code == 403


async def test_paths_may_be_given_one_by_one_and_by_their_beginning(api: Api, person: Api, name: str) -> None:
    assert (await person.request("GET", "/metrics")).code == 403
    await grant(api, "", user(name), {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/somewhere/*"]})
    assert (await person.request("GET", "/metrics")).code == 200
    assert (await person.request("GET", "/somewhere/else")).code == 404
    assert (await person.request("GET", "/somewhere")).code == 403
    assert (await person.request("POST", "/metrics", {})).code == 403


async def test_what_is_taken_away_is_gone(api: Api, person: Api, name: str, namespace: str) -> None:
    granted = await grant(api, namespace, user(name), rule("list", "configmaps"))
    assert (await person.list(CONFIG_MAPS, namespace)).code == 200
    (await api.delete(ROLE_BINDINGS, granted, namespace)).ok  # noqa: B018
    await until_allowed(api, namespace, user(name), rule("list", "configmaps"), allowed=False)
    assert (await person.list(CONFIG_MAPS, namespace)).code == 403


async def test_a_changed_role_changes_what_its_holders_may(api: Api, person: Api, name: str, namespace: str) -> None:
    granted = await grant(api, namespace, user(name), rule("list", "configmaps"))
    patch = {"rules": [rule("list", "secrets")]}
    (await api.patch(ROLES, granted, patch, namespace)).ok  # noqa: B018
    await until_allowed(api, namespace, user(name), rule("list", "secrets"))
    assert (await person.list(SECRETS, namespace)).code == 200
    assert (await person.list(CONFIG_MAPS, namespace)).code == 403


async def test_a_binding_to_a_role_that_is_not_there_says_so(api: Api, person: Api, name: str, namespace: str) -> None:
    granted = await grant(api, namespace, user(name), rule("list", "configmaps"))
    (await api.delete(ROLES, granted, namespace)).ok  # noqa: B018
    await until_allowed(api, namespace, user(name), rule("list", "configmaps"), allowed=False)
    reply = await person.list(CONFIG_MAPS, namespace)
    reply.refused(403, "Forbidden")
    assert reply.message.endswith(f': RBAC: role.rbac.authorization.k8s.io "{granted}" not found')


async def test_rules_are_gathered_by_labels(api: Api, person: Api, name: str, namespace: str, unique: Callable[..., str]) -> None:
    label = unique("gathered")
    whole: Json = {
        "metadata": {"name": unique("whole")},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "yes"}}]},
        "rules": [],
    }
    (await api.create(CLUSTER_ROLES, whole)).ok  # noqa: B018
    part: Json = {"metadata": {"name": unique("part"), "labels": {label: "yes"}}, "rules": [rule("list", "configmaps")]}
    (await api.create(CLUSTER_ROLES, part)).ok  # noqa: B018
    await bind(api, namespace, whole["metadata"]["name"], user(name), rule("list", "configmaps"))
    assert (await person.list(CONFIG_MAPS, namespace)).code == 200
    assert (await api.get(CLUSTER_ROLES, whole["metadata"]["name"])).ok["rules"] == part["rules"]
    (await api.delete(CLUSTER_ROLES, part["metadata"]["name"])).ok  # noqa: B018
    await until_allowed(api, namespace, user(name), rule("list", "configmaps"), allowed=False)
    assert (await person.list(CONFIG_MAPS, namespace)).code == 403


@pytest.mark.parametrize(
    ("role", "secrets", "pods", "roles"), [("view", 403, 403, 403), ("edit", 200, 422, 403), ("admin", 200, 422, 200)]
)
async def test_the_roles_that_people_know(
    api: Api, person: Api, name: str, namespace: str, role: str, secrets: int, pods: int, roles: int
) -> None:
    await bind(api, namespace, role, user(name), rule("list", "pods"))
    assert (await person.list(CONFIG_MAPS, namespace)).code == 200
    assert (await person.list(SECRETS, namespace)).code == secrets
    assert (await person.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": []}}, namespace)).code == pods
    assert (await person.list(ROLES, namespace)).code == roles
    assert (await person.list(CLUSTER_ROLES)).code == 403


async def test_members_of_masters_need_no_role(engine: Engine, unique: Callable[..., str]) -> None:
    async with with_certificate(engine, unique("root"), "system:masters") as master:
        assert (await master.list(CLUSTER_ROLE_BINDINGS)).code == 200
        assert (await master.list(SECRETS)).code == 200


async def test_cluster_admin_may_do_everything(api: Api, person: Api, name: str) -> None:
    await bind(api, "", "cluster-admin", user(name), rule("list", "secrets"))
    assert (await person.list(SECRETS)).code == 200
    assert (await person.request("GET", "/metrics")).code == 200


async def test_a_put_that_would_create_needs_the_right_to_create(
    api: Api, person: Api, name: str, namespace: str, unique: Callable[..., str]
) -> None:
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    await grant(api, namespace, user(name), rule("update patch", "leases", "coordination.k8s.io"))
    reply = await person.update(LEASES, lease, namespace)
    reply.refused(403, "Forbidden")
    assert 'cannot create resource "leases"' in reply.message
    assert (await api.get(LEASES, "a", namespace)).code == 404
    await grant(api, namespace, user(name), rule("create", "leases", "coordination.k8s.io"))
    assert (await person.update(LEASES, lease, namespace)).code == 201

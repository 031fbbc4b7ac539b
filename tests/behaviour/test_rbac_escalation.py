"""Nobody can give what they do not have: not by a role, not by a binding, not by gathering, not by a patch."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.engines.api import PATCH_TYPES, Api, Json
from tests.engines.credentials import RBAC, binding, grant, group, rule, until_allowed, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, SECRETS


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("climber")


@pytest.fixture
async def climber(engine: Engine, name: str) -> AsyncIterator[Api]:
    async with with_certificate(engine, name, "climbers") as connected:
        yield connected


def role(name: str, *rules: Json, **more: object) -> Json:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


@pytest.fixture
async def allowed(api: Api, name: str, namespace: str) -> None:
    """The climber may write every role and binding of the namespace, and read ConfigMaps. The stars are verbs, not powers:
    `*` includes bind and escalate, so those are left out."""
    verbs = "get list watch create update patch delete"
    await grant(api, namespace, user(name), rule("get list", "configmaps"), rule(verbs, "roles rolebindings", RBAC))


@pytest.mark.usefixtures("allowed")
async def test_what_one_has_may_be_given(climber: Api, namespace: str) -> None:
    assert (await climber.create(ROLES, role("same", rule("get", "configmaps")), namespace)).code == 201
    assert (await climber.create(ROLE_BINDINGS, binding("same", "same", user("friend"), kind="Role"), namespace)).code == 201


@pytest.mark.usefixtures("allowed")
async def test_a_role_of_more_than_one_has_is_refused(climber: Api, name: str, namespace: str) -> None:
    reply = await climber.create(ROLES, role("more", rule("get watch", "secrets"), rule("delete", "configmaps")), namespace)
    assert reply.refused(403, "Forbidden") == {"name": "more", "group": RBAC, "kind": "roles"}
    assert reply.message == (
        f'roles.{RBAC} "more" is forbidden: user "{name}" (groups=["climbers" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "watch"]}'
    )


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    "wanted",
    [
        rule("*", "configmaps"),
        rule("get", "*"),
        rule("get", "configmaps", "*"),
        rule("get", "configmaps/status"),
        rule("get", "*/status"),
        rule("impersonate", "users"),
        rule("bind", "roles", RBAC),
        rule("get", "secrets", "", "just-one"),
    ],
    ids=lambda one: f"{one['verbs'][0]}-{one['resources'][0].replace('/', '-')}",
)
async def test_stars_and_subresources_are_more(climber: Api, namespace: str, wanted: Json) -> None:
    assert (await climber.create(ROLES, role("more", wanted), namespace)).code == 403


@pytest.mark.usefixtures("allowed")
async def test_a_role_cannot_grow_by_an_update_or_a_patch(climber: Api, namespace: str) -> None:
    (await climber.create(ROLES, role("small", rule("get", "configmaps")), namespace)).ok  # noqa: B018
    grown = role("small", rule("get", "configmaps"), rule("get", "secrets"))
    assert (await climber.update(ROLES, grown, namespace)).code == 403
    assert (await climber.patch(ROLES, "small", {"rules": grown["rules"]}, namespace)).code == 403
    added = [{"op": "add", "path": "/rules/-", "value": rule("get", "secrets")}]
    assert (await climber.patch(ROLES, "small", added, namespace, kind="json")).code == 403
    assert (await climber.update(ROLES, {**grown, "metadata": {"name": "new"}}, namespace)).code == 403
    assert (await climber.get(ROLES, "small", namespace)).ok["rules"] == [rule("get", "configmaps")]


@pytest.mark.usefixtures("allowed")
async def test_an_apply_is_no_way_around(climber: Api, namespace: str) -> None:
    body = {"apiVersion": f"{RBAC}/v1", "kind": "Role", **role("applied", rule("get", "secrets"))}
    path = ROLES.path(namespace, "applied")
    reply = await climber.request("PATCH", path, body, content_type=PATCH_TYPES["apply"], fieldManager="me")
    assert reply.code == 403
    assert (await climber.get(ROLES, "applied", namespace)).code == 404


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("wanted", ["cluster-admin", "admin", "edit"])
async def test_a_strong_role_cannot_be_bound(climber: Api, name: str, namespace: str, wanted: str) -> None:
    reply = await climber.create(ROLE_BINDINGS, binding("mine", wanted, user(name)), namespace)
    reply.refused(403, "Forbidden")
    assert "is attempting to grant RBAC permissions not currently held" in reply.message
    assert (await climber.list(SECRETS, namespace)).code == 403


@pytest.mark.usefixtures("allowed")
async def test_a_binding_cannot_be_turned_to_oneself(api: Api, climber: Api, name: str, namespace: str) -> None:
    (await api.create(ROLE_BINDINGS, binding("strong", "admin", user("boss")), namespace)).ok  # noqa: B018
    patch = {"subjects": [user(name)]}
    assert (await climber.patch(ROLE_BINDINGS, "strong", patch, namespace)).code == 403
    assert (await climber.update(ROLE_BINDINGS, binding("strong", "admin", user(name)), namespace)).code == 403
    assert (await climber.patch(ROLE_BINDINGS, "strong", {"metadata": {"labels": {"a": "b"}}}, namespace)).code == 403


@pytest.mark.usefixtures("allowed")
async def test_deleting_gives_nothing_and_is_allowed(api: Api, climber: Api, namespace: str) -> None:
    (await api.create(ROLE_BINDINGS, binding("strong", "admin", user("boss")), namespace)).ok  # noqa: B018
    assert (await climber.delete(ROLE_BINDINGS, "strong", namespace)).code == 200


@pytest.mark.usefixtures("allowed")
async def test_finalizers_and_owners_may_be_changed_by_whoever_may_update(api: Api, climber: Api, namespace: str) -> None:
    (await api.create(ROLES, role("strong", rule("*", "*", "*")), namespace)).ok  # noqa: B018
    assert (await climber.patch(ROLES, "strong", {"metadata": {"finalizers": ["example.com/a"]}}, namespace)).code == 200
    assert (await climber.patch(ROLES, "strong", {"metadata": {"finalizers": []}}, namespace)).code == 200
    assert (await climber.patch(ROLES, "strong", {"metadata": {"labels": {"a": "b"}}}, namespace)).code == 403


@pytest.mark.usefixtures("allowed")
async def test_a_role_that_is_not_there_cannot_be_bound_in_advance(climber: Api, name: str, namespace: str) -> None:
    reply = await climber.create(ROLE_BINDINGS, binding("mine", "later", user(name), kind="Role"), namespace)
    reply.refused(404, "NotFound")
    assert reply.message.endswith('"later" not found')


@pytest.mark.usefixtures("allowed")
async def test_rights_in_a_namespace_do_not_reach_beyond(climber: Api, name: str) -> None:
    assert (await climber.create(CLUSTER_ROLES, role("wide", rule("get", "configmaps")))).code == 403
    assert (await climber.create(CLUSTER_ROLE_BINDINGS, binding("wide", "view", user(name)))).code == 403
    assert (await climber.create(ROLE_BINDINGS, binding("far", "view", user(name)), "kube-system")).code == 403


async def test_rights_everywhere_are_needed_to_give_rights_everywhere(
    api: Api, climber: Api, name: str, namespace: str, unique: Callable[..., str]
) -> None:
    verbs = "create update"
    await grant(api, namespace, user(name), rule("get", "configmaps"))
    await grant(api, "", user(name), rule(verbs, "clusterroles clusterrolebindings", RBAC))
    assert (await climber.create(CLUSTER_ROLES, role(unique(), rule("get", "configmaps")))).code == 403
    await grant(api, "", user(name), rule("get", "configmaps"))
    own = unique()
    assert (await climber.create(CLUSTER_ROLES, role(own, rule("get", "configmaps")))).code == 201
    assert (await climber.create(CLUSTER_ROLE_BINDINGS, binding(own, own, group("friends")))).code == 201


async def test_only_the_highest_may_gather(api: Api, climber: Api, name: str, unique: Callable[..., str]) -> None:
    await grant(api, "", user(name), rule("create update patch get", "clusterroles", RBAC))
    gathers = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    reply = await climber.create(CLUSTER_ROLES, role(unique(), **gathers))
    reply.refused(403, "Forbidden")
    assert reply.message.endswith("must have cluster-admin privileges to use the aggregationRule")
    empty = unique()
    (await climber.create(CLUSTER_ROLES, role(empty))).ok  # noqa: B018
    assert (await climber.patch(CLUSTER_ROLES, empty, gathers)).code == 403


async def test_a_label_on_a_strong_role_does_not_make_it_part_of_a_weak_one(
    api: Api, climber: Api, name: str, unique: Callable[..., str]
) -> None:
    await grant(api, "", user(name), rule("create patch get", "clusterroles", RBAC))
    label = {f"{RBAC}/aggregate-to-view": "true"}
    assert (await climber.patch(CLUSTER_ROLES, "cluster-admin", {"metadata": {"labels": label}})).code == 403
    labelled = {**role(unique(), rule("get", "secrets")), "metadata": {"name": unique(), "labels": label}}
    assert (await climber.create(CLUSTER_ROLES, labelled)).code == 403


async def test_the_verb_escalate_lifts_the_limit_for_roles(api: Api, climber: Api, name: str, namespace: str) -> None:
    await grant(api, namespace, user(name), rule("create escalate", "roles", RBAC))
    assert (await climber.create(ROLES, role("more", rule("*", "*", "*")), namespace)).code == 201
    reply = await climber.create(ROLE_BINDINGS, binding("more", "more", user(name), kind="Role"), namespace)
    assert reply.code == 403


async def test_the_verb_bind_lifts_the_limit_for_one_role(api: Api, climber: Api, name: str, namespace: str) -> None:
    binds = rule("bind", "clusterroles", RBAC, "edit")
    await grant(api, namespace, user(name), rule("create", "rolebindings", RBAC), binds)
    assert (await climber.create(ROLE_BINDINGS, binding("strong", "admin", user(name)), namespace)).code == 403
    assert (await climber.create(ROLE_BINDINGS, binding("mine", "edit", user(name)), namespace)).code == 201
    await until_allowed(api, namespace, user(name), rule("list", "secrets"))
    assert (await climber.list(SECRETS, namespace)).code == 200


async def test_masters_are_not_weighed(engine: Engine, namespace: str, unique: Callable[..., str]) -> None:
    async with with_certificate(engine, unique("root"), "system:masters") as master:
        assert (await master.create(ROLES, role("all", rule("*", "*", "*")), namespace)).code == 201
        assert (await master.create(ROLE_BINDINGS, binding("later", "later", user("a"), kind="Role"), namespace)).code == 201

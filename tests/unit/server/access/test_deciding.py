"""The authoriser inside an engine: it follows every change, forgets nothing, and is closed where nobody thought of it."""

import random
from pathlib import Path
from typing import Any

import pytest

from herder.server.access import rbac
from herder.server.access.attributes import Attributes
from herder.server.request import ANONYMOUS, ENGINE, User
from herder.server.status import ApiError
from herder.server.writes import Intent
from tests.unit.server.inside import Inside, engine_inside

Json = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
ROOT = f"/apis/{GROUP}/v1"
PEOPLE = [User(f"user-{number}", (f"group-{number % 3}", "system:authenticated")) for number in range(5)]
VERBS, RESOURCES, SPACES = ("get", "list"), ("pods", "secrets"), ("default", "kube-system")


def role(name: str, rules: list[Json]) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "metadata": {"name": name}, "rules": rules}


def binding(name: str, kind: str, of: str, subjects: list[Json]) -> Json:
    reference = {"apiGroup": GROUP, "kind": kind, "name": of}
    return {"apiVersion": f"{GROUP}/v1", "metadata": {"name": name}, "roleRef": reference, "subjects": subjects}


class Naive:
    """Everything as plain lists, looked through from the beginning each time."""

    def __init__(self, inside: Inside) -> None:
        self._store = inside.store

    def allows(self, user: User, what: Attributes) -> bool:
        for table, places in ((rbac.CLUSTER_ROLE_BINDINGS, ("",)), (rbac.ROLE_BINDINGS, (what.namespace,))):
            for record in self._store.scan(table):
                if record.namespace in places and self._one(user, what, record.document(), record.namespace):
                    return True
        return False

    def _one(self, user: User, what: Attributes, document: Json, namespace: str) -> bool:
        if not any(_is(user, subject) for subject in document.get("subjects", ())):
            return False
        named = document["roleRef"]
        table, key = (
            (rbac.ROLES, f"{namespace}/{named['name']}") if named["kind"] == "Role" else (rbac.CLUSTER_ROLES, named["name"])
        )
        found = self._store.get(table, key)
        rules = found.document().get("rules") or [] if found else []
        return any(what.verb in one["verbs"] and what.resource in one.get("resources", ()) for one in rules)


def _is(user: User, subject: Json) -> bool:
    return subject["name"] == user.name if subject["kind"] == "User" else subject["name"] in user.groups


def _random_step(chance: random.Random) -> tuple[str, str, Json | None]:
    """Make, replace or take away one of a few roles and bindings."""
    space = chance.choice(("", *SPACES))
    where = f"{ROOT}/namespaces/{space}" if space else ROOT
    number = chance.randrange(3)
    subjects = [chance.choice([_user(chance), _group(chance)]) for _ in range(chance.randrange(1, 4))]
    rules = [{"verbs": [chance.choice(VERBS)], "apiGroups": [""], "resources": [chance.choice(RESOURCES)]}]
    kind = chance.choice(("Role", "ClusterRole")) if space else "ClusterRole"
    plural = (
        ("roles" if space else "clusterroles") if chance.random() < 0.5 else ("rolebindings" if space else "clusterrolebindings")
    )
    if chance.random() < 0.3:
        return "DELETE", f"{where}/{plural}/x{number}", None
    if "bindings" in plural:
        # A binding keeps its role: the name says which.
        body = binding(f"x{number}", kind if number != 2 else "ClusterRole", f"x{number}", subjects)
    else:
        body = role(f"x{number}", rules)
    return "PUT", f"{where}/{plural}/x{number}", {**body, "kind": ""}


def _user(chance: random.Random) -> Json:
    return {"kind": "User", "name": chance.choice(PEOPLE).name, "apiGroup": GROUP}


def _group(chance: random.Random) -> Json:
    return {"kind": "Group", "name": f"group-{chance.randrange(3)}", "apiGroup": GROUP}


KINDS = {"roles": "Role", "clusterroles": "ClusterRole", "rolebindings": "RoleBinding", "clusterrolebindings": "ClusterRoleBinding"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
async def test_decisions_follow_every_change(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with engine_inside(tmp_path) as inside:
        naive, access = Naive(inside), inside.running.engine.access
        allowed = 0
        for _ in range(60):
            method, path, body = _random_step(chance)
            if body is not None:
                body["kind"] = KINDS[path.split("/")[-2]]
            code, answer = await inside.ask(method, path, body)
            assert code in (200, 201, 404, 422), answer
            for user in PEOPLE:
                for space in ("", *SPACES):
                    what = Attributes(chance.choice(VERBS), "", "", chance.choice(RESOURCES), "", space)
                    decided = access.allows(user, what)
                    allowed += decided
                    assert decided == naive.allows(user, what), (user, what)
        assert allowed > 5  # else nothing was tried


@pytest.mark.slow
async def test_what_was_stored_before_is_known_after_a_start(tmp_path: Path) -> None:
    what = Attributes("get", "", "", "secrets", "", "default", "a")
    async with engine_inside(tmp_path) as inside:
        rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]}]
        await inside.ask("POST", f"{ROOT}/namespaces/default/roles", {**role("r", rules), "kind": "Role"})
        subject = {"kind": "ServiceAccount", "name": "robot"}
        await inside.ask(
            "POST", f"{ROOT}/namespaces/default/rolebindings", {**binding("b", "Role", "r", [subject]), "kind": "RoleBinding"}
        )
    async with engine_inside(tmp_path) as inside:
        access = inside.running.engine.access
        assert access.allows(User("system:serviceaccount:default:robot"), what)
        assert not access.allows(User("robot"), what)
        assert not access.allows(User("system:serviceaccount:kube-system:robot"), what)


@pytest.mark.slow
async def test_a_write_of_nobody_in_particular_gives_nothing(tmp_path: Path) -> None:
    """Should somebody forget to say on whose behalf a role is written, it is refused and not allowed."""
    async with engine_inside(tmp_path) as inside:
        engine = inside.running.engine
        served = engine.served(GROUP, "v1", "clusterroles")
        strong = {**role("strong", [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]), "kind": "ClusterRole"}
        with pytest.raises(ApiError) as refusal:
            await engine.writes.create(served, strong, Intent())
        assert refusal.value.code == 403


async def test_nobody_may_nothing_but_see_that_it_lives(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        code, _ = await inside.ask("GET", "/api/v1/nodes", user=ANONYMOUS)
        assert code == 403
        assert (await inside.ask("GET", "/version", user=ANONYMOUS))[0] == 200


async def test_remembering_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "MOST_REMEMBERED", 10)
    async with engine_inside(tmp_path) as inside:
        access = inside.running.engine.access
        for number in range(100):
            assert not access.allows(User(f"user-{number}"), Attributes("get", "", "", "pods", "", f"space-{number}"))
        assert access.allows(User("x", ("system:authenticated",)), Attributes("get", "/version"))


@pytest.mark.slow
async def test_roles_that_were_taken_apart_are_whole_again_after_a_start(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        merge = "application/merge-patch+json"
        for name in ("vm-owner", "system:basic-user"):
            assert (await inside.ask("PATCH", f"{ROOT}/clusterroles/{name}", {"rules": []}, content_type=merge))[0] == 200
        assert (await inside.ask("DELETE", f"{ROOT}/clusterrolebindings/system:discovery"))[0] == 200
        keep = {"rules": [], "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}}
        assert (await inside.ask("PATCH", f"{ROOT}/clusterroles/vm-migrator", keep, content_type=merge))[0] == 200
    async with engine_inside(tmp_path) as inside:
        for name in ("vm-owner", "system:basic-user"):
            assert (await inside.ask("GET", f"{ROOT}/clusterroles/{name}"))[1]["rules"], name
        assert (await inside.ask("GET", f"{ROOT}/clusterrolebindings/system:discovery"))[0] == 200
        assert (await inside.ask("GET", f"{ROOT}/clusterroles/vm-migrator"))[1]["rules"] == []


@pytest.mark.slow
async def test_the_known_roles_are_whole_as_soon_as_the_engine_is_ready(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        for name, verb, plural in (("view", "get", "pods"), ("edit", "create", "pods"), ("admin", "create", "rolebindings")):
            rules = (await inside.ask("GET", f"{ROOT}/clusterroles/{name}", user=ENGINE))[1]["rules"]
            assert any(plural in one.get("resources", ()) and verb in one["verbs"] for one in rules), name

"""The roles in deploy/roles, tried with real credentials: each may do what it says, and not one step more."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml

from herder.api.registry import KINDS
from tests.behaviour.our_kinds import install_crds, make_owned_pod, resource_of
from tests.engines.api import Api, Json, Reply
from tests.engines.credentials import account, bind, rule, token_for, user, with_certificate, with_token
from tests.engines.engine import Engine
from tests.engines.resources import (
    AUTOSCALERS,
    CLAIMS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    VOLUMES,
    Resource,
)
from tests.engines.waiting import eventually

FOLDER = Path(__file__).parents[2] / "deploy" / "roles"
OURS = {info.plural: resource_of(info) for info in KINDS}
MACHINES, INSTANCES, MIGRATIONS = (OURS[f"virtualmachine{end}"] for end in ("s", "instances", "instancemigrations"))
POOLS, POLICIES = OURS["virtualmachinepools"], OURS["migrationpolicies"]
JOBS, RESERVATIONS = OURS["podmigrationjobs"], OURS["reservations"]
SETTINGS = OURS["kubevirts"]
SEE_MACHINES = rule("list", "virtualmachines", "kubevirt.io")
SEE_AUTOSCALERS = rule("list", "horizontalpodautoscalers", "autoscaling")
AUTOSCALER = {
    "metadata": {"name": "a"},
    "spec": {"scaleTargetRef": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "a"}, "maxReplicas": 3},
}
MIGRATION = {"metadata": {"generateName": "m-"}, "spec": {"vmiName": "a"}}
INSTANCE = {"metadata": {"name": "a"}, "spec": {"domain": {}}}
MACHINE = {
    "metadata": {"name": "a"},
    "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
}


@pytest.fixture(scope="module", autouse=True)
async def installed(api: Api) -> None:
    await install_crds(api)
    for path in FOLDER.glob("*.yaml"):
        reply = await api.create(CLUSTER_ROLES, yaml.safe_load(path.read_text()), fieldValidation="Strict")
        assert reply.code in (201, 409), reply.raw


@pytest.fixture
def name(unique: Callable[..., str]) -> str:
    return unique("holder")


@pytest.fixture
async def holder(engine: Engine, name: str) -> AsyncIterator[Api]:
    async with with_certificate(engine, name) as connected:
        yield connected


async def _sees(holder: Api, namespace: str, *resources: Resource) -> None:
    for resource in resources:
        assert (await holder.list(resource, namespace if resource.namespaced else "")).code == 200, resource


async def _cannot_list(holder: Api, namespace: str, *resources: Resource) -> None:
    for resource in resources:
        assert (await holder.list(resource, namespace if resource.namespaced else "")).code == 403, resource


async def test_a_viewer_sees_and_changes_nothing(api: Api, holder: Api, name: str, namespace: str) -> None:
    (await api.create(MACHINES, MACHINE, namespace)).ok  # noqa: B018
    await bind(api, "", "herder-viewer", user(name), SEE_MACHINES)
    await _sees(holder, namespace, *OURS.values(), NODES, PODS, EVENTS, CONTROLLER_REVISIONS)
    await _cannot_list(holder, namespace, SECRETS, CONFIG_MAPS, ROLE_BINDINGS)
    assert (await holder.get(MACHINES, "a", namespace)).code == 200
    assert (await holder.patch(MACHINES, "a", {"spec": {"runStrategy": "Always"}}, namespace)).code == 403
    assert (await holder.delete(MACHINES, "a", namespace)).code == 403
    assert (await holder.create(MIGRATIONS, MIGRATION, namespace)).code == 403
    assert (await holder.patch(NODES, "a", {"spec": {"unschedulable": True}})).code == 403
    assert (await _edit_settings(holder)).code == 403


async def _edit_settings(person: Api) -> Reply:
    """Of the whole cluster: tried, and not stored."""
    return await person.patch(SETTINGS, "kubevirt", {"metadata": {"labels": {"a": "b"}}}, "kubevirt", dryRun="All")


@pytest.mark.parametrize(
    ("role", "created"), [("view", 403), ("herder-viewer", 403), ("edit", 201), ("vm-owner", 201), ("herder-admin", 201)]
)
async def test_who_edits_writes_autoscalers_and_who_views_reads_them(
    api: Api, holder: Api, name: str, namespace: str, role: str, created: int
) -> None:
    await bind(api, namespace, role, user(name), SEE_AUTOSCALERS)
    await _sees(holder, namespace, AUTOSCALERS)
    assert (await holder.create(AUTOSCALERS, AUTOSCALER, namespace)).code == created


async def test_an_owner_keeps_machines_and_does_not_migrate(api: Api, holder: Api, name: str, namespace: str) -> None:
    await bind(api, namespace, "vm-owner", user(name), SEE_MACHINES)
    assert (await holder.create(MACHINES, MACHINE, namespace)).code == 201
    assert (await holder.patch(MACHINES, "a", {"spec": {"runStrategy": "Always"}}, namespace)).code == 200
    await _sees(holder, namespace, MACHINES, INSTANCES, POOLS, MIGRATIONS, PODS, CONTROLLER_REVISIONS)
    revision = {"metadata": {"name": "a"}, "revision": 1}
    assert (await holder.create(CONTROLLER_REVISIONS, revision, namespace)).code == 403, (
        "what a pool returns to is the pool's to write"
    )
    reply = await holder.create(MIGRATIONS, MIGRATION, namespace)
    reply.refused(403, "Forbidden")
    assert 'cannot create resource "virtualmachineinstancemigrations"' in reply.message
    assert (await holder.delete_collection(MIGRATIONS, namespace)).code == 403
    assert (
        await holder.create(JOBS, {"metadata": {"name": "j"}, "spec": {"podRef": {"name": "p", "namespace": namespace}}})
    ).code == 403
    assert (await holder.patch(MACHINES, "a", {"status": {"ready": True}}, namespace, "status")).code == 403
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await holder.request("POST", PODS.path(namespace, "a", "eviction"), evicted)).code == 403
    await _cannot_list(holder, namespace, NODES, SECRETS)
    await _cannot_list(holder, "default", MACHINES)
    assert (await holder.create(MACHINES, MACHINE, "default")).code == 403
    assert (await holder.delete(MACHINES, "a", namespace)).code == 200


async def test_a_migrator_moves_machines_and_does_not_edit_them(api: Api, holder: Api, name: str, namespace: str) -> None:
    (await api.create(MACHINES, MACHINE, namespace)).ok  # noqa: B018
    (await api.create(INSTANCES, INSTANCE, namespace)).ok  # noqa: B018
    await bind(api, "", "vm-migrator", user(name), SEE_MACHINES)
    made = await holder.create(MIGRATIONS, MIGRATION, namespace)
    assert made.code == 201
    assert (await holder.delete(MIGRATIONS, made.ok["metadata"]["name"], namespace)).code == 200
    # What `herder explain policy` and `herder explain target` ask for.
    await _sees(holder, namespace, NODES, MACHINES, INSTANCES, POLICIES, SETTINGS, NAMESPACES)
    await _sees(holder, namespace, PODS, CLAIMS, VOLUMES, STORAGE_CLASSES)
    assert (await holder.patch(MACHINES, "a", {"spec": {"runStrategy": "Always"}}, namespace)).code == 403
    assert (await holder.update(MACHINES, MACHINE, namespace)).code == 403
    assert (await holder.delete(MACHINES, "a", namespace)).code == 403
    assert (await holder.create(INSTANCES, {"metadata": {"name": "b"}, "spec": {"domain": {}}}, namespace)).code == 403
    assert (await holder.patch(NODES, "a", {"spec": {"unschedulable": True}})).code == 403
    assert (await holder.create(POLICIES, {"metadata": {"name": "p"}, "spec": {}})).code == 403
    assert (await _edit_settings(holder)).code == 403
    await _cannot_list(holder, namespace, SECRETS, CONFIG_MAPS)


async def test_who_may_migrate_is_judged_by_what_the_rules_see(api: Api, holder: Api, name: str, namespace: str) -> None:
    """Bound in a namespace only: the rules look around, not the person."""
    (await api.create(INSTANCES, INSTANCE, namespace)).ok  # noqa: B018
    await bind(api, namespace, "vm-migrator", user(name), SEE_MACHINES)
    assert (await holder.create(MIGRATIONS, {**MIGRATION, "spec": {"vmiName": "nobody"}}, namespace)).code == 422
    assert (await holder.create(MIGRATIONS, MIGRATION, namespace)).code == 201
    assert "is not finished" in (await holder.create(MIGRATIONS, MIGRATION, namespace)).message


async def test_a_pod_migrator_has_pods_moved_and_changes_nothing_else(api: Api, holder: Api, name: str, namespace: str) -> None:
    await make_owned_pod(api, "web-0", namespace)
    job = {"metadata": {"name": name}, "spec": {"podRef": {"namespace": namespace, "name": "web-0"}}}
    file = rule("create", "podmigrationjobs", "scheduling.koordinator.sh")
    await bind(api, namespace, "pod-migrator", user(name), rule("create", "pods/eviction"))
    assert (await holder.create(JOBS, job)).code == 403, "jobs are in no namespace"
    await bind(api, "", "pod-migrator", user(name), file)
    assert (await holder.create(JOBS, job)).code == 201
    assert (await holder.patch(JOBS, name, {"spec": {"paused": True}})).code == 200
    await _sees(holder, namespace, JOBS, RESERVATIONS, PODS)
    assert (await holder.patch(JOBS, name, {"status": {"phase": "Succeed"}}, subresource="status")).code == 403
    assert (await holder.delete_collection(JOBS)).code == 403
    room = {"metadata": {"name": name}, "spec": {"template": {}, "owners": [{"object": {"name": "web-0"}}]}}
    assert (await holder.create(RESERVATIONS, room)).code == 403
    assert (await holder.patch(PODS, "web-0", {"metadata": {"labels": {"a": "b"}}}, namespace)).code == 403
    assert (await holder.delete(PODS, "web-0", namespace)).code == 403
    await _cannot_list(holder, namespace, NODES, SECRETS, CONFIG_MAPS, MACHINES)
    assert (await holder.delete(JOBS, name)).code == 200
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0"}}
    assert (await holder.request("POST", PODS.path(namespace, "web-0", "eviction"), evicted)).code == 201


async def test_an_admin_runs_the_herd_and_not_the_cluster(api: Api, holder: Api, name: str, namespace: str) -> None:
    (await api.create(INSTANCES, INSTANCE, namespace)).ok  # noqa: B018
    await bind(api, "", "herder-admin", user(name), SEE_MACHINES)
    assert (await holder.create(MACHINES, MACHINE, namespace)).code == 201
    assert (await holder.create(MIGRATIONS, MIGRATION, namespace)).code == 201
    assert (await holder.patch(MACHINES, "a", {"metadata": {"labels": {"a": "b"}}}, namespace)).code == 200
    assert (await holder.patch(NODES, "nowhere", {"spec": {"unschedulable": True}})).code == 404
    assert (await holder.delete(POLICIES, "nowhere")).code == 404
    await _sees(holder, namespace, CONTROLLER_REVISIONS)
    assert (await _edit_settings(holder)).code in (200, 404), "on a real cluster there are none before somebody installs them"
    await _sees(holder, namespace, *OURS.values(), NODES, PODS)
    await _cannot_list(holder, namespace, SECRETS, ROLE_BINDINGS, CLUSTER_ROLES)
    assert (await holder.delete(NODES, "nowhere")).code == 403


async def test_what_people_may_view_and_edit_includes_our_kinds(
    api: Api, engine: Engine, holder: Api, name: str, namespace: str
) -> None:
    await bind(api, namespace, "view", user(name), SEE_MACHINES)
    await _sees(holder, namespace, MACHINES, INSTANCES, POOLS, MIGRATIONS)
    assert (await holder.create(MACHINES, MACHINE, namespace)).code == 403
    await bind(api, namespace, "edit", user(name), rule("create", "virtualmachines", "kubevirt.io"))
    assert (await holder.create(MACHINES, MACHINE, namespace)).code == 201
    assert (await holder.create(MIGRATIONS, MIGRATION, namespace)).code == 403

    async def administered() -> bool:
        rules = (await api.get(CLUSTER_ROLES, "admin")).ok["rules"]
        return any("virtualmachines" in one.get("resources", ()) and "create" in one["verbs"] for one in rules)

    await eventually(administered)


async def test_a_program_may_hold_a_role_too(api: Api, engine: Engine, namespace: str) -> None:
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "mover"}}, namespace)).ok  # noqa: B018
    (await api.create(INSTANCES, INSTANCE, namespace)).ok  # noqa: B018
    await bind(api, namespace, "vm-migrator", account(namespace, "mover"), SEE_MACHINES)
    async with with_token(engine, await token_for(api, namespace, "mover")) as mover:
        assert (await mover.create(MIGRATIONS, MIGRATION, namespace)).code == 201
        assert (await mover.create(MACHINES, MACHINE, namespace)).code == 403
        # Bound in a namespace, what is not in one stays closed.
        assert (await mover.list(NODES)).code == 403


def _role(name: str) -> Json:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
async def test_a_role_is_stored_as_it_is_checked_in(api: Api, path: Path) -> None:
    wanted = _role(path.stem)
    stored = (await api.get(CLUSTER_ROLES, wanted["metadata"]["name"])).ok
    assert stored["rules"] == wanted["rules"]
    assert wanted["metadata"]["labels"].items() <= stored["metadata"]["labels"].items()

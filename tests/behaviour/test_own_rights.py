"""What the account of our controllers may do for PodMigrationJobs, tried with its own token: what they need, and no more."""

from collections.abc import AsyncIterator, Callable

import pytest

from herder.api import account, registry
from tests.behaviour.manifests import workload
from tests.behaviour.our_kinds import install_crds, make_owned_pod, resource_of
from tests.engines.api import Api, Json
from tests.engines.credentials import ACCESS_REVIEWS, rule, token_for, until_allowed, with_token
from tests.engines.credentials import account as subject
from tests.engines.engine import Engine
from tests.engines.resources import (
    BUDGETS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

JOBS, RESERVATIONS, POOLS = (resource_of(info) for info in (registry.JOB, registry.RESERVATION, registry.POOL))
CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
KRUISE = Resource("policy.kruise.io", "v1alpha1", "podunavailablebudgets", "PodUnavailableBudget")
NOBODY = "nobody-there"
OURS = subject(account.SYSTEM_NAMESPACE, account.ACCOUNT)


@pytest.fixture(scope="module")
async def ours(api: Api, engine: Engine) -> AsyncIterator[Api]:
    """As the account that `herder install` makes, and the embedded engine at its start."""
    await install_crds(api)
    system: Json = {"metadata": {"name": account.SYSTEM_NAMESPACE}, "apiVersion": "v1", "kind": "Namespace"}
    for body in (system, *account.documents()):
        group, _, version = body["apiVersion"].rpartition("/")
        resource = Resource(group, version, f"{body['kind'].lower()}s", body["kind"])
        place, name = body["metadata"].get("namespace", ""), body["metadata"]["name"]
        (await api.patch(resource, name, body, place, kind="apply", fieldManager="test", force="true")).ok  # noqa: B018
    await until_allowed(api, "", OURS, rule("get", "podunavailablebudgets", "policy.kruise.io"))
    async with with_token(engine, await token_for(api, account.SYSTEM_NAMESPACE, account.ACCOUNT)) as connected:
        yield connected


async def test_our_controllers_see_what_a_pod_belongs_to_and_what_protects_it(ours: Api, engine: Engine, namespace: str) -> None:
    seen = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, CONTROLLER_REVISIONS, BUDGETS, PODS)
    for resource in (*seen, JOBS, RESERVATIONS):
        assert (await ours.list(resource)).code == 200, resource
    for resource in (CONTROLLERS, KRUISE):
        assert (await ours.list(resource)).code in (200, 404), "who may not is told so before that there is none"
    for resource in (DEPLOYMENTS, POOLS):
        assert (await ours.request("GET", resource.path(namespace, NOBODY, "scale"))).code == 404
        # Autoscalers are run by them in the embedded engine alone.
        refused = 404 if engine.name == "embedded" else 403
        assert (await ours.patch(resource, NOBODY, {"spec": {"replicas": 0}}, namespace, "scale")).code == refused
    for resource in (DEPLOYMENTS, DAEMON_SETS):
        assert (await ours.create(resource, workload("a"), namespace)).code == 403


async def test_our_controllers_carry_out_jobs_and_file_none(
    api: Api, ours: Api, namespace: str, unique: Callable[..., str]
) -> None:
    await make_owned_pod(api, "web-0", namespace)
    name, reference = unique("job"), {"namespace": namespace, "name": "web-0"}
    (await api.create(JOBS, {"metadata": {"name": name}, "spec": {"podRef": reference}})).ok  # noqa: B018
    assert (await ours.create(JOBS, {"metadata": {"name": f"{name}-b"}, "spec": {"podRef": reference}})).code == 403
    assert (await ours.patch(JOBS, name, {"status": {"phase": "Running"}}, subresource="status")).code == 200
    uid = (await ours.get(JOBS, name)).ok["metadata"]["uid"]
    # An owner that is not to go before it takes a right over the finalizers of the owner, where an API server insists on that.
    for finalizers in ("podmigrationjobs/finalizers", "reservations/finalizers"):
        await until_allowed(api, "", OURS, rule("update", finalizers, JOBS.group))
    owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": uid, "controller": True}
    metadata = {"name": name, "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}
    room = {"metadata": metadata, "spec": {"template": {"spec": {}}, "owners": [{"object": {"name": "web-0"}}]}}
    assert (await ours.create(RESERVATIONS, room)).code == 201
    assert (await ours.patch(RESERVATIONS, name, {"spec": {"unschedulable": True}})).code == 200
    assert (await ours.patch(RESERVATIONS, name, {"status": {"phase": "Available"}}, subresource="status")).code == 200
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-0"}}
    assert (await ours.request("POST", PODS.path(namespace, "web-0", "eviction"), evicted)).code == 201
    asked = {"spec": {"user": "jane", "resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "eviction"}}}
    assert (await ours.create(ACCESS_REVIEWS, asked)).ok["status"]["allowed"] is False
    for resource in (RESERVATIONS, JOBS):
        assert (await ours.delete(resource, name)).code == 200

"""What is accepted and probably not meant: the client is warned, by the path of the field."""

import pytest

from tests.behaviour.manifests import container, pod, template, workload
from tests.engines.api import Api, Json, Reply
from tests.engines.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, Resource


def fields(reply: Reply) -> list[str]:
    """The paths that the warnings of a success are about."""
    assert reply.code in (200, 201), reply.body
    assert all(warning.startswith('299 - "') for warning in reply.warnings)
    return [warning.removeprefix('299 - "').split(": ")[0] for warning in reply.warnings]


TWICE = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
PORTS = [{"containerPort": 80}, {"containerPort": 80}]
UNSELECTIVE = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SPECS: list[tuple[Json, list[str]]] = [
    ({"containers": [container(env=TWICE)]}, ["spec.containers[0].env[1]"]),
    ({"containers": [container(env=[TWICE[0], {"name": "A", "value": "$(A)2"}])]}, []),
    ({"containers": [container(ports=PORTS)]}, ["spec.containers[0].ports[1]"]),
    (
        {"containers": [container(resources={"limits": {"memory": "1500m"}})]},
        ["spec.containers[0].resources.limits[memory]", "spec.containers[0].resources.requests[memory]"],
    ),
    ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, ["spec.imagePullSecrets[1].name"]),
    ({"hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}, ["spec.hostAliases[1].ip"]),
    ({"topologySpreadConstraints": [UNSELECTIVE]}, ["spec.topologySpreadConstraints[0].labelSelector"]),
    ({"initContainers": [container("first", env=TWICE)]}, ["spec.initContainers[0].env[1]"]),
    ({}, []),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS, ids=lambda value: str(value)[:40] if isinstance(value, dict) else "")
async def test_a_pod_is_accepted_with_a_warning(api: Api, namespace: str, spec: Json, expected: list[str]) -> None:
    made = await api.create(PODS, pod("a", **spec), namespace)
    assert fields(made) == expected
    labelled = await api.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    assert fields(labelled) == []


async def test_a_name_with_dots_is_no_good_hostname(api: Api, namespace: str) -> None:
    assert fields(await api.create(PODS, pod("a.b"), namespace)) == ["metadata.name"]
    assert fields(await api.create(DEPLOYMENTS, workload("a.b"), namespace)) == ["metadata.name"]
    assert fields(await api.create(CONFIG_MAPS, {"metadata": {"name": "a.b"}}, namespace)) == []


async def test_a_template_is_warned_of_when_it_changes(api: Api, namespace: str) -> None:
    doubled = template({"app": "a"}, containers=[container(env=TWICE)])
    made = await api.create(DEPLOYMENTS, workload("a", template=doubled), namespace)
    assert fields(made) == ["spec.template.spec.containers[0].env[1]"]
    labelled = await api.patch(DEPLOYMENTS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    assert fields(labelled) == []
    paused = await api.patch(DEPLOYMENTS, "a", {"spec": {"paused": True}}, namespace)
    assert fields(paused) == ["spec.template.spec.containers[0].env[1]"]


async def test_a_dry_run_warns_and_a_refusal_does_not(api: Api, namespace: str) -> None:
    spec: Json = {"containers": [container(env=TWICE)]}
    assert len(fields(await api.create(PODS, pod("a", **spec), namespace, dryRun="All"))) == 1
    refused = await api.create(PODS, pod("A", **spec), namespace)
    assert (refused.code, refused.warnings) == (422, [])


@pytest.mark.parametrize(
    ("finalizer", "warned"),
    [("example.com/hold", 0), ("example.com", 1), ("hold", 1), ("foregroundDeletion", 0)],
)
async def test_a_finalizer_should_name_its_owner(api: Api, namespace: str, widgets: Resource, finalizer: str, warned: int) -> None:
    made = await api.create(widgets, {"metadata": {"name": "a", "finalizers": [finalizer]}}, namespace)
    assert fields(made) == ["metadata.finalizers"] * warned
    labelled = await api.patch(widgets, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    assert fields(labelled) == []
    await api.patch(widgets, "a", {"metadata": {"finalizers": None}}, namespace)


async def test_a_finalizer_that_is_added_is_warned_of(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, {"metadata": {"name": "a"}}, namespace)
    held = await api.patch(widgets, "a", {"metadata": {"finalizers": ["hold"]}}, namespace)
    assert fields(held) == ["metadata.finalizers"]
    await api.patch(widgets, "a", {"metadata": {"finalizers": None}}, namespace)

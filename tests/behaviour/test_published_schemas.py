"""What the API says of the shape of its objects is so."""

import pytest

from tests.behaviour.crds import definition, install, version
from tests.behaviour.manifests import config_map, pod, workload
from tests.behaviour.schemas import published, violations
from tests.engines.api import Api, Json
from tests.engines.resources import CLUSTER_ROLES, CONFIG_MAPS, CRDS, DEPLOYMENTS, NAMESPACES, PODS, Resource

# Each place where a schema takes more than one type.
MIXED: Json = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "default": 5},
        "word": {"type": "string", "default": "a", "enum": ["a", "b"]},
        "truth": {"type": "boolean", "default": True},
        "list": {"type": "array", "default": ["a"], "items": {"type": "string"}},
        "object": {"type": "object", "default": {"a": "b"}, "additionalProperties": {"type": "string"}},
        "share": {"x-kubernetes-int-or-string": True},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


async def test_definitions_have_the_shape_that_is_published(api: Api, group: str) -> None:
    body = definition(group, [version(spec=MIXED)])
    await install(api, body)
    components = await published(api, CRDS)
    assert violations(components, CRDS, "CustomResourceDefinitionList", (await api.list(CRDS)).ok) == []
    name = body["metadata"]["name"]
    assert violations(components, CRDS, "CustomResourceDefinition", (await api.get(CRDS, name)).ok) == []
    await api.delete(CRDS, name)


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        (PODS, pod("a", schedulerName="nobody")),
        (DEPLOYMENTS, workload("a", strategy={"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}})),
        (CONFIG_MAPS, config_map("a", {"k": "v"})),
    ],
    ids=lambda one: one.kind if isinstance(one, Resource) else "",
)
async def test_objects_have_the_shape_that_is_published(api: Api, namespace: str, resource: Resource, body: Json) -> None:
    made = await api.create(resource, body, namespace)
    components = await published(api, resource)
    assert violations(components, resource, resource.kind, made.ok) == []
    listed = (await api.list(resource, namespace)).ok
    assert violations(components, resource, f"{resource.kind}List", listed) == []


@pytest.mark.parametrize("resource", [NAMESPACES, CLUSTER_ROLES], ids=lambda one: one.kind)
async def test_lists_of_what_is_there_from_the_start_have_the_shape_that_is_published(api: Api, resource: Resource) -> None:
    listed = (await api.list(resource)).ok
    # Not what other tests make: Kubernetes shows a role without rules with null in their place, whatever it publishes.
    listed["items"] = [one for one in listed["items"] if one["metadata"]["name"].startswith(("kube-", "system:"))]
    assert listed["items"]
    assert violations(await published(api, resource), resource, f"{resource.kind}List", listed) == []

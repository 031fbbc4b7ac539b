"""Custom resource definitions for the tests, each in a group of its own so that tests do not meet."""

from typing import Any

from tests.engines.api import Api, Json
from tests.engines.resources import CRDS, Resource
from tests.engines.waiting import eventually

STRING: Json = {"type": "string"}
COUNT: Json = {"type": "integer", "format": "int32", "minimum": 0}

WIDGET_SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "limit": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed does not change"}]},
        "replicas": COUNT,
        "maybe": {"type": "string", "nullable": True},
        "parts": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": STRING, "weight": {"type": "integer", "default": 1}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not be above high"}
    ],
}
WIDGET_STATUS: Json = {"type": "object", "properties": {"phase": STRING, "replicas": COUNT, "selector": STRING}}
WIDGET_COLUMNS: list[Json] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "How it is."},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def schema(spec: Json | None = None, **more: Any) -> Json:
    return {"type": "object", "properties": {"spec": spec or WIDGET_SPEC, "status": WIDGET_STATUS, **more}}


def version(name: str = "v1", spec: Json | None = None, **more: Any) -> Json:
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema(spec)}, **more}


def definition(
    group: str, versions: list[Json] | None = None, kind: str = "Widget", scope: str = "Namespaced", **names: Any
) -> Json:
    singular = kind.lower()
    all_names = {"plural": f"{singular}s", "singular": singular, "kind": kind, "listKind": f"{kind}List", **names}
    return {
        "metadata": {"name": f"{all_names['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": all_names, "versions": versions or [version()]},
    }


def widgets_definition(group: str) -> Json:
    """With everything that a definition can ask for."""
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    whole = version(subresources={"status": {}, "scale": scale}, additionalPrinterColumns=WIDGET_COLUMNS)
    return definition(group, [whole], shortNames=["wd"], categories=["all"])


def resource_of(body: Json, version_name: str = "v1") -> Resource:
    spec = body["spec"]
    return Resource(spec["group"], version_name, spec["names"]["plural"], spec["names"]["kind"], spec["scope"] == "Namespaced")


def condition(found: Json, kind: str) -> Json:
    conditions: list[Json] = found.get("status", {}).get("conditions") or []  # null on one that was just made
    return next((one for one in conditions if one["type"] == kind), {})


async def install(api: Api, body: Json) -> Resource:
    """Creates the definition and waits until what it defines is served."""
    (await api.create(CRDS, body)).ok  # noqa: B018
    resource = resource_of(body)

    async def served() -> bool:
        found = (await api.get(CRDS, body["metadata"]["name"])).ok
        return condition(found, "Established").get("status") == "True" and (await api.list(resource)).code == 200

    await eventually(served)
    return resource


def widget(name: str, spec: Json | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"size": 1, **(spec or {})}}

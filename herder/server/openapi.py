"""The OpenAPI v3 documents: an index, and one document per group version, each built when it is first asked for.

`kubectl explain` reads the schemas, `kubectl apply` and `create` look in the paths for what they may send. OpenAPI v2 is made of
them (openapi_v2.py) for whoever reads it in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from herder.server import builtin_schemas
from herder.server.builtins import DESCRIPTIONS
from herder.server.discovery import Document, document, group_by_version
from herder.server.openapi_paths import LIST_META, OBJECT_META, SCHEMAS, paths, reference
from herder.server.openapi_v2 import as_version_2
from herder.server.resources import GroupVersion, Resource

Schema = dict[str, Any]
Schemas = dict[str, Schema]

_OWN_FIELDS: Schemas = {
    "apiVersion": {"description": "Group and version of the object's schema.", "type": "string"},
    "kind": {"description": "What kind of object it is.", "type": "string"},
}
_METADATA: Schema = {"description": "Name, labels, owners and the like.", "allOf": [reference(OBJECT_META)]}
_LIST_METADATA: Schema = {"description": "Where the list was read, and where it goes on.", "allOf": [reference(LIST_META)]}
_FIELD_DESCRIPTIONS = {
    **{name: field["description"] for name, field in _OWN_FIELDS.items()},
    "metadata": _METADATA["description"],
    "spec": "What is wanted.",
    "status": "What is there, as last seen.",
}


VERSION = "version"
_VERSION_CONTENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "Herder", "version": "v1"},
    "paths": {"/version/": {"get": {"description": "The version of the server.", "responses": {"200": {"description": "OK"}}}}},
    "components": {"schemas": {}},
}


class OpenApi:
    """`components` gives the schemas of built-in kinds by name; it is called when the first document is built."""

    def __init__(
        self, resources: Iterable[Resource], components: Callable[[], Mapping[str, Schema]] = builtin_schemas.components
    ) -> None:
        self._components = components
        self._resources: dict[str, tuple[Resource, ...]] = {}
        self._documents: dict[str, Document] = {}
        self._index: Document | None = None
        self._version_2: Document | None = None
        self.update(resources)

    def update(self, resources: Iterable[Resource]) -> None:
        """When CRDs come or go: documents of group versions whose resources stay the same are kept."""
        current: dict[str, tuple[Resource, ...]] = {}
        for group, versions in group_by_version(resources).items():
            for version, members in versions.items():
                current[_path(group, version)] = tuple(members)
        kept = {path for path in self._documents if current.get(path) == self._resources.get(path)}
        self._documents = {path: self._documents[path] for path in kept}
        self._resources = current
        self._index = None
        self._version_2 = None

    def index(self) -> Document:
        """/openapi/v3: where each document is, with its hash, so that clients know when it has changed."""
        if self._index is None:
            paths = sorted([*self._resources, VERSION])
            self._index = document({"paths": {path: {"serverRelativeURL": self.url(path)} for path in paths}})
        return self._index

    def version_2(self) -> Document:
        """/openapi/v2 in JSON."""
        if self._version_2 is None:
            documents = (self.document(path) for path in (*self._resources, VERSION))
            self._version_2 = document(as_version_2(msgspec.json.decode(one.body) for one in documents if one is not None))
        return self._version_2

    def url(self, path: str) -> str:
        found = self.document(path)
        return f"/openapi/v3/{path}?hash={found.etag if found else ''}"

    def document(self, path: str) -> Document | None:
        """/openapi/v3/PATH, where the path is `api/v1` or `apis/GROUP/VERSION`."""
        if path not in self._documents and path in self._resources:
            self._documents[path] = document(_content(self._resources[path], self._components()))
        if path == VERSION:
            return document(_VERSION_CONTENT)
        return self._documents.get(path)


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _content(resources: tuple[Resource, ...], components: Mapping[str, Schema]) -> dict[str, Any]:
    names = {resource: schema_name(resource) for resource in resources}
    schemas: Schemas = {}
    for resource, name in names.items():
        schemas[name] = _builtin_schema(resource, components.get(name)) if resource.builtin else custom_schema(resource)
        if resource.is_stored:
            schemas[f"{name}List"] = components.get(f"{name}List") or _list_schema(resource, name)
    served = paths(resources, names)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Herder", "version": str(GroupVersion(resources[0].group, resources[0].version))},
        "paths": served,
        "components": {"schemas": _with_referenced(schemas, served, components)},
    }


def schema_name(resource: Resource) -> str:
    """`io.k8s.api.apps.v1.Deployment` for a built-in kind, the group read backwards for a CRD."""
    if not resource.builtin:
        return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    if resource.group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{resource.version}.{resource.kind}"
    package = resource.group.split(".")[0] or "core"
    return f"io.k8s.api.{package}.{resource.version}.{resource.kind}"


def _kind(resource: Resource, kind: str) -> list[dict[str, str]]:
    return [{"group": resource.group, "kind": kind, "version": resource.version}]


def _builtin_schema(resource: Resource, schema: Schema | None) -> Schema:
    known = schema or {"type": "object", "properties": {**_OWN_FIELDS, "metadata": _METADATA}}
    properties: Schemas = known.get("properties") or {}
    return {
        "description": DESCRIPTIONS.get((resource.group, resource.kind), ""),
        **known,
        "properties": {name: _described(name, field) for name, field in properties.items()},
        "x-kubernetes-group-version-kind": _kind(resource, resource.kind),
    }


def _described(name: str, field: Schema) -> Schema:
    return {"description": _FIELD_DESCRIPTIONS[name], **field} if name in _FIELD_DESCRIPTIONS else field


def custom_schema(resource: Resource) -> Schema:
    """A CRD's own schema with the fields that every object has."""
    schema = resource.openapi or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties: Schemas = schema.get("properties") or {}
    return {
        **schema,
        "properties": {**properties, **_OWN_FIELDS, "metadata": _METADATA},
        "x-kubernetes-group-version-kind": _kind(resource, resource.kind),
    }


def _list_schema(resource: Resource, name: str) -> Schema:
    items = {"description": f"The {resource.plural} of this page.", "type": "array", "items": reference(name)}
    kind = resource.list_kind or f"{resource.kind}List"
    return {
        "description": f"A list of {resource.plural}.",
        "type": "object",
        "required": ["items"],
        "properties": {**_OWN_FIELDS, "items": items, "metadata": _LIST_METADATA},
        "x-kubernetes-group-version-kind": _kind(resource, kind),
    }


def _with_referenced(schemas: Schemas, served: dict[str, Any], components: Mapping[str, Schema]) -> Schemas:
    """All schemas that are referred to, directly or through others; one that nobody knows is an object of any shape."""
    complete: Schemas = {}
    waiting = [*schemas, *sorted(_references(served))]
    while waiting:
        name = waiting.pop()
        if name not in complete:
            # An empty schema is one, too: what may be of any type.
            complete[name] = schemas[name] if name in schemas else components.get(name, {"type": "object"})
            waiting.extend(_references(complete[name]))
    return dict(sorted(complete.items()))


def _references(part: Any) -> set[str]:
    found: set[str] = set()
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            target = one.get("$ref")
            if isinstance(target, str):
                found.add(target.removeprefix(SCHEMAS))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found

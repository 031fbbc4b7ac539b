"""The paths of an OpenAPI document: which operations there are on each resource, and what they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herder.server.resources import ACTION_KINDS, Resource

SCHEMAS = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META, LIST_META = META + "ObjectMeta", META + "ListMeta"
SCALE = "io.k8s.api.autoscaling.v1.Scale"
TOKEN_REQUEST = "io.k8s.api.authentication.v1.TokenRequest"
ACTIONS = {"binding": "io.k8s.api.core.v1.Binding", "eviction": "io.k8s.api.policy.v1.Eviction"}

MEDIA_TYPES = ("application/json", "application/yaml")
PATCH_TYPES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

Operation = dict[str, Any]


def reference(name: str) -> dict[str, str]:
    return {"$ref": SCHEMAS + name}


def _query(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _in_path(name: str, description: str) -> dict[str, Any]:
    return {**_query(name, description), "in": "path", "required": True}


NAME = _in_path("name", "Name of the object.")
NAMESPACE = _in_path("namespace", "Namespace of the object.")

_DRY_RUN = _query("dryRun", "`All` checks everything and stores nothing.")
_RESOURCE_VERSION = _query("resourceVersion", "How fresh the answer must be.")

WRITE = [
    _DRY_RUN,
    _query("fieldManager", "Who is making the change; at most 128 printable characters."),
    _query("fieldValidation", "What to do about unknown and duplicate fields: Ignore, Warn or Strict."),
]
PATCH = [*WRITE, _query("force", "Take over fields that others own. For apply only.", "boolean")]
READ = [_RESOURCE_VERSION]
LIST = [
    _query("allowWatchBookmarks", "Whether a watch may send bookmarks.", "boolean"),
    _query("continue", "Where the last page ended."),
    _query("fieldSelector", "Only objects whose fields match."),
    _query("labelSelector", "Only objects whose labels match."),
    _query("limit", "At most so many objects at once.", "integer"),
    _RESOURCE_VERSION,
    _query("resourceVersionMatch", "How resourceVersion is meant: Exact or NotOlderThan."),
    _query("sendInitialEvents", "Whether a watch begins with what exists.", "boolean"),
    _query("timeoutSeconds", "After how long to end.", "integer"),
    _query("watch", "Go on with every change instead of ending.", "boolean"),
]
DELETE = [
    _DRY_RUN,
    _query("gracePeriodSeconds", "How long it may take to end; 0 is at once.", "integer"),
    _query("orphanDependents", "Older name of propagationPolicy=Orphan.", "boolean"),
    _query("propagationPolicy", "What becomes of what it owns: Orphan, Background or Foreground."),
]
DELETE_COLLECTION = [*DELETE, *[one for one in LIST if one["name"] not in ("allowWatchBookmarks", "watch")]]


def paths(resources: tuple[Resource, ...], names: Mapping[Resource, str]) -> dict[str, Any]:
    """`names` gives the name of each resource's schema."""
    found: dict[str, Any] = {}
    for resource in resources:
        found.update(_Paths(resource, names[resource]).all())
    return dict(sorted(found.items()))


class _Paths:
    def __init__(self, resource: Resource, schema: str) -> None:
        self.resource, self.schema = resource, schema
        root = f"/apis/{resource.group_version}" if resource.group else f"/api/{resource.version}"
        self.everywhere = f"{root}/{resource.plural}"
        self.collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else self.everywhere
        self.item = f"{self.collection}/{{name}}"

    def all(self) -> dict[str, Any]:
        if not self.resource.is_stored:
            return {self.collection: self._collection()}
        found = {self.collection: self._collection(), self.item: self._item()}
        for action in self.resource.actions:
            found[f"{self.item}/{action}"] = self._action(action)
        if self.resource.namespaced:
            listing = self._operation("list", "ForAllNamespaces", "list", LIST, self._list())
            found[self.everywhere] = {"get": listing}
        if self.resource.status:
            found[f"{self.item}/status"] = self._subresource("Status", self.schema)
        if self.resource.scale is not None:
            found[f"{self.item}/scale"] = self._subresource("Scale", SCALE)
        if self.resource.finalize:
            put = self._operation("replace", "Finalize", "put", WRITE, self.schema, body=self.schema)
            found[f"{self.item}/finalize"] = {"put": put, "parameters": [NAME]}
        if self.resource.token:
            post = self._operation("create", "Token", "post", WRITE, TOKEN_REQUEST, body=TOKEN_REQUEST)
            found[f"{self.item}/token"] = {"post": post, "parameters": self._item_parameters()}
        return found

    def _collection(self) -> dict[str, Any]:
        verbs = {
            "get": ("list", self._operation("list", "", "list", LIST, self._list())),
            "post": ("create", self._operation("create", "", "post", WRITE, self.schema, body=self.schema)),
            "delete": ("deletecollection", self._delete("Collection", "deletecollection", DELETE_COLLECTION)),
        }
        return {**self._served(verbs), **({"parameters": [NAMESPACE]} if self.resource.namespaced else {})}

    def _item(self) -> dict[str, Any]:
        verbs = {
            "get": ("get", self._operation("read", "", "get", READ, self.schema)),
            "put": ("update", self._operation("replace", "", "put", WRITE, self.schema, body=self.schema)),
            "delete": ("delete", self._delete("", "delete", DELETE)),
            "patch": ("patch", self._patch("", self.schema)),
        }
        return {**self._served(verbs), "parameters": self._item_parameters()}

    def _subresource(self, name: str, schema: str) -> dict[str, Any]:
        return {
            "get": self._operation("read", name, "get", READ, schema),
            "put": self._operation("replace", name, "put", WRITE, schema, body=schema),
            "patch": self._patch(name, schema),
            "parameters": self._item_parameters(),
        }

    def _action(self, name: str) -> dict[str, Any]:
        schema = ACTIONS[name]
        operation = self._operation("create", name.capitalize(), "post", WRITE, schema, body=schema)
        kind = ACTION_KINDS[name]
        operation["x-kubernetes-group-version-kind"] = kind if kind["version"] else {**kind, "version": self.resource.version}
        return {"post": operation, "parameters": self._item_parameters()}

    def _served(self, verbs: dict[str, tuple[str, Operation]]) -> dict[str, Operation]:
        return {method: operation for method, (verb, operation) in verbs.items() if verb in self.resource.verbs}

    def _item_parameters(self) -> list[dict[str, Any]]:
        return [NAME, NAMESPACE] if self.resource.namespaced else [NAME]

    def _list(self) -> str:
        return f"{self.schema}List"

    def _patch(self, suffix: str, schema: str) -> Operation:
        # Only kinds that the server knows by heart say how their lists merge.
        types = (*PATCH_TYPES, STRATEGIC_PATCH) if self.resource.builtin else PATCH_TYPES
        operation = self._operation("patch", suffix, "patch", PATCH, schema)
        operation["requestBody"] = {"content": _content(types, META + "Patch"), "required": True}
        return operation

    def _delete(self, suffix: str, action: str, parameters: list[dict[str, Any]]) -> Operation:
        operation = self._operation("delete", suffix, action, parameters, META + "Status")
        operation["requestBody"] = {"content": _content(("*/*",), META + "DeleteOptions")}
        return operation

    def _operation(
        self, verb: str, suffix: str, action: str, parameters: list[dict[str, Any]], answer: str, body: str = ""
    ) -> Operation:
        operation: Operation = {
            "tags": [self._tag()],
            "description": f"{verb} {self.resource.kind}{f' ({suffix})' if suffix else ''}",
            "operationId": self._operation_id(verb, suffix),
            "parameters": parameters,
            "responses": {
                "200": {"description": "OK", "content": _content(MEDIA_TYPES, answer)},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self._kind(suffix),
        }
        if body:
            operation["requestBody"] = {"content": _content(("*/*",), body), "required": True}
        return operation

    def _kind(self, suffix: str) -> dict[str, str]:
        if suffix == "Scale" and self.resource.builtin:
            return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        if suffix == "Token":
            return {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
        return {"group": self.resource.group, "version": self.resource.version, "kind": self.resource.kind}

    def _labels(self) -> list[str]:
        group = self.resource.group.removesuffix(".k8s.io") if self.resource.builtin else self.resource.group
        return group.replace("-", ".").split(".") if group else ["core"]

    def _tag(self) -> str:
        first, *more = self._labels()
        return f"{first}{''.join(label.capitalize() for label in more)}_{self.resource.version}"

    def _operation_id(self, verb: str, suffix: str) -> str:
        group = "".join(label.capitalize() for label in self._labels())
        scope = "Namespaced" if self.resource.namespaced and suffix != "ForAllNamespaces" else ""
        before, after = (suffix, "") if suffix == "Collection" else ("", suffix)
        return f"{verb}{group}{self.resource.version.capitalize()}{before}{scope}{self.resource.kind}{after}"


def _content(media_types: tuple[str, ...], schema: str) -> dict[str, Any]:
    return {media_type: {"schema": reference(schema)} for media_type in media_types}

"""What the engine serves: one Resource per (group, version, plural), for built-in kinds and for CRDs alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

# What is posted to a subresource that only acts. An empty group and version are those of the resource.
ACTION_KINDS = {
    "binding": {"group": "", "version": "", "kind": "Binding"},
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
}
# What a node answers: the kind of the question, and the verbs by which it is asked.
CONNECT_KINDS: dict[str, tuple[dict[str, str], list[str]]] = {
    "attach": ({"group": "", "version": "", "kind": "PodAttachOptions"}, ["create", "get"]),
    "log": ({"group": "", "version": "", "kind": "Pod"}, ["get"]),
}


class Scale(msgspec.Struct, frozen=True):
    """Where the scale subresource finds its numbers in the object, as dotted paths without the leading dot."""

    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None


class Column(msgspec.Struct, frozen=True):
    """A printer column of `kubectl get`. Priority 0 is always shown, anything higher only by `-o wide`."""

    name: str
    type: str = "string"
    description: str = ""
    format: str = ""
    priority: int = 0
    json_path: str = ""


class GroupVersion(NamedTuple):
    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One served resource. `openapi` is its OpenAPI v3 schema; None where nothing is known of its shape."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False
    scale: Scale | None = None
    finalize: bool = False
    token: bool = False
    # A question that is answered and never stored.
    review: bool = False
    # Never stored, but measured: made of what nodes say, whenever somebody asks.
    measured: bool = False
    # Subresources that are only ever posted: something is done with the object, and nothing of it is stored.
    actions: tuple[str, ...] = ()
    # Subresources that are answered by the node on which the object runs, or refused with a sentence.
    connects: tuple[str, ...] = ()
    # Group and version of what is stored, where they are others than its own.
    storage_version: str = ""
    openapi: dict[str, Any] | None = None
    columns: tuple[Column, ...] | None = None
    builtin: bool = True

    @property
    def is_stored(self) -> bool:
        """Not so of a kind that is only an address to post to."""
        return "get" in self.verbs

    @property
    def group_version(self) -> str:
        return str(GroupVersion(self.group, self.version))

    @property
    def qualified(self) -> str:
        """`pods`, `deployments.apps`: the name that people and errors use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

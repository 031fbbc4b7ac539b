"""A schema, resolved once: every `$ref` followed, every keyword looked up, so that walking an object looks up nothing.

Two dialects meet here. Custom resources bring structural schemas: an object without properties loses everything in it, null is
wrong unless `nullable` says otherwise. Built-in kinds (those compiled with a table of components) are what Go's decoder accepts:
an object without properties holds anything, null means absent.
"""

from __future__ import annotations

from typing import Any, Final

from herder.server import builtin_schemas

ABSENT: Final = object()
META_FIELDS: Final = ("apiVersion", "kind", "metadata")
_OBJECT_META = f"{builtin_schemas.REFERENCE}{builtin_schemas.OBJECT_META}"


class Node:
    """One place in a schema. `properties` and `additional` are None-free: no entry means that nothing is known."""

    __slots__ = (
        "additional",
        "all_of",
        "any_of",
        "builtin",
        "default",
        "embedded",
        "format",
        "int_or_string",
        "items",
        "list_type",
        "map_keys",
        "map_type",
        "name",
        "not_",
        "nullable",
        "one_of",
        "preserve",
        "properties",
        "raw",
        "required",
        "rules",
        "types",
    )

    def __init__(self, raw: dict[str, Any], name: str, builtin: bool) -> None:
        self.raw = raw
        self.name = name
        self.builtin = builtin
        self.int_or_string = bool(raw.get("x-kubernetes-int-or-string")) or raw.get("format") == "int-or-string"
        self.types: tuple[str, ...] = _types(raw, self.int_or_string)
        self.format: str = raw.get("format", "")
        self.nullable: bool = builtin or bool(raw.get("nullable"))
        self.default: Any = raw.get("default", ABSENT)
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields")) or (builtin and _holds_anything(raw))
        self.list_type: str = raw.get("x-kubernetes-list-type", "")
        self.map_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = raw.get("x-kubernetes-map-type", "")
        self.required: tuple[str, ...] = tuple(raw.get("required", ()))
        self.rules: list[dict[str, Any]] = raw.get("x-kubernetes-validations", [])
        self.properties: dict[str, Node] = {}
        self.items: Node | None = None
        self.additional: Node | None = None
        self.all_of: tuple[Node, ...] = ()
        self.any_of: tuple[Node, ...] = ()
        self.one_of: tuple[Node, ...] = ()
        self.not_: Node | None = None

    @property
    def type(self) -> str:
        return self.types[0] if self.types else ""

    def child(self, field: str) -> Node | None:
        return self.properties.get(field) or self.additional


def build(openapi: dict[str, Any], components: dict[str, Any] | None = None) -> Node:
    """The root of a resource: what it says, and the object's own metadata."""
    builder = _Builder(components)
    root = builder.node(openapi)
    builder.finish()
    if components is None:
        root.embedded = True
        add_meta(root)
    return root


def add_meta(node: Node) -> None:
    """A resource's metadata is always ObjectMeta, whatever its schema says: the schema may only narrow the name."""
    narrowed = node.properties.get("metadata")
    meta = object_meta()
    if narrowed is not None and narrowed.properties:
        meta = _copied(meta)
        meta.properties = {**meta.properties, **narrowed.properties}
    string = _Builder(None).node({"type": "string"})
    node.properties = {"apiVersion": string, "kind": string, **node.properties, "metadata": meta}


def object_meta() -> Node:
    global _meta
    if _meta is None:
        builder = _Builder(builtin_schemas.components())
        _meta = builder.node({"$ref": _OBJECT_META})
        builder.finish()
    return _meta


_meta: Node | None = None


class _Builder:
    def __init__(self, components: dict[str, Any] | None) -> None:
        self.components = components
        self.known: dict[str, Node] = {}
        self.beside: list[tuple[dict[str, Any], Node, Node]] = []

    def finish(self) -> None:
        """What stands beside a reference wins over what is said there; the component itself is whole only now."""
        for raw, beside, found in self.beside:
            _copy(found, beside)
            beside.default = raw.get("default", ABSENT)
            beside.map_type = raw.get("x-kubernetes-map-type", found.map_type)

    def node(self, raw: dict[str, Any]) -> Node:
        reference = _reference(raw)
        if reference and self.components is not None:
            return self._referred(raw, reference)
        return self._filled(Node(raw, "", self.components is not None))

    def _referred(self, raw: dict[str, Any], reference: str) -> Node:
        """A component is built once, which also ends the recursion of those that contain themselves."""
        found = self.known.get(reference)
        if found is None:
            table = self.components or {}
            found = self.known[reference] = Node(table[reference], reference, True)
            self._filled(found)
        if "default" not in raw and "x-kubernetes-map-type" not in raw:
            return found
        beside = _copied(found)
        self.beside.append((raw, beside, found))
        return beside

    def _filled(self, node: Node) -> Node:
        raw = node.raw
        if "properties" in raw:
            node.properties = {name: self.node(one) for name, one in raw["properties"].items()}
        if isinstance(raw.get("items"), dict):
            node.items = self.node(raw["items"])
        more = raw.get("additionalProperties")
        if isinstance(more, dict):
            node.additional = self.node(more)
        elif more is True:
            node.additional = Node({"nullable": True}, "", node.builtin)
            node.additional.preserve = node.builtin
        node.all_of = self._each(raw, "allOf")
        node.any_of = self._each(raw, "anyOf")
        node.one_of = self._each(raw, "oneOf")
        if isinstance(raw.get("not"), dict):
            node.not_ = self.node(raw["not"])
        if node.embedded:
            add_meta(node)
        return node

    def _each(self, raw: dict[str, Any], keyword: str) -> tuple[Node, ...]:
        return tuple([self.node(one) for one in raw[keyword]]) if keyword in raw else ()


def _copied(node: Node) -> Node:
    copied = Node.__new__(Node)
    _copy(node, copied)
    return copied


def _copy(node: Node, onto: Node) -> None:
    for slot in Node.__slots__:
        setattr(onto, slot, getattr(node, slot))


def _reference(raw: dict[str, Any]) -> str:
    """The name behind `$ref`, also in the form `allOf: [{$ref}]` that kube-apiserver writes beside a default."""
    reference = raw.get("$ref")
    several = raw.get("allOf")
    if reference is None and several and len(several) == 1 and "properties" not in raw:
        reference = several[0].get("$ref")
    return reference.removeprefix(builtin_schemas.REFERENCE) if reference else ""


def _types(raw: dict[str, Any], int_or_string: bool) -> tuple[str, ...]:
    if int_or_string:
        return ("integer", "string")
    if "oneOf" in raw and "type" not in raw and all(set(one) == {"type"} for one in raw["oneOf"]):
        return tuple(one["type"] for one in raw["oneOf"])  # Quantity: a string or a number
    return (raw["type"],) if raw.get("type") else ()


def _holds_anything(raw: dict[str, Any]) -> bool:
    return raw.get("type", "object") == "object" and not any(
        key in raw for key in ("properties", "additionalProperties", "oneOf", "format")
    )

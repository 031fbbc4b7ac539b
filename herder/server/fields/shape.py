"""Which paths an object has, and which of them changed, as its schema divides it.

An object is divided into its fields, a map into its keys, a list that is a map or a set into its items. Everything else is one
piece: scalars, lists of unknown order, and what the schema calls atomic. Compiled once for each schema, like everything there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from herder.server.fields.sets import LEAF, SELF, FieldSet
from herder.server.schema.node import ABSENT, Node

_NOTHING = object()


class Change:
    """Paths that came, changed and went, each as the part of a set below one place."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added: FieldSet = {}
        self.modified: FieldSet = {}
        self.removed: FieldSet = {}


class Shape:
    """One piece: a value that is owned as a whole."""

    __slots__ = ()

    def every(self, value: Any) -> FieldSet:
        """All paths of a value that was not there before, itself among them."""
        return LEAF

    def compare(self, old: Any, new: Any, element: str, into: Change) -> None:
        """Records what differs; called only where something does."""
        into.modified[element] = LEAF

    def is_divided(self, value: Any) -> bool:
        return False


PIECE = Shape()


class Divided(Shape):
    """A value with parts. A part is found again by its element: `f:name`, `k:{"name":"x"}`, `v:"x"`.

    `skips_null`: between null and not being there is no difference, as in a Go struct; in a custom resource there is one.
    """

    __slots__ = ("skips_null",)

    def __init__(self, skips_null: bool = False) -> None:
        self.skips_null = skips_null

    def parts(self, value: Any) -> dict[str, tuple[Any, Shape]] | None:
        """The parts by element (an empty value may come in any form); None where they cannot be told apart."""
        raise AssertionError

    def compare(self, old: Any, new: Any, element: str, into: Change) -> None:
        if not (self.is_divided(old) or self.is_divided(new)):
            into.modified[element] = LEAF
            return
        before, after = self._parts_or_none(old), self._parts_or_none(new)
        if before is None or after is None:
            into.modified[element] = LEAF
            return
        if self.skips_null:
            _level_nulls(before, after)
        inner = Change()
        _compare_parts(before, after, inner)
        for here, part in ((into.added, inner.added), (into.modified, inner.modified), (into.removed, inner.removed)):
            if part:
                here[element] = part

    def _parts_or_none(self, value: Any) -> dict[str, tuple[Any, Shape]] | None:
        if value is None or value in ({}, []):
            return self.parts(())
        return self.parts(value) if self.is_divided(value) else None


def _level_nulls(before: dict[str, tuple[Any, Shape]], after: dict[str, tuple[Any, Shape]]) -> None:
    for mine, theirs in ((before, after), (after, before)):
        for element in [element for element, part in mine.items() if part[0] is None and element not in theirs]:
            del mine[element]


def _compare_parts(before: dict[str, tuple[Any, Shape]], after: dict[str, tuple[Any, Shape]], into: Change) -> None:
    for element, (new, shape) in after.items():
        old = before.get(element)
        if old is None:
            into.added[element] = shape.every(new)
        elif old[0] is not new and old[0] != new:
            shape.compare(old[0], new, element, into)
    for element, (old_value, shape) in before.items():
        if element not in after:
            into.removed[element] = shape.every(old_value)


class Fields(Divided):
    """An object with named fields, or a map: `named` holds the element and the shape of each field that the schema names.

    `always` is what an object of a built-in kind has from the start: a Go struct comes with its inner structs, so nobody owns
    `spec` as such by creating an object, while they do own `spec.nodeSelector`.
    """

    __slots__ = ("always", "named", "other")

    def __init__(self, skips_null: bool) -> None:
        super().__init__(skips_null)
        self.named: dict[str, tuple[str, Shape]] = {}
        self.other: Shape = PIECE
        self.always: dict[str, tuple[Any, Shape]] = {}

    def is_divided(self, value: Any) -> bool:
        return type(value) is dict and bool(value)

    def every(self, value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return LEAF
        found: FieldSet = {SELF: LEAF}
        self.fill(value, found)
        return found

    def fill(self, value: dict[str, Any], found: FieldSet) -> None:
        """The hot loop of every create."""
        named = self.named
        for key, inner in value.items():
            entry = named.get(key)
            if entry is None:
                found["f:" + key] = LEAF if self.other is PIECE else self.other.every(inner)
            else:
                found[entry[0]] = LEAF if entry[1] is PIECE else entry[1].every(inner)

    def parts(self, value: Any) -> dict[str, tuple[Any, Shape]] | None:
        found = dict(self.always)
        for key, inner in value.items() if value else ():
            entry = self.named.get(key)
            if entry is None:
                found["f:" + key] = (inner, self.other)
            else:
                found[entry[0]] = (inner, entry[1])
        return found


class Pieces(Fields):
    """A map whose values are single pieces: labels, annotations, amounts of resources."""

    __slots__ = ()

    def every(self, value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return LEAF
        found = {"f:" + key: LEAF for key in value}
        found[SELF] = LEAF
        return found


class Items(Divided):
    """A list that is a map (items told apart by keys) or a set (items told apart by what they are)."""

    __slots__ = ("defaults", "inner", "keys", "only")

    def __init__(self, keys: tuple[str, ...], defaults: dict[str, Any], inner: Shape) -> None:
        super().__init__()
        self.keys = tuple(sorted(keys))
        self.only = keys[0] if len(keys) == 1 else None
        self.defaults = defaults
        self.inner = inner

    def is_divided(self, value: Any) -> bool:
        return type(value) is list and bool(value)

    def every(self, value: Any) -> FieldSet:
        if type(value) is not list or not value:
            return LEAF
        found: FieldSet = {SELF: LEAF}
        inner = self.inner
        for one in value:
            element = self.element(one)
            if element is None:
                return LEAF
            # Two items with the same key: nothing in them can be told apart, the key alone is owned.
            found[element] = inner.every(one) if element not in found else LEAF
        return found

    def parts(self, value: Any) -> dict[str, tuple[Any, Shape]] | None:
        found: dict[str, tuple[Any, Shape]] = {}
        for one in value:
            element = self.element(one)
            if element is None:
                return None
            if element in found:
                found[element] = ([found[element][0], one], PIECE)
            else:
                found[element] = (one, self.inner)
        return found

    def element(self, item: Any) -> str | None:
        if self.only is not None and type(item) is dict:
            value = item.get(self.only)
            if type(value) is str:
                return _known_item(self.only, value) if len(value) <= LONGEST_KNOWN else _named_item(self.only, value)
        if not self.keys:
            return f"v:{_text(item)}"
        if type(item) is not dict:
            return None
        values = [item.get(key, self.defaults.get(key, _NOTHING)) for key in self.keys]
        if all(one is _NOTHING for one in values):
            return None
        pairs = [f'"{key}":{_text(one)}' for key, one in zip(self.keys, values, strict=True) if one is not _NOTHING]
        return f"k:{{{','.join(pairs)}}}"


def _named_item(key: str, value: str) -> str:
    return f'k:{{"{key}":{_text(value)}}}'


# Items are mostly told apart by one name, and the same names come again with every object. Those that are longer than names are
# somebody's text, of any size.
LONGEST_KNOWN = 64
_known_item = lru_cache(maxsize=8192)(_named_item)


def _text(value: Any) -> str:
    """As Go writes it: what HTML would trip over is escaped."""
    text = msgspec.json.encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


class Deduced(Divided):
    """A value without a schema: objects are divided all the way down, everything else is one piece."""

    __slots__ = ()

    def is_divided(self, value: Any) -> bool:
        return type(value) is dict and bool(value)

    def every(self, value: Any) -> FieldSet:
        if type(value) is not dict or not value:
            return LEAF
        return {SELF: LEAF, **{f"f:{key}": self.every(inner) for key, inner in value.items()}}

    def parts(self, value: Any) -> dict[str, tuple[Any, Shape]] | None:
        return {f"f:{key}": (inner, self) for key, inner in value.items()} if value else {}


DEDUCED = Deduced()


def compile_shape(root: Node) -> Fields:
    shape = _compile(root, {})
    assert isinstance(shape, Fields)
    return shape


def _compile(node: Node, known: dict[int, Shape]) -> Shape:
    found = known.get(id(node))
    if found is not None:
        return found
    if node.type == "object" and node.map_type != "atomic" and (node.properties or node.additional is not None):
        return _compile_fields(node, known)
    if node.type == "array" and node.list_type in ("map", "set") and node.items is not None:
        return _compile_items(node, known)
    # What Go keeps as raw JSON (a ControllerRevision's data) is one piece there.
    known[id(node)] = shape = DEDUCED if node.preserve and node.map_type != "atomic" and not node.builtin else PIECE
    return shape


def _compile_fields(node: Node, known: dict[int, Shape]) -> Shape:
    is_map = not node.properties and node.additional is not None and _compile(node.additional, known) is PIECE
    known[id(node)] = shape = (Pieces if is_map else Fields)(skips_null=node.builtin)
    for name, child in node.properties.items():
        inner = _compile(child, known)
        shape.named[name] = (f"f:{name}", inner)
        blank = _blank(child, name in node.required) if node.builtin else None
        if blank is not None:
            shape.always[f"f:{name}"] = (blank, inner)
    if node.additional is not None:
        shape.other = _compile(node.additional, known)
    elif node.preserve:
        shape.other = DEDUCED
    return shape


def _blank(node: Node, required: bool) -> Any:
    """What Go writes for a field that nobody set: structs by value, and whatever may not be left out. None: nothing."""
    if node.default in ({}, "", 0, False) and node.default is not ABSENT:
        return node.default
    if required and node.type in ("array", "object"):
        return [] if node.type == "array" else {}
    return None


def _compile_items(node: Node, known: dict[int, Shape]) -> Shape:
    assert node.items is not None
    keys = node.map_keys if node.list_type == "map" else ()
    defaults = {key: child.default for key in keys if (child := node.items.properties.get(key)) and child.default is not ABSENT}
    inner = _compile(node.items, known) if node.list_type == "map" else PIECE
    known[id(node)] = shape = Items(keys, defaults, inner)
    return shape

"""Strategic merge patch: a merge patch that knows, from the schema, which lists are merged and by which key.

Directives in the patch say the rest: `$patch` (replace or delete what is here), `$retainKeys`, `$deleteFromPrimitiveList/<field>`
and `$setElementOrder/<field>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herder.server.patching.json_patch import PatchError
from herder.server.patching.strategic_order import at, check_against_order, ordered_as, places

Document = dict[str, Any]
Schema = Mapping[str, Any]
DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"
_REFERENCE = "#/components/schemas/"


def apply_strategic_patch(document: Document, patch: Document, schema: Schema, components: Mapping[str, Any]) -> Document:
    """Changes `document` in place as far as it can, and returns the result. `schema` is the kind's, its `$ref`s point into
    `components`. PatchError where the patch makes no sense."""
    return _Merging(components).maps(document, patch, schema)


class _Merging:
    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    # --- maps --------------------------------------------------------------------------------------------------------------------

    def maps(self, document: Document, patch: Document, schema: Schema) -> Document:
        if DIRECTIVE in patch:
            return _directed(patch)
        _retain(document, patch)
        for key in patch:
            if key.startswith(SET_ORDER):
                self._in_given_order(document, patch, _named_field(key, SET_ORDER), schema)
        for key, value in patch.items():
            if key == RETAIN_KEYS or key.startswith(SET_ORDER) or f"{SET_ORDER}/{key}" in patch:
                continue
            if key.startswith(DELETE_FROM):
                if f"{SET_ORDER}/{_named_field(key, DELETE_FROM)}" not in patch:
                    _delete_from(document, _named_field(key, DELETE_FROM), value)
            else:
                self._field(document, key, value, schema)
        return document

    def _field(self, document: Document, key: str, value: Any, schema: Schema) -> None:
        if value is None:
            document.pop(key, None)
            return
        old, field = document.get(key), self._schema_of(schema, key)
        if isinstance(old, dict) and isinstance(value, dict) and "replace" not in _strategies(field):
            document[key] = self.maps(old, value, field)
        elif isinstance(old, list) and isinstance(value, list) and "merge" in _strategies(field):
            document[key] = self._lists(old, value, field)
        elif isinstance(value, dict) and DIRECTIVE in value:
            document.pop(key, None)  # there is nothing of its kind to direct
        else:
            document[key] = plain(value)

    # --- lists -------------------------------------------------------------------------------------------------------------------

    def _lists(self, old: list[Any], patch: list[Any], field: Schema) -> list[Any]:
        """Ordered as the patch has it; what only the object has keeps its place."""
        merged, wanted, before = self._merged(old, patch, field)
        return ordered_as(merged, wanted, before, _merge_key(field))

    def _merged(self, old: list[Any], patch: list[Any], field: Schema) -> tuple[list[Any], list[Any], list[Any]]:
        """The items in no order yet, and what to order them by: the patch's own, and the object's as far as they stay."""
        key = _merge_key(field)
        if not (old or patch):
            return [], [], []
        if all(not isinstance(item, (dict, list)) for item in (*old, *patch)):
            return list(dict.fromkeys([*old, *patch])), patch, old
        if not key or not all(isinstance(item, dict) for item in (*old, *patch)):
            raise PatchError("items of a list that is merged must all be objects, or all be plain values")
        if any(item.get(DIRECTIVE) == "replace" for item in patch):
            kept = [plain(item) for item in patch if DIRECTIVE not in item]
            return kept, [], kept
        deleted = _deleted(patch, key)
        old = [item for item in old if at(item, key) not in deleted]
        changed = [item for item in patch if DIRECTIVE not in item]
        return self._merged_items(old, changed, key, self._items_of(field)), changed, old

    def _merged_items(self, old: list[Document], changed: list[Document], key: str, schema: Schema) -> list[Any]:
        merged, places_of = list(old), places(old, key)
        for item in changed:
            place = places_of.setdefault(_key_value(item, key), len(merged))
            if place == len(merged):
                merged.append(plain(item))
            else:
                merged[place] = self.maps(merged[place], item, schema)
        return merged

    def _in_given_order(self, document: Document, patch: Document, name: str, schema: Schema) -> None:
        """The list `name` merged, with what is deleted from it, and put into the order that the patch gives."""
        order, field = patch[f"{SET_ORDER}/{name}"], self._schema_of(schema, name)
        old, items = document.get(name) or [], patch.get(name) or []
        if not (isinstance(order, list) and isinstance(old, list) and isinstance(items, list)):
            raise PatchError(f"{name} and its {SET_ORDER} must be lists")
        if not field:
            raise PatchError(f"{SET_ORDER} of an unknown field: {name}")
        key = _merge_key(field)
        check_against_order([item for item in items if not _is_directive(item)], order, key)
        merged = self._merged(old, items, field)[0] if "merge" in _strategies(field) else plain(items) if items else old
        if merged:
            document[name] = ordered_as(merged, order, old, key)
        elif old:
            document[name] = []
        if f"{DELETE_FROM}/{name}" in patch:
            _delete_from(document, name, patch[f"{DELETE_FROM}/{name}"])

    # --- schemas -----------------------------------------------------------------------------------------------------------------

    def _schema_of(self, schema: Schema, field: str) -> Schema:
        resolved = self._resolved(schema)
        found = resolved.get("properties", {}).get(field)
        more = resolved.get("additionalProperties")
        return found if found is not None else more if isinstance(more, dict) else {}

    def _items_of(self, schema: Schema) -> Schema:
        return self._resolved(self._resolved(schema).get("items", {}))

    def _resolved(self, schema: Schema) -> Schema:
        several = schema.get("allOf")
        reference = schema.get("$ref") or (several[0].get("$ref") if several else None)
        return self._components[reference.removeprefix(_REFERENCE)] if reference else schema


def _strategies(field: Schema) -> list[str]:
    return field.get("x-kubernetes-patch-strategy", "").split(",")


def _merge_key(field: Schema) -> str:
    return field.get("x-kubernetes-patch-merge-key", "")


def _directed(patch: Document) -> Document:
    if patch[DIRECTIVE] == "replace":
        return plain({key: value for key, value in patch.items() if key != DIRECTIVE})
    if patch[DIRECTIVE] == "delete":
        return {}
    raise PatchError(f"unknown patch type: {patch[DIRECTIVE]}")


def _retain(document: Document, patch: Document) -> None:
    """Only the listed fields stay: of a union, the member that was chosen before goes when another is chosen."""
    if RETAIN_KEYS not in patch:
        return
    kept = patch[RETAIN_KEYS]
    set_here = [key for key, value in patch.items() if value is not None and not key.startswith("$")]
    if not isinstance(kept, list) or any(key not in kept for key in set_here):
        raise PatchError("invalid patch format of retainKeys")
    for key in [key for key in document if key not in kept]:
        del document[key]


def _named_field(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        what = "setElementOrder" if prefix == SET_ORDER else "deleteFromPrimitiveList"
        raise PatchError(f"invalid patch format of {what} list")
    return name


def _delete_from(document: Document, name: str, values: Any) -> None:
    old = document.get(name)
    if isinstance(old, list) and isinstance(values, list):
        gone = places(values, "")
        document[name] = [item for item in old if isinstance(item, (dict, list)) or item not in gone]


def _deleted(patch: list[Document], key: str) -> set[Any]:
    """The keys of the items that are to go."""
    for item in patch:
        if DIRECTIVE in item and item[DIRECTIVE] != "delete":
            raise PatchError(f"unknown patch type in a list: {item[DIRECTIVE]}")
    return {_key_value(item, key) for item in patch if DIRECTIVE in item}


def _key_value(item: Document, key: str) -> Any:
    if key not in item:
        raise PatchError(f"an item of the patch does not contain the declared merge key: {key}")
    return at(item, key)


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and DIRECTIVE in item


def plain(value: Any) -> Any:
    """What is new to the object, without directives, and without the nulls that would remove what is not there."""
    if isinstance(value, dict):
        fields: Document = value
        return {
            key: plain(inner)
            for key, inner in fields.items()
            if inner is not None
            and not _is_directive(inner)
            and key != RETAIN_KEYS
            and not key.startswith((SET_ORDER, DELETE_FROM))
        }
    if isinstance(value, list):
        items: list[Any] = value
        return [plain(inner) for inner in items if not _is_directive(inner)]
    return value

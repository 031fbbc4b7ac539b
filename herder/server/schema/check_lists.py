"""`x-kubernetes-list-type`, `-list-map-keys` and `-map-type`: they must fit the type, and keys must always be there."""

from __future__ import annotations

from typing import Any

from herder.api import problems
from herder.api.problems import Problem

_LIST_TYPE, _MAP_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"


def check_list_keywords(schema: dict[str, Any], path: str, found: list[Problem]) -> None:
    _check_fits(schema, path, _MAP_TYPE, "object", ("atomic", "granular"), found)
    _check_fits(schema, path, _LIST_TYPE, "array", ("atomic", "set", "map"), found)
    list_type, items = schema.get(_LIST_TYPE), schema.get("items")
    if schema.get(_KEYS) and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        found.append(problems.invalid(where, list_type, detail) if list_type else problems.required(where, detail))
    if list_type == "map":
        _check_map(schema, path, found)
    if list_type == "set" and isinstance(items, dict):
        _check_set(items, path, found)
    if list_type in ("set", "map") and isinstance(items, dict) and items.get("nullable"):
        found.append(problems.forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"))


def _check_fits(schema: dict[str, Any], path: str, keyword: str, kind: str, allowed: tuple[str, ...], found: list[Problem]) -> None:
    value = schema.get(keyword)
    if value is None:
        return
    if schema.get("type") != kind:
        detail = f"must be {kind} if {keyword} is specified"
        where = f"{path}.type"
        found.append(problems.invalid(where, schema["type"], detail) if schema.get("type") else problems.required(where, detail))
    if value not in allowed:
        found.append(problems.not_supported(f"{path}.{keyword}", value, allowed))


def _check_set(items: dict[str, Any], path: str, found: list[Problem]) -> None:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
        found.append(problems.invalid(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], detail))
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        found.append(problems.invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), detail))


def _check_map(schema: dict[str, Any], path: str, found: list[Problem]) -> None:
    keys: list[str] = schema.get(_KEYS) or []
    items = schema.get("items")
    if not keys:
        found.append(problems.required(f"{path}.{_KEYS}", "must not be empty if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        found.append(problems.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        found.append(problems.invalid(f"{path}.items.type", items.get("type", ""), detail))
        return
    if len(set(keys)) < len(keys):
        found.append(problems.invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries"))
    for key in keys:
        _check_key(key, keys, items, path, found)


def _check_key(key: str, keys: list[str], items: dict[str, Any], path: str, found: list[Problem]) -> None:
    one = (items.get("properties") or {}).get(key)
    if one is None:
        found.append(problems.invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties"))
        return
    where = f"{path}.items.properties[{key}]"
    if one.get("type") in ("array", "object"):
        detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        found.append(problems.invalid(f"{where}.type", items["type"], detail))
    if key not in (items.get("required") or ()) and "default" not in one:
        detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        found.append(problems.required(f"{where}.default", detail))
    if one.get("nullable"):
        found.append(
            problems.forbidden(f"{where}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")
        )

"""The shapes of the built-in kinds, as the pinned kube-apiserver describes them (written by tools/kube/schemas.py)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
REFERENCE = "#/components/schemas/"


@cache
def components() -> dict[str, dict[str, Any]]:
    """Every component by its name. Decoded on first use and shared: read, do not change."""
    raw = files("herder.server").joinpath("builtin_schemas.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, Any]])


@cache
def _names() -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in components().items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            found[kind["group"], kind["version"], kind["kind"]] = name
    return found


def component_name(group: str, version: str, kind: str) -> str | None:
    """`io.k8s.api.core.v1.Pod` for ("", "v1", "Pod"); None where the kind is not one of ours."""
    return _names().get((group, version, kind))


def schema_for(group: str, version: str, kind: str) -> dict[str, Any]:
    """The schema of a built-in kind, with `$ref`s into `components()`. KeyError where there is none."""
    return components()[_names()[group, version, kind]]

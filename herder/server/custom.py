"""From a CustomResourceDefinition to what is served for it. Pure."""

from __future__ import annotations

from typing import Any

from herder.api import defaulting, validation
from herder.server.discovery import version_priority
from herder.server.resources import Column, Resource, Scale
from herder.server.schema import Schema, compile_schema
from herder.server.selectable import from_paths
from herder.server.served import Served
from herder.server.strategies import CustomStrategy

Document = dict[str, Any]


def served_versions(crd: Document) -> list[Served]:
    spec = crd["spec"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return [_served(crd, version, f"{spec['group']}/{storage}") for version in spec["versions"] if version.get("served")]


def _served(crd: Document, version: Document, storage_version: str) -> Served:
    resource = _resource(crd, version, storage_version)
    schema: Schema = compile_schema(resource.openapi or {})
    kind = (resource.group, resource.kind)
    strategy = CustomStrategy(resource, schema, validation.VALIDATORS.get(kind), defaulting.DEFAULTERS.get(kind))
    selectable = from_paths([field["jsonPath"] for field in version.get("selectableFields") or ()])
    metadata = crd["metadata"]
    return Served(
        *(resource, schema, strategy, selectable, storage_version),
        generation=metadata.get("generation", 0),
        since=int(metadata["resourceVersion"]),
        deprecation=_deprecation(crd, version),
    )


def _deprecation(crd: Document, version: Document) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return version["deprecationWarning"]
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    served = [one["name"] for one in crd["spec"]["versions"] if one.get("served") and not one.get("deprecated")]
    better = max(
        (name for name in served if version_priority(name) > version_priority(version["name"])), key=version_priority, default=""
    )
    hint = f"; use {group}/{better} {kind}" if better else ""
    return f"{group}/{version['name']} {kind} is deprecated{hint}"


def _resource(crd: Document, version: Document, storage_version: str) -> Resource:
    spec = crd["spec"]
    names = spec["names"]
    subresources = version.get("subresources") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status="status" in subresources,
        scale=_scale(subresources["scale"]) if subresources.get("scale") else None,
        storage_version=storage_version,
        openapi=(version.get("schema") or {}).get("openAPIV3Schema"),
        columns=tuple(_column(one) for one in version["additionalPrinterColumns"])
        if version.get("additionalPrinterColumns")
        else None,
        builtin=False,
    )


def _scale(scale: Document) -> Scale:
    selector = scale.get("labelSelectorPath")
    return Scale(
        spec_replicas=scale["specReplicasPath"].removeprefix("."),
        status_replicas=scale["statusReplicasPath"].removeprefix("."),
        label_selector=selector.removeprefix(".") if selector else None,
    )


def _column(column: Document) -> Column:
    return Column(
        name=column["name"],
        type=column["type"],
        description=column.get("description", ""),
        format=column.get("format", ""),
        priority=column.get("priority", 0),
        json_path=column["jsonPath"],
    )

"""Writes the CustomResourceDefinitions of our kinds, from the types: `python -m herder.api.crds [--check] [DIR]`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from herder.api.made_files import MadeFiles, as_yaml
from herder.api.registry import KINDS, Column, KindInfo
from herder.api.schemas import schema_of_kind

DEFAULT_DIRECTORY = Path("deploy/crds")
PART_OF = "app.kubernetes.io/part-of"
PRODUCT = "herder"  # by this an installer tells our CRDs from another product's of the same name
_HEADER = "# Made from the types in herder/api/kinds by `python -m herder.api.crds`: change those, not this.\n"


def crd_of(info: KindInfo) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    names: dict[str, Any] = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.singular,
        "shortNames": list(info.short_names),
        "categories": list(info.categories),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": info.crd_name, "labels": {PART_OF: PRODUCT}},
        "spec": {
            "group": info.group,
            "names": {key: value for key, value in names.items() if value},
            "scope": info.scope,
            "versions": [_version(info)],
        },
    }


def _version(info: KindInfo) -> dict[str, Any]:
    return {
        "name": info.version,
        "served": True,
        "storage": True,
        "subresources": _subresources(info),
        "additionalPrinterColumns": [_column(one) for one in info.columns],
        "schema": {"openAPIV3Schema": schema_of_kind(info.view)},
    }


def _subresources(info: KindInfo) -> dict[str, Any]:
    if info.scale is None:
        return {"status": {}}
    scale = {
        "specReplicasPath": info.scale.spec_replicas,
        "statusReplicasPath": info.scale.status_replicas,
        "labelSelectorPath": info.scale.label_selector,
    }
    return {"status": {}, "scale": scale}


def _column(column: Column) -> dict[str, Any]:
    priority = {"priority": column.priority} if column.priority else {}
    return {"name": column.name, "type": column.type, "description": column.description, "jsonPath": column.path, **priority}


@cache
def text_of(info: KindInfo) -> str:
    """The CRD as the text of its file; the same types give the same bytes."""
    return _HEADER + as_yaml(crd_of(info))


def files() -> dict[str, str]:
    """Name and text of every file."""
    return {f"{info.crd_name}.yaml": text_of(info) for info in KINDS}


MADE = MadeFiles("herder.api.crds", "the types say", DEFAULT_DIRECTORY, files)
stale, write, main = MADE.stale, MADE.write, MADE.main


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

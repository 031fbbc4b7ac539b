"""Writes the CustomResourceDefinitions of our kinds, from the types: `python -m herder.api.crds [--check] [DIR]`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

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


class _PlainDumper(yaml.SafeDumper):
    """No anchors: a schema that is used twice is written twice, as API servers want it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@cache
def text_of(info: KindInfo) -> str:
    """The CRD as the text of its file; the same types give the same bytes."""
    return _HEADER + yaml.dump(crd_of(info), Dumper=_PlainDumper, sort_keys=False, width=120, allow_unicode=True)


def files() -> dict[str, str]:
    """Name and text of every file."""
    return {f"{info.crd_name}.yaml": text_of(info) for info in KINDS}


def stale(directory: Path) -> list[str]:
    """Names of files that are missing, too many or not what the types say."""
    wanted = files()
    present = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.yaml")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def write(directory: Path) -> None:
    """Writes every file and removes those that are no longer made."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = files()
    for path in directory.glob("*.yaml"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    places = [one for one in arguments if not one.startswith("-")]
    unknown = [one for one in arguments if one.startswith("-") and one != "--check"]
    if unknown or len(places) > 1:
        print("usage: python -m herder.api.crds [--check] [DIR]", file=sys.stderr)
        return 2
    directory = Path(places[0]) if places else DEFAULT_DIRECTORY
    if "--check" not in arguments:
        write(directory)
        return 0
    names = stale(directory)
    for name in names:
        print(f"{directory / name} is not what the types say: run `python -m herder.api.crds`", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

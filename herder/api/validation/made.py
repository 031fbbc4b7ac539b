"""What objects are made from: metadata of templates, and definitions that a node is told in an annotation of a pod."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.builtin.objectmeta import check_annotations
from herder.api.inheritance import told_with
from herder.api.problems import Problem, invalid
from herder.api.reading import Json, part
from herder.api.selectors import validate_labels

# All annotations of an object together may have 256 KiB. The definition holds the spec, as JSON in a string; the rest is for what
# else stands there: names, what the guest was started as, orders of a migration.
LARGEST = 224 * 1024


def metadata_problems(metadata: Json, path: str) -> list[Problem]:
    """Labels and annotations that are given to what is made."""
    problems = validate_labels(part(metadata, "labels"), f"{path}.labels")
    check_annotations(part(metadata, "annotations"), f"{path}.annotations", problems)
    return problems


def definition_problems(spec: Json, metadata: Json, path: str) -> list[Problem]:
    """`metadata` is the instance's, of which its pod inherits most."""
    told, advice = told_with(metadata), "put user data, network data and files into Secrets or ConfigMaps"
    return size_problems([spec, *told], path, f"{advice}, and have fewer labels and annotations" if any(told) else advice)


def size_problems(told: Any, path: str, advice: str) -> list[Problem]:
    size = len(msgspec.json.encode(told))
    if size <= LARGEST:
        return []
    return [invalid(path, f"{size} bytes", f"must be at most {LARGEST} bytes as JSON, and is {size}: {advice}")]

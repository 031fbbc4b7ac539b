"""Admission of one object, as the embedded engine does it: defaults, the schema with its rules, then what no schema can say."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from herder.api import defaulting
from herder.api.crds import crd_of
from herder.api.problems import Problem
from herder.api.registry import KindInfo
from herder.api.validation import problems_of
from herder.server.schema import Schema, compile_schema

Json = dict[str, Any]


def openapi(info: KindInfo) -> Json:
    return crd_of(info)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@cache
def schema_of(info: KindInfo) -> Schema:
    return compile_schema(openapi(info))


def document(info: KindInfo, spec: Any, name: str = "a", **metadata: Any) -> Json:
    """Written once and read again, as what comes over the wire."""
    whole = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": name, "namespace": "shop", **metadata}}
    return msgspec.json.decode(msgspec.json.encode({**whole, "spec": spec}))


def completed(info: KindInfo, obj: Json) -> Json:
    schema = schema_of(info)
    schema.prune(obj)
    schema.apply_defaults(obj)
    defaulting.default(obj)
    return obj


def schema_problems(info: KindInfo, obj: Json, old: Json | None = None) -> list[Problem]:
    return schema_of(info).validate(obj, old)


def refused(info: KindInfo, spec: Any, **metadata: Any) -> list[str]:
    """The sentences by which an object of this spec is refused; none where it is admitted."""
    obj = completed(info, document(info, spec, **metadata))
    return [str(problem) for problem in schema_problems(info, obj) or problems_of(obj)]

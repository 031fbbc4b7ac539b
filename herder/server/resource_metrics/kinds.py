"""The two kinds of metrics.k8s.io. They are never stored: each answer is made of the last samples."""

from __future__ import annotations

from typing import Any

from herder.server.resources import Column, Resource
from herder.server.schema import compile_schema
from herder.server.selectable import NOTHING
from herder.server.served import Served
from herder.server.strategies import CustomStrategy

GROUP = "metrics.k8s.io"
VERSION = "v1beta1"
VERBS = ("get", "list")
Document = dict[str, Any]

_TEXT: Document = {"type": "string"}
_USAGE: Document = {
    "type": "object",
    "description": "How much of each resource: cpu in processors, memory in bytes.",
    "additionalProperties": {"x-kubernetes-int-or-string": True},
}
_SAMPLED: Document = {
    "timestamp": {"type": "string", "format": "date-time", "description": "When the last sample was taken."},
    "window": {"type": "string", "description": "Over how long the use of the processor was averaged."},
}
_CONTAINERS: Document = {
    "type": "array",
    "description": "What each container uses.",
    "items": {"type": "object", "required": ["name", "usage"], "properties": {"name": _TEXT, "usage": _USAGE}},
}


def _schema(words: str, **more: Document) -> Document:
    about = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
    return {"type": "object", "description": words, "properties": {**about, **_SAMPLED, **more}}


def _resource(plural: str, kind: str, schema: Document, *columns: Column, namespaced: bool) -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        plural=plural,
        singular="",
        kind=kind,
        list_kind=f"{kind}List",
        namespaced=namespaced,
        verbs=VERBS,
        measured=True,
        openapi=schema,
        columns=(
            *columns,
            Column("Window", description="Over how long the use of the processor was averaged.", json_path=".window"),
        ),
        builtin=False,
    )


MEASURED: tuple[Resource, ...] = (
    _resource(
        "nodes",
        "NodeMetrics",
        _schema("What a node uses.", usage=_USAGE),
        Column("CPU", description="Use of the processors.", json_path=".usage.cpu"),
        Column("Memory", description="Use of the memory.", json_path=".usage.memory"),
        namespaced=False,
    ),
    _resource(
        "pods",
        "PodMetrics",
        _schema("What the containers of a pod use.", containers=_CONTAINERS),
        Column("CPU", description="Use of the processors by the first container.", json_path=".containers[0].usage.cpu"),
        Column("Memory", description="Use of the memory by the first container.", json_path=".containers[0].usage.memory"),
        namespaced=True,
    ),
)


def measured_kind(resource: Resource) -> Served:
    schema = compile_schema(resource.openapi or {})
    return Served(resource, schema, CustomStrategy(resource, schema, None, None), NOTHING)

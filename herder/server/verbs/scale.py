"""The scale subresource: replicas of anything that has them, seen and set through one small object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.problems import invalid
from herder.api.selectors import selector_from_object
from herder.server import status
from herder.server.bodies import as_object, media_type, parse
from herder.server.engine import Engine
from herder.server.presenting import presented
from herder.server.request import Answer, Request, Target
from herder.server.resources import Resource, Scale
from herder.server.served import Served
from herder.server.store.records import key_of
from herder.server.tables import printer_for
from herder.server.verbs.apply import Config, applier_of, check_type, decide, decode_config
from herder.server.verbs.patch import APPLY_PATCH, check_patch_type, read_patch
from herder.server.writes import Intent

Document = dict[str, Any]

_SCALE = Resource(
    group="autoscaling", version="v1", plural="scales", singular="scale", kind="Scale", namespaced=True, list_kind="ScaleList"
)


async def get_scale(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    record = engine.store.get(served.table, key_of(target.namespace, target.name))
    if record is None:
        raise status.not_found(served.resource, target.name)
    return _shown(engine, request, scale_of(served, record.document()))


async def put_scale(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """PUT or PATCH: both say what the Scale should be; only its replicas and its resourceVersion are heard."""
    applied = request.method == "PATCH" and check_patch_type(request, served) == APPLY_PATCH
    intent = Intent(request.manager, request.dry_run, "scale", applied=applied, user=request.user)
    if applied:
        make = _applied(engine, served, target, request)
    else:
        make = _changed(served, target, read_patch(request, served, {}) if request.method == "PATCH" else _replace(request, target))
    outcome = await engine.writes.update(served, key_of(target.namespace, target.name), make, intent)
    return _shown(engine, request, scale_of(served, msgspec.json.decode(outcome.raw)))


def _shown(engine: Engine, request: Request, scale: Document) -> Answer:
    return presented(request, printer_for(_SCALE), msgspec.json.encode(scale), engine.world.now())


def _changed(served: Served, target: Target, change: Callable[[Document], Any]) -> Callable[[Document], Document]:
    def make(document: Document) -> Document:
        scale = as_object(change(scale_of(served, document)))
        replicas = _replicas(served, target.name, scale)
        version = _part(scale, "metadata").get("resourceVersion")
        if version and version != document["metadata"]["resourceVersion"]:
            raise status.conflict(served.resource, target.name, status.MODIFIED)
        _set(document, paths(served).spec_replicas, replicas)
        return document

    return make


def _applied(engine: Engine, served: Served, target: Target, request: Request) -> Callable[[Document], Document]:
    """To apply a Scale is to apply the one field of the object that it shows."""
    applier = applier_of(engine, served, target, request)
    scale = decode_config(request)[0]
    check_type(scale, _SCALE)
    if (named := _part(scale, "metadata").get("name")) and named != target.name:
        raise status.bad_request(f"the name of the object ({named}) does not match the name on the URL ({target.name})")
    config: Document = {"apiVersion": served.resource.group_version, "kind": served.resource.kind}
    if "replicas" in _part(scale, "spec"):
        _set(config, paths(served).spec_replicas, _replicas(served, target.name, scale))

    def make(live: Document) -> Document:
        applied = decide(served, Config(config, True, []), live, applier, force=request.flag("force"))
        applied.document["metadata"] = {**applied.document["metadata"], "managedFields": applied.entries}
        return applied.document

    return make


def _replace(request: Request, target: Target) -> Any:
    scale = as_object(parse(request.body, media_type(request), _SCALE).value)
    named = _part(scale, "metadata").get("name")
    if named and named != target.name:
        raise status.bad_request(f"the name of the object ({named}) does not match the name on the URL ({target.name})")
    return lambda _: scale


def _part(scale: Document, field: str) -> Document:
    found = scale.get(field) or {}
    if not isinstance(found, dict):
        raise status.bad_request(f"{field} of a Scale must be an object")
    return found


def _replicas(served: Served, name: str, scale: Document) -> int:
    replicas = _part(scale, "spec").get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise status.bad_request(f"spec.replicas: Invalid value: {replicas!r}: must be a whole number")
    if replicas < 0:
        problem = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise status.invalid(_SCALE, name, [problem])
    return replicas


def scale_of(served: Served, document: Document) -> Document:
    metadata = document["metadata"]
    shown = {
        field: metadata[field]
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if field in metadata
    }
    where = paths(served)
    scaled: Document = {"replicas": _get(document, where.status_replicas) or 0}
    selector = _selector(_get(document, where.label_selector) if where.label_selector else None)
    if selector:
        scaled["selector"] = selector
    wanted = _get(document, where.spec_replicas)
    if wanted is None and not served.resource.builtin:
        raise status.internal(f'the spec replicas field ".{where.spec_replicas}" does not exist')
    spec: Document = {"replicas": wanted} if wanted else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": scaled}


def _selector(value: Any) -> str:
    """Built-in kinds keep a label selector, CRDs its text."""
    if isinstance(value, dict):
        return str(selector_from_object(value))
    return value if isinstance(value, str) else ""


def paths(served: Served) -> Scale:
    assert served.resource.scale is not None
    return served.resource.scale


def _get(document: Document, path: str) -> Any:
    node: Any = document
    for part in path.split("."):
        if not isinstance(node, dict):
            return None
        node = node.get(part)
    return node


def _set(document: Document, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        document = document.setdefault(part, {})
    document[last] = value

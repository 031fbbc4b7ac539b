"""PATCH with `application/apply-patch+yaml`: server-side apply to an object, its status or its scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.problems import MOST_SHOWN, invalid, quoted, required
from herder.api.world import timestamp
from herder.server import status
from herder.server.admission import admit_create
from herder.server.apply import Applied, Applier, NotDivisible, apply_new, check_config, conflict_message
from herder.server.apply import apply as apply_config
from herder.server.bodies import IGNORE, STRICT, check_extent, check_fields, not_handled, parse_yaml, validation_mode, yaml_error
from herder.server.engine import Engine
from herder.server.presenting import one
from herder.server.request import Answer, Request, Target
from herder.server.resources import Resource
from herder.server.schema import duplicate_keys
from herder.server.served import Served
from herder.server.store.records import key_of
from herder.server.verbs.naming import check_name, check_namespace
from herder.server.writes import Intent

Document = dict[str, Any]


class Config(msgspec.Struct):
    """What somebody applies. `typed`: it certainly has no wrong types. `doubled`: a sentence for each key that it says twice."""

    document: Document
    typed: bool
    doubled: list[str]


async def apply(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    applier = applier_of(engine, served, target, request)
    config = read_config(request, served)
    key = key_of(target.namespace, target.name)
    intent = Intent(request.manager, request.dry_run, target.subresource, applied=True, user=request.user)
    if engine.store.latest(served.table, key) is None and not target.subresource:
        return await _create(engine, served, target, request, config, applier, intent)
    make = _changed(served, target, request, config, applier)
    outcome = await engine.writes.update(served, key, make, intent)
    request.warnings.extend(outcome.advice)
    return one(request, served, outcome.raw, engine.world.now())


def applier_of(engine: Engine, served: Served, target: Target, request: Request) -> Applier:
    if not request.query.get("fieldManager"):
        raise status.invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    now = timestamp(engine.world.now())
    return Applier(request.manager, served.resource.group_version, now, target.subresource, served.reset(target.subresource))


# --- reading ---------------------------------------------------------------------------------------------------------------------


def read_config(request: Request, served: Served) -> Config:
    document, raw, doubled = decode_config(request)
    check_type(document, served.resource)
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise status.bad_request("metadata.managedFields must be nil")
    typed = served.schema.accepts(raw)
    if not typed:
        _refuse_untyped(served, document)
    return Config(document, typed, doubled)


def decode_config(request: Request) -> tuple[Document, bytes, list[str]]:
    """What was sent, the same as JSON, and what it says twice."""
    if request.body.lstrip()[:1] == b"{":
        check_extent(request.body)
    value, raw, doubled = parse_yaml(request.body)
    if doubled is None:
        doubled = [f"duplicate field {quoted(path)}" for path in duplicate_keys(raw, value)]
    if value is None:
        return {}, b"{}", []
    if not isinstance(value, dict):
        raise status.bad_request("error decoding YAML: the configuration must be an object")
    return value, raw, doubled


def check_type(document: Document, resource: Resource) -> None:
    kind, version = document.get("kind") or "", document.get("apiVersion") or ""
    if (kind, version) != (resource.kind, resource.group_version):
        shown = str(version) if "/" in str(version) else f"/{version}"
        raise status.bad_request(f"invalid object type: {shown}, Kind={kind}")


def _refuse_untyped(served: Served, document: Document) -> None:
    try:
        reasons = check_config(served.schema.root, document)
    except RecursionError:
        reasons = ["the configuration is nested too deeply"]
    if reasons:
        raise _not_typed(served, document, reasons)


def _not_typed(served: Served, document: Document, reasons: list[str]) -> status.ApiError:
    resource = served.resource
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    subject = f"{named.get('namespace', '')}/{named.get('name', '')}; {resource.group}/{resource.version}, Kind={resource.kind}"
    more = [f"and {len(reasons) - MOST_SHOWN} more"] if len(reasons) > MOST_SHOWN else []
    listed = reasons[0] if len(reasons) == 1 else "\n  ".join(("errors:", *reasons[:MOST_SHOWN], *more))
    return status.bad_request(f"failed to create typed patch object ({subject}): {listed}")


# --- deciding --------------------------------------------------------------------------------------------------------------------


async def _create(
    engine: Engine, served: Served, target: Target, request: Request, config: Config, applier: Applier, intent: Intent
) -> Answer:
    engine.access.authorize(request, target, "create")
    applied = _divided(served, config, lambda: apply_new(config.document, served.fields, applier))
    document = applied.document
    check_name(document, target)
    check_namespace(document, target, served)
    if uid := document["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(served.resource, target.name, why)
    # Whoever names a version that nothing here has wants to make it, and to change nothing.
    document["metadata"].pop("resourceVersion", None)
    _bring_into_shape(request, served, document, config.typed)
    _report_doubled(request, config)
    given = admit_create(engine, served, target.namespace, document)
    outcome = await engine.writes.create(served, document, intent, given, applied.entries)
    request.warnings.extend(outcome.advice)
    return one(request, served, outcome.raw, engine.world.now(), 201)


def _changed(served: Served, target: Target, request: Request, config: Config, applier: Applier) -> Callable[[Document], Document]:
    def make(live: Document) -> Document:
        applied = decide(served, config, live, applier, force=request.flag("force"))
        document = applied.document
        check_name(document, target)
        check_namespace(document, target, served)
        if (uid := document["metadata"].get("uid")) and uid != live["metadata"]["uid"]:
            raise status.invalid(served.resource, target.name, [invalid("metadata.uid", uid, "field is immutable")])
        _bring_into_shape(request, served, document, config.typed and not applied.pruned, live)
        _report_doubled(request, config)
        document["metadata"] = {**document["metadata"], "managedFields": applied.entries}
        return document

    return make


def decide(served: Served, config: Config, live: Document, applier: Applier, *, force: bool) -> Applied:
    applied = _divided(served, config, lambda: apply_config(live, config.document, served.fields, applier, force=force))
    if applied.conflicts:
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {one.manager}", "field": one.field}
            for one in applied.conflicts[:MOST_SHOWN]
        ]
        raise status.ApiError(409, "Conflict", conflict_message(applied.conflicts), {"causes": causes})
    return applied


def _divided(served: Served, config: Config, decide: Callable[[], Applied]) -> Applied:
    try:
        return decide()
    except NotDivisible:
        reasons = check_config(served.schema.root, config.document)
        raise _not_typed(served, config.document, reasons or ["items of a list cannot be told apart"]) from None
    except RecursionError:
        raise _not_typed(served, config.document, ["the configuration is nested too deeply"]) from None


def _bring_into_shape(request: Request, served: Served, document: Document, typed: bool, live: Document | None = None) -> None:
    """What was applied is known to be right, and what is stored was; where either is in doubt, all of it is looked at."""
    if not typed:
        check_fields(request, served, document, msgspec.json.encode(document))
        return
    new = {field: document.pop(field) for field in list(document) if live is None or document[field] is not live.get(field)}
    if sentence := served.strategy.conform(new):
        raise not_handled(served, sentence)
    document.update(new)


def _report_doubled(request: Request, config: Config) -> None:
    mode = validation_mode(request)
    if config.doubled and mode == STRICT:
        raise status.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {yaml_error(config.doubled)}")
    if mode != IGNORE:
        request.warnings.extend(config.doubled)

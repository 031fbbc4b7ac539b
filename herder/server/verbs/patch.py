"""PATCH of an object or of its status, by JSON patch, merge patch or strategic merge patch. (Apply has its own module.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.nesting import too_deep
from herder.api.problems import forbidden, invalid, quoted
from herder.api.world import timestamp
from herder.server import builtin_schemas, status
from herder.server.bodies import IGNORE, STRICT, as_object, check_extent, check_fields, media_type, readable, validation_mode
from herder.server.engine import Engine
from herder.server.partial import is_of_status, only_read
from herder.server.patching import PatchDoesNotFit, PatchError, apply_json_patch, apply_merge_patch, apply_strategic_patch
from herder.server.patching.json_patch import MAX_OPERATIONS
from herder.server.presenting import one
from herder.server.request import BODY_LIMIT, Answer, Request, Target
from herder.server.schema import duplicate_keys
from herder.server.served import Served
from herder.server.store.records import key_of
from herder.server.verbs.apply import apply
from herder.server.writes import Intent

Document = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def patch_types(served: Served) -> tuple[str, ...]:
    """Strategies are written into Go's structs: kinds of a CRD have none."""
    strategic = (STRATEGIC_PATCH,) if served.resource.builtin else ()
    return (JSON_PATCH, MERGE_PATCH, *strategic, APPLY_PATCH)


def check_patch_type(request: Request, served: Served) -> str:
    kind, known = media_type(request), patch_types(served)
    if kind not in known:
        raise status.unsupported_media_type(known)
    if len(request.body) > BODY_LIMIT:
        raise status.too_large(BODY_LIMIT)
    if kind != APPLY_PATCH and "force" in request.query:
        raise status.invalid_options("PatchOptions", [forbidden("force", "may not be specified for non-apply patch")])
    request.check_write_options()
    return kind


def read_patch(request: Request, served: Served, schema: Document) -> Callable[[Document], Any]:
    """What the patch does to a document, which it may change. `schema` is that of the document. It is read when there is something
    to patch: that it is missing is told first."""
    kind = check_patch_type(request, served)
    if kind == MERGE_PATCH:
        return lambda document: apply_merge_patch(document, _read(request, dict, "an object"))
    if kind == STRATEGIC_PATCH:
        return lambda document: _apply_strategic(document, as_object(_read(request, dict, "an object")), schema)
    return lambda document: _apply_json(document, _operations(request))


def _read(request: Request, wanted: type, shape: str) -> Any:
    raw = readable(request.body)
    patch = _decode(raw)
    note_duplicates(request, raw, patch)
    if not isinstance(patch, wanted):
        raise status.bad_request(f"error decoding patch: it must be {shape}")
    return patch


def _operations(request: Request) -> list[Any]:
    patch = _read(request, list, "a list of operations")
    if len(patch) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        raise status.ApiError(413, "RequestEntityTooLarge", message)
    return patch


def note_duplicates(request: Request, raw: bytes, patch: Any) -> None:
    """A key that is said twice in the patch itself."""
    mode = validation_mode(request)
    twice = duplicate_keys(raw, patch) if mode != IGNORE else []
    findings = [f"duplicate field {quoted(path)}" for path in twice]
    if findings and mode == STRICT:
        raise status.invalid_patch("strict decoding error: " + ", ".join(findings))
    request.warnings.extend(findings)


def _decode(raw: bytes) -> Any:
    check_extent(raw)
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise status.bad_request(f"error decoding patch: {error}") from None


def _apply_json(document: Document, patch: Any) -> Any:
    try:
        return apply_json_patch(document, patch)
    except PatchError as error:
        raise status.bad_request(str(error)) from None
    except PatchDoesNotFit as error:
        raise status.patch_does_not_fit(f"the patch does not fit the object: {error}") from None
    except RecursionError:
        raise status.patch_does_not_fit(f"the patch does not fit the object: {too_deep()}") from None


def _apply_strategic(document: Document, patch: Document, schema: Document) -> Document:
    kind = {field: document[field] for field in ("kind", "apiVersion")}
    try:
        return {**apply_strategic_patch(document, patch, schema, builtin_schemas.components()), **kind}
    except (PatchError, RecursionError) as error:
        raise status.bad_request(str(error)) from None


def patched(
    request: Request, served: Served, target: Target, change: Callable[[Document], Any], *, partial: bool = False
) -> Callable[[Document], Document]:
    """`partial`: the document comes without what the patch does not reach."""

    def make(document: Document) -> Document:
        stored_uid = document["metadata"]["uid"]
        new = change(document)
        if not isinstance(new, dict) or not isinstance(metadata := new.get("metadata") or {}, dict):
            raise status.invalid_patch("the object and its metadata must stay objects")
        _check_address(metadata, target)
        if (uid := metadata.get("uid")) and uid != stored_uid:
            raise status.invalid(served.resource, target.name, [invalid("metadata.uid", uid, "field is immutable")])
        resource = served.resource
        if (new.get("kind"), new.get("apiVersion")) != (resource.kind, resource.group_version):
            raise status.invalid_patch(f"kind and apiVersion must stay {resource.kind} and {resource.group_version}")
        _check_fields(request, served, new, partial)
        return new

    return make


def _check_address(metadata: Document, target: Target) -> None:
    """The address says which namespace it is, but a name is something that an object has."""
    if not metadata.get("name"):
        raise status.bad_request(f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided")
    if target.namespace and not metadata.get("namespace"):
        metadata["namespace"] = target.namespace
    if metadata["name"] != target.name or metadata.get("namespace", "") != target.namespace:
        raise status.bad_request("a patch cannot change metadata.name or metadata.namespace")


def _check_fields(request: Request, served: Served, new: Document, partial: bool) -> None:
    looked_at = only_read(new) if partial else new
    try:
        check_fields(request, served, looked_at, msgspec.json.encode(looked_at), doubled=())
    except RecursionError:
        raise status.invalid_patch(too_deep()) from None
    except status.ApiError as error:
        if error.code != 400:
            raise
        raise status.invalid_patch(error.message) from None


async def patch(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    kind = media_type(request)
    if kind == APPLY_PATCH:
        check_patch_type(request, served)
        return await apply(engine, served, target, request)
    if served.strategy.renewed and kind == MERGE_PATCH and not target.subresource:
        return await _patch_lease(engine, served, target, request)
    return await _patch(engine, served, target, request)


async def _patch_lease(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """Most likely the same as the last one, but for its time."""
    key = key_of(target.namespace, target.name)
    known = engine.renewals.find(request, engine.store.latest(served.table, key), timestamp(engine.world.now()))
    if known is None:
        answer = await _patch(engine, served, target, request)
        engine.renewals.learn(request, engine.store.latest(served.table, key))
        return answer
    outcome = await engine.writes.renew(*known)
    return one(request, served, outcome.raw, engine.world.now())


async def _patch(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    partial = _is_partial(request, served, target)
    make = patched(request, served, target, read_patch(request, served, served.schema.root.raw), partial=partial)
    intent = Intent(request.manager, request.dry_run, target.subresource, partial=partial, user=request.user)
    outcome = await engine.writes.update(served, key_of(target.namespace, target.name), make, intent)
    request.warnings.extend(outcome.advice)
    return one(request, served, outcome.raw, engine.world.now())


def _is_partial(request: Request, served: Served, target: Target) -> bool:
    """Is it what the agents of nodes send all the time, which needs little of the object?"""
    return (
        target.subresource == "status"
        and served.strategy.status_alone
        and media_type(request) in (MERGE_PATCH, STRATEGIC_PATCH)
        and is_of_status(request.body)
    )

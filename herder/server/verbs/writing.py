"""POST, PUT and DELETE of one object, and DELETE of many."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.problems import Problem, invalid, not_supported, shown
from herder.server import status
from herder.server.admission import admit_create, patience_with_nodes
from herder.server.bodies import as_object, media_type, parse, read_document
from herder.server.engine import Engine
from herder.server.metadata import FOREGROUND, ORPHAN, finalizers_of, metadata_of
from herder.server.presenting import accepted, body, many, one
from herder.server.request import ENGINE, Answer, Request, Target, User
from herder.server.served import Served
from herder.server.store import Record
from herder.server.store.records import key_of
from herder.server.templates import Template
from herder.server.verbs.listing import read_page
from herder.server.verbs.naming import check_namespace
from herder.server.writes import Intent, Outcome

Document = dict[str, Any]
# Kinds whose PUT makes the object where there is none, as in Kubernetes.
CREATE_ON_UPDATE = frozenset(
    {
        *("leases.coordination.k8s.io", "events"),
        *(f"{plural}.rbac.authorization.k8s.io" for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")),
    }
)


def intent_of(request: Request, target: Target, typed: bool) -> Intent:
    return Intent(request.manager, request.dry_run, target.subresource, typed, user=request.user)


async def create(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    known = engine.templates.read(request, served)
    if known is not None:
        return await _create_alike(engine, served, target, request, *known)
    document, typed = read_document(request, served)
    check_namespace(document, target, served)
    given = admit_create(engine, served, target.namespace, document)
    outcome = await engine.writes.create(served, document, intent_of(request, target, typed), given)
    if typed and served.strategy.status_alone and not request.warnings:
        engine.templates.learn(request, outcome.raw, outcome.advice)
    return _answer(engine, served, request, outcome, 201)


async def _create_alike(
    engine: Engine, served: Served, target: Target, request: Request, document: Document, template: Template
) -> Answer:
    """One whose spec is known already."""
    check_namespace(document, target, served)
    given = admit_create(engine, served, target.namespace, {**document, "spec": {}})
    outcome = await engine.writes.create(served, document, intent_of(request, target, True), given, template=template)
    return _answer(engine, served, request, outcome, 201)


async def update(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    document, typed = read_document(request, served)
    check_namespace(document, target, served)
    name = metadata_of(document).get("name")
    if name != target.name:
        if not name:
            raise status.bad_request("the name of the object (metadata.name) is missing in the body; it must be the one in the URL")
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    key = key_of(target.namespace, target.name)
    if engine.store.latest(served.table, key) is None and served.table in CREATE_ON_UPDATE and not target.subresource:
        engine.access.authorize(request, target, "create")
        return await create(engine, served, target, request)
    if served.table == "pods" and not target.subresource and (given := patience_with_nodes(document)):
        # Who sends the manifest again that the pod was made from does not mean to take away what it was given.
        document["spec"].update(given)
    outcome = await engine.writes.update(served, key, lambda _: document, intent_of(request, target, typed))
    return _answer(engine, served, request, outcome)


def _answer(engine: Engine, served: Served, request: Request, outcome: Outcome, code: int = 200) -> Answer:
    request.warnings.extend(outcome.advice)
    return one(request, served, outcome.raw, engine.world.now(), code)


# --- delete ----------------------------------------------------------------------------------------------------------------------


class Preconditions(msgspec.Struct):
    uid: str | None = None
    resourceVersion: str | None = None


class DeleteOptions(msgspec.Struct):
    gracePeriodSeconds: int | None = None
    propagationPolicy: str | None = None
    orphanDependents: bool | None = None
    dryRun: list[str] | None = None
    preconditions: Preconditions | None = None


POLICIES = ("Orphan", "Background", "Foreground")


def delete_options(request: Request) -> DeleteOptions:
    """From the body, or where there is none from the query."""
    if request.body.strip():
        sent = as_object(parse(request.body, media_type(request)).value)
        if (kind := sent.get("kind")) and kind != "DeleteOptions":
            raise status.bad_request(f"the body of a DELETE must be DeleteOptions, and it is of the kind {shown(kind)}")
        try:
            options = msgspec.convert(sent, DeleteOptions)
        except msgspec.ValidationError as error:
            raise status.bad_request(f"DeleteOptions: {error}") from None
    else:
        options = DeleteOptions(
            gracePeriodSeconds=request.number("gracePeriodSeconds"),
            propagationPolicy=request.query.get("propagationPolicy"),
            orphanDependents=request.flag("orphanDependents") if "orphanDependents" in request.query else None,
        )
    check_options(options)
    if request.dry_run:
        options.dryRun = ["All"]
    return options


def check_options(options: DeleteOptions) -> None:
    problems: list[Problem] = []
    policy = options.propagationPolicy
    if policy is not None and options.orphanDependents is not None:
        problems = [invalid("propagationPolicy", policy, "orphanDependents and propagationPolicy cannot be both set")]
    elif policy not in (None, *POLICIES):
        problems = [not_supported("propagationPolicy", policy, POLICIES)]
    elif options.dryRun not in (None, [], ["All"]):
        problems = [not_supported("dryRun", options.dryRun, ("All",))]
    elif (options.gracePeriodSeconds or 0) < 0:
        # What Kubernetes makes of it, too.
        options.gracePeriodSeconds = 1
    if problems:
        raise status.invalid_options("DeleteOptions", problems)


async def delete(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    options = delete_options(request)
    key = key_of(target.namespace, target.name)
    record, outcome = await delete_one(engine, served, key, options, request.user)
    if outcome.removed and not served.strategy.returns_deleted:
        return _deleted(request, served, record)
    return _answer(engine, served, request, outcome)


def _deleted(request: Request, served: Served, record: Record) -> Answer:
    return body(accepted(request), msgspec.json.encode(status.success(served.resource, record.name, record.uid)) + b"\n")


async def delete_one(
    engine: Engine, served: Served, key: str, options: DeleteOptions, user: User = ENGINE
) -> tuple[Record, Outcome]:
    current = engine.store.latest(served.table, key)
    try:
        if current is None:
            raise status.not_found(served.resource, key.rsplit("/", 1)[-1])
        _check_preconditions(served, current, options.preconditions)
    except status.ApiError:
        await engine.writes.settled(served, key)
        raise
    old = current.document()
    engine.admit_delete(served, old)
    engine.access.restriction.check_delete(served, old, user)
    grace = served.strategy.grace_seconds(old, options.gracePeriodSeconds)
    finalizers = _finalizers(finalizers_of(old), options)
    intent = Intent(dry_run=bool(options.dryRun))
    return current, await engine.writes.mark_deleted(served, key, old, current, grace, finalizers, intent)


def _check_preconditions(served: Served, record: Record, wanted: Preconditions | None) -> None:
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != record.uid:
        why = f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({record.uid})"
        again = ". The object might have been deleted and then recreated"
        raise status.conflict(served.resource, record.name, why + again)
    if wanted.resourceVersion is not None and wanted.resourceVersion != str(record.revision):
        why = (
            f"the ResourceVersion in the precondition ({wanted.resourceVersion}) does not match "
            f"the ResourceVersion in record ({record.revision}). The object might have been modified"
        )
        raise status.conflict(served.resource, record.name, why)


def _finalizers(present: list[str], options: DeleteOptions) -> list[str]:
    """The two finalizers that the garbage collector takes away again, by how dependents are to be treated."""
    policy = options.propagationPolicy
    if options.orphanDependents is not None:
        policy = "Orphan" if options.orphanDependents else "Background"
    if policy is None:
        return present
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(policy)
    kept = [one for one in present if one not in (ORPHAN, FOREGROUND)]
    return [*kept, wanted] if wanted else kept


async def delete_collection(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """The page that a list would show, and nothing behind it."""
    options = delete_options(request)
    found, metadata = await read_page(engine, served, target, request)
    for record in found:
        current = engine.store.latest(served.table, record.key)
        if current is not None and current.uid != record.uid:
            # It has gone while others were deleted, and another one has come, which nobody has selected.
            continue
        try:
            await delete_one(engine, served, record.key, options, request.user)
        except status.ApiError as error:
            if error.code != 404:
                raise
    return await many(request, served, found, metadata, engine.world.now())

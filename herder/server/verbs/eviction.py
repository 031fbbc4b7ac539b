"""POST of an eviction: a pod is deleted, unless a disruption budget says that too many would be away.

From looking at the budget to writing what is left of it nothing is awaited: however many ask at once, it is never overspent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import PodDisruptionBudget
from herder.api.problems import invalid
from herder.api.world import timestamp
from herder.rules.jobs.budgets import SEVERAL_BUDGETS, Budget, Refusal, judge, needs_no_budget, read_disruption_budget
from herder.server import status
from herder.server.admission import check_namespace_open
from herder.server.budgets import BUDGETS
from herder.server.conditions import is_ready, set_disruption_allowed
from herder.server.engine import Engine
from herder.server.metadata import is_terminating
from herder.server.orders import carried_out, check_name, read_order, served_order, set_condition
from herder.server.request import Answer, Request, Target
from herder.server.served import Served
from herder.server.store import Record
from herder.server.store.records import key_of
from herder.server.verbs.machine_eviction import check_machine
from herder.server.verbs.writing import DeleteOptions, Preconditions, check_options, delete_one
from herder.server.writes import Intent

Document = dict[str, Any]
OLDER = ("policy/v1beta1",)
RETRY_SECONDS = 10
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
DANGEROUS = "ignoreStoreReadErrorWithClusterBreakingPotential"
BUDGET = Intent("herder", False, "status")


async def evict(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    order = served_order("policy", "Eviction")
    document = read_order(request, target, order, OLDER)
    check_namespace_open(engine, order, target.namespace, target.name)
    check_name(document, target, "Eviction")
    options = _options(document, request, order)
    key = key_of(target.namespace, target.name)
    record = engine.store.latest(served.table, key)
    if record is None:
        raise status.not_found(served.resource, target.name)
    pod = record.document()
    engine.access.restriction.check_eviction(served, pod, request.user)
    _check_preconditions(record, options.preconditions)
    if record.labels.get(labels.APP) == labels.LAUNCHER:
        await check_machine(engine, pod, bool(options.dryRun))
    if not _needs_no_budget(pod):
        await _spend_budget(engine, record, pod, bool(options.dryRun))
    await _delete(engine, served, record, options)
    return carried_out(request)


def _options(document: Document, request: Request, order: Served) -> DeleteOptions:
    given = document.get("deleteOptions") or {}
    if given.get(DANGEROUS):
        why = "can not be set for pod eviction, try after removing the option"
        problem = invalid(f"deleteOptions.{DANGEROUS}", True, why)
        raise status.invalid(order.resource, document["metadata"]["name"], [problem])
    try:
        options = msgspec.convert(given, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status.bad_request(f"DeleteOptions: {error}") from None
    check_options(options)
    if request.dry_run:
        options.dryRun = ["All"]
    return options


def _check_preconditions(record: Record, wanted: Preconditions | None) -> None:
    for name, asked, found, happened in (
        ("UID", wanted and wanted.uid, record.uid, "deleted and then recreated"),
        ("ResourceVersion", wanted and wanted.resourceVersion, str(record.revision), "modified"),
    ):
        if asked and asked != found:
            why = f"the {name} in the precondition ({asked}) does not match the {name} in record ({found})"
            message = f'Operation cannot be fulfilled on Pod "{record.name}": {why}. The object might have been {happened}'
            raise status.ApiError(409, "Conflict", message, {"name": record.name, "kind": "Pod"})


def _needs_no_budget(pod: Document) -> bool:
    return needs_no_budget((pod.get("status") or {}).get("phase", ""), is_terminating(pod))


async def _delete(engine: Engine, served: Served, record: Record, options: DeleteOptions) -> None:
    """The pod is first told why. Only the one that was judged: another one may have come under its name since then."""
    if not options.dryRun:
        why = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}

        def told(pod: Document) -> Document:
            if pod["metadata"]["uid"] != record.uid:
                raise status.not_found(served.resource, record.name)
            set_condition(pod, "DisruptionTarget", engine.world.now(), **why)
            return pod

        await engine.writes.amend(served, record.key, told, False)
    options.preconditions = Preconditions(record.uid)
    await delete_one(engine, served, record.key, options)


# --- the budget ------------------------------------------------------------------------------------------------------------------


async def _spend_budget(engine: Engine, record: Record, pod: Document, dry_run: bool) -> None:
    keys = [key for key in engine.budgets.of_pod(record) if engine.store.latest(BUDGETS, key) is not None]
    if len(keys) > 1:
        raise status.ApiError(500, "", SEVERAL_BUDGETS)
    if not keys:
        return
    found = engine.store.latest(BUDGETS, keys[0])
    assert found is not None
    budget = _read(found)
    ready = is_ready(pod)
    refusal = judge([budget], record.name, ready=ready)
    if refusal is not None:
        raise _refused(refusal)
    if not ready and budget.lets_unready_go:
        return
    if dry_run:
        return

    def spent(current: Document) -> Document:
        state = current["status"]
        state["disruptionsAllowed"] -= 1
        if not state["disruptionsAllowed"]:
            set_disruption_allowed(current, engine.world.now())
        state.setdefault("disruptedPods", {})[record.name] = timestamp(engine.world.now())
        return current

    await engine.writes.update(engine.served("policy", "v1", "poddisruptionbudgets"), keys[0], spent, BUDGET)


def _read(record: Record) -> Budget:
    try:
        return read_disruption_budget(msgspec.json.decode(record.raw, type=PodDisruptionBudget))
    except msgspec.MsgspecError as error:
        # Better to allow nothing than too much.
        raise _refused(Refusal("Unclear", f"the budget cannot be read: {error}", record.name)) from None


def _refused(refusal: Refusal) -> status.ApiError:
    if refusal.why == "Unclear":
        details = {"name": refusal.budget, "group": "policy", "kind": "poddisruptionbudget"}
        message = f'poddisruptionbudget.policy "{refusal.budget}" is forbidden: {refusal.message}'
        return status.ApiError(403, "Forbidden", message, details)
    details: Document = {"causes": [{"reason": "DisruptionBudget", "message": refusal.message}]}
    headers: dict[str, str] = {}
    if refusal.why == "Stale":
        details["retryAfterSeconds"] = RETRY_SECONDS
        headers["Retry-After"] = str(RETRY_SECONDS)
    return status.ApiError(429, "TooManyRequests", REFUSED, details, headers)

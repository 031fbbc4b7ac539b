"""POST of an eviction: a pod is deleted, unless a disruption budget says that too many would be away.

From looking at the budget to writing what is left of it nothing is awaited: however many ask at once, it is never overspent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.problems import invalid
from herder.api.world import timestamp
from herder.server import status
from herder.server.admission import check_namespace_open
from herder.server.budgets import BUDGETS
from herder.server.conditions import DISRUPTION_ALLOWED, SYNC_FAILED, condition_of, is_ready, set_disruption_allowed
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
# More than these wait to be noticed: whoever keeps the budget's status seems not to be there.
MOST_DISRUPTED = 2000
RETRY_SECONDS = 10
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
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
    """One that has ended, has not begun or goes already: nobody is disturbed by its end."""
    return is_terminating(pod) or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")


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
        raise status.ApiError(500, "", SEVERAL)
    if not keys:
        return
    found = engine.store.latest(BUDGETS, keys[0])
    assert found is not None
    budget = found.document()
    if not is_ready(pod) and _lets_unready_go(budget):
        return
    _check(budget)
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


def _lets_unready_go(budget: Document) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = budget.get("status") or {}
    return state.get("currentHealthy", 0) >= state.get("desiredHealthy", 0) > 0


def _check(budget: Document) -> None:
    name, state = budget["metadata"]["name"], budget.get("status") or {}
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", RETRY_SECONDS)
    allowed = state.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(state.get("disruptedPods") or ()) > MOST_DISRUPTED:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _refused(_why(name, state), 0)


def _why(name: str, state: Document) -> str:
    told = condition_of(state, DISRUPTION_ALLOWED) or {}
    reason, message = told.get("reason", ""), told.get("message", "")
    told_no = told.get("status") == "False" and message
    if told_no and reason == SYNC_FAILED:
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    desired, healthy = state.get("desiredHealthy", 0), state.get("currentHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if told_no:
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refused(why: str, seconds: int) -> status.ApiError:
    details: Document = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    headers: dict[str, str] = {}
    if seconds:
        details["retryAfterSeconds"] = seconds
        headers["Retry-After"] = str(seconds)
    return status.ApiError(429, "TooManyRequests", REFUSED, details, headers)


def _forbidden(name: str, why: str) -> status.ApiError:
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    return status.ApiError(403, "Forbidden", f'poddisruptionbudget.policy "{name}" is forbidden: {why}', details)

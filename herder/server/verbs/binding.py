"""POST of a binding: a scheduler says on which node a pod is to run."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.problems import Problem, not_supported, required
from herder.server import status
from herder.server.admission import check_namespace_open
from herder.server.engine import Engine
from herder.server.metadata import is_terminating, metadata_of
from herder.server.orders import carried_out, check_name, read_order, served_order, set_condition
from herder.server.request import Answer, Request, Target
from herder.server.served import Served
from herder.server.store.records import key_of

Document = dict[str, Any]


async def bind(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    order = served_order("", "Binding")
    document = read_order(request, target, order)
    check_namespace_open(engine, order, target.namespace, target.name)
    check_name(document, target, "Binding")
    _check_target(document.get("target") or {})
    # What it says of annotations becomes the pod's.
    engine.access.reserved.check_write(served, {"metadata": document["metadata"]}, None, request.user)
    key = key_of(target.namespace, target.name)
    await engine.writes.amend(served, key, lambda pod: _placed(served, pod, document, engine.world.now()), request.dry_run)
    return carried_out(request)


async def bind_named_in_body(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    """The older address, where the body alone says which pod is meant."""
    name = metadata_of(read_order(request, target, served)).get("name")
    if not name:
        raise status.bad_request("Name parameter required.")
    request.warnings.clear()
    pods = engine.served("", "v1", "pods")
    return await bind(engine, pods, msgspec.structs.replace(target, plural="pods", name=name), request)


def _check_target(target: Document) -> None:
    problems: list[Problem] = []
    if target.get("kind") not in (None, "", "Node"):
        problems.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        problems.append(required("target.name"))
    if problems:
        texts = [str(problem) for problem in problems]
        raise status.ApiError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _placed(served: Served, pod: Document, binding: Document, now: float) -> Document:
    _check_preconditions(served, pod, binding)
    _check_may_be_placed(pod)
    pod["spec"]["nodeName"] = binding["target"]["name"]
    for field in ("annotations", "labels"):
        given = binding["metadata"].get(field)
        if given:
            pod["metadata"][field] = {**pod["metadata"].get(field, {}), **given}
    set_condition(pod, "PodScheduled", now)
    pod["status"].pop("nominatedNodeName", None)
    return pod


def _check_preconditions(served: Served, pod: Document, binding: Document) -> None:
    for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, stored = binding["metadata"].get(field), pod["metadata"][field]
        if wanted and wanted != stored:
            why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {stored}"
            raise status.conflict(served.resource, pod["metadata"]["name"], why)


def _check_may_be_placed(pod: Document) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if is_terminating(pod):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> status.ApiError:
    details = {"name": name, "kind": "pods/binding"}
    return status.ApiError(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{name}": {why}', details)

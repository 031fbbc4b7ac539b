"""The tables of what runs pods: deployments, replica sets, stateful sets, and their budgets."""

from __future__ import annotations

from typing import Any

from herder.server.tables.ages import age
from herder.server.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    Printer,
    created,
    integer,
    name_of,
    part,
    text,
)
from herder.server.tables.selectors import NONE, selector_text


def print_deployment(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(created(obj), now),
        *containers_of(spec),
        selector_text(spec.get("selector")),
    ]


def print_replica_set(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(created(obj), now),
        *containers_of(spec),
        selector_text(spec.get("selector")) or NONE,
    ]


def print_stateful_set(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age(created(obj), now), *containers_of(spec)]


def print_controller_revision(obj: dict[str, Any], now: float) -> list[Any]:
    owners = obj["metadata"].get("ownerReferences") or ()
    controller = next((owner for owner in owners if owner.get("controller")), None)
    return [name_of(obj), _qualified(controller) if controller else NONE, obj.get("revision", 0), age(created(obj), now)]


def print_budget(obj: dict[str, Any], now: float) -> list[Any]:
    spec = part(obj, "spec")
    limits = [str(spec[name]) if spec.get(name) is not None else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *limits, part(obj, "status").get("disruptionsAllowed", 0), age(created(obj), now)]


def containers_of(spec: dict[str, Any]) -> tuple[str, str]:
    containers = part(spec, "template", "spec").get("containers") or ()
    names = ",".join(one.get("name", "") for one in containers)
    return names, ",".join(one.get("image", "") for one in containers)


def _qualified(owner: dict[str, Any]) -> str:
    group, slash, _ = owner.get("apiVersion", "").partition("/")
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group.lower()}/{owner.get('name')}" if slash else f"{kind}/{owner.get('name')}"


_READY = text("Ready", "Pods that are ready, of those wanted.")
_TEMPLATE = (CONTAINERS, IMAGES, SELECTOR)

DEPLOYMENTS = Printer(
    (
        NAME,
        _READY,
        text("Up-to-date", "Pods that run the current template."),
        text("Available", "Pods that have been ready for long enough."),
        AGE,
        *_TEMPLATE,
    ),
    print_deployment,
)
REPLICA_SETS = Printer(
    (
        NAME,
        integer("Desired", "Pods that are wanted."),
        integer("Current", "Pods that exist."),
        integer("Ready", "Pods that are ready."),
        AGE,
        *_TEMPLATE,
    ),
    print_replica_set,
)
STATEFUL_SETS = Printer((NAME, _READY, AGE, CONTAINERS, IMAGES), print_stateful_set)
CONTROLLER_REVISIONS = Printer(
    (NAME, text("Controller", "Whose history this is."), text("Revision", "Number of the revision."), AGE),
    print_controller_revision,
)
SCALES = Printer(
    (NAME, integer("Desired", "Replicas that are wanted."), integer("Available", "Replicas that there are."), AGE),
    lambda obj, now: [name_of(obj), *(part(obj, field).get("replicas", 0) for field in ("spec", "status")), age(created(obj), now)],
)
BUDGETS = Printer(
    (
        NAME,
        text("Min Available", "Pods that must stay, as a number or a share."),
        text("Max Unavailable", "Pods that may be away, as a number or a share."),
        integer("Allowed Disruptions", "Pods that may be taken away right now."),
        AGE,
    ),
    print_budget,
)

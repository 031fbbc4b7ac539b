"""The tables of nodes, namespaces, events, leases, priorities, and of who may do what."""

from __future__ import annotations

from typing import Any

from herder.server.tables.ages import UNKNOWN, age
from herder.server.tables.columns import AGE, NAME, Column, Printer, boolean, created, integer, name_of, part, text, wide
from herder.server.tables.selectors import NONE

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"


def print_name_and_age(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), age(created(obj), now)]


def print_name_and_creation(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), created(obj) or "0001-01-01T00:00:00Z"]


def print_node(obj: dict[str, Any], now: float) -> list[Any]:
    status = part(obj, "status")
    system = part(status, "nodeInfo")
    kernel, machine = system.get("kernelVersion") or UNKNOWN, system.get("architecture")
    return [
        name_of(obj),
        _node_state(obj, status),
        _roles(obj["metadata"].get("labels") or {}),
        age(created(obj), now),
        system.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        system.get("osImage") or UNKNOWN,
        f"{kernel} ({machine})" if machine else kernel,
        system.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_state(obj: dict[str, Any], status: dict[str, Any]) -> str:
    ready = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}.get("Ready")
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if part(obj, "spec").get("unschedulable") else state


def _roles(labels: dict[str, str]) -> str:
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles.add(labels.get(ROLE_LABEL, ""))
    return ",".join(sorted(role for role in roles if role)) or NONE


def _address(status: dict[str, Any], kind: str) -> str:
    return next((one.get("address", "") for one in status.get("addresses") or () if one.get("type") == kind), NONE)


def print_namespace(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age(created(obj), now)]


def print_event(obj: dict[str, Any], now: float) -> list[Any]:
    """Both groups' events: the newer one has other names for the same fields."""
    target = part(obj, "involvedObject") or part(obj, "regarding")
    kind, name = target.get("kind", "").lower(), target.get("name")
    first, last, count = _event_times(obj, now)
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        _event_source(obj),
        (obj.get("message") or obj.get("note") or "").strip(),
        first,
        count,
        name_of(obj),
    ]


def _event_times(obj: dict[str, Any], now: float) -> tuple[str, str, int]:
    first = age(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    if series := obj.get("series"):
        return first, age(series.get("lastObservedTime"), now), series.get("count", 0)
    return first, age(last, now) if last else first, obj.get("count") or obj.get("deprecatedCount") or 1


def _event_source(obj: dict[str, Any]) -> str:
    source = part(obj, "source") or part(obj, "deprecatedSource")
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def print_lease(obj: dict[str, Any], now: float) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity") or "", age(created(obj), now)]


def print_priority_class(obj: dict[str, Any], now: float) -> list[Any]:
    default = obj.get("globalDefault", False)
    return [name_of(obj), obj.get("value", 0), default, age(created(obj), now), obj.get("preemptionPolicy", "")]


def print_binding(obj: dict[str, Any], now: float) -> list[Any]:
    role, subjects = part(obj, "roleRef"), obj.get("subjects") or ()
    accounts = [f"{one.get('namespace', '')}/{one.get('name')}" for one in subjects if one.get("kind") == "ServiceAccount"]
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(created(obj), now),
        ", ".join(one.get("name", "") for one in subjects if one.get("kind") == "User"),
        ", ".join(one.get("name", "") for one in subjects if one.get("kind") == "Group"),
        ", ".join(accounts),
    ]


CREATED_AT = Column("Created At", "date", "When the object was created.")

PLAIN = Printer((NAME, AGE), print_name_and_age)
DEFAULT = Printer((NAME, CREATED_AT), print_name_and_creation)
NODES = Printer(
    (
        NAME,
        text("Status", "Whether the node is ready, and open for new pods."),
        text("Roles", "Roles from the node's labels."),
        AGE,
        text("Version", "Version of the node's agent."),
        wide("Internal-IP", "Address inside the cluster."),
        wide("External-IP", "Address from outside."),
        wide("OS-Image", "Operating system."),
        wide("Kernel-Version", "Kernel and machine type."),
        wide("Container-Runtime", "What runs the containers."),
    ),
    print_node,
)
NAMESPACES = Printer((NAME, text("Status", "Whether the namespace is active or going away."), AGE), print_namespace)
EVENTS = Printer(
    (
        text("Last Seen", "Time since it last happened."),
        text("Type", "Normal or Warning."),
        text("Reason", "Why, in one word."),
        text("Object", "What it happened to."),
        wide("Subobject", "Which part of the object."),
        wide("Source", "Who tells it."),
        text("Message", "What happened."),
        wide("First Seen", "Time since it first happened."),
        wide("Count", "How often it happened."),
        Column("Name", description=NAME.description, format="name", priority=1),
    ),
    print_event,
)
LEASES = Printer((NAME, text("Holder", "Who holds it."), AGE), print_lease)
PRIORITY_CLASSES = Printer(
    (
        NAME,
        integer("Value", "The priority; more is more important."),
        boolean("Global-Default", "Whether pods without a class get this one."),
        AGE,
        text("PreemptionPolicy", "Whether less important pods may be pushed out."),
    ),
    print_priority_class,
)
BINDINGS = Printer(
    (
        NAME,
        text("Role", "What is granted."),
        AGE,
        wide("Users", "Users who get it."),
        wide("Groups", "Groups that get it."),
        wide("ServiceAccounts", "Service accounts that get it."),
    ),
    print_binding,
)

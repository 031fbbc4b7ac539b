"""Rules for requests and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from herder.api import names
from herder.api.builtin.semantics import NOT_NEGATIVE, Document, Problems, refuse_names
from herder.api.problems import forbidden, invalid, required, too_many
from herder.api.quantity import ZERO, Quantity, parse_quantity

_CONTAINER_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_STANDARD: Final = frozenset(
    (
        *_CONTAINER_RESOURCES,
        *("requests.cpu", "requests.memory", "requests.ephemeral-storage"),
        *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
    )
)
_COUNTED: Final = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_NATIVE_DOMAIN: Final = "kubernetes.io/"

# Of one container. No machine has so many kinds of resources.
MOST_RESOURCES = 1000
# A domain, a slash and a name.
LONGEST_NAME = 253 + 1 + 63
NameCheck = Callable[[str, str, Problems], None]


def quantity_of(value: Any, field: str, out: Problems) -> Quantity:
    """The amount; what cannot be read counts as nothing and is reported."""
    try:
        return parse_quantity(value)
    except (ValueError, TypeError) as problem:
        out.append(invalid(field, value, str(problem)))
        return ZERO


def check_amount(resource: str, value: Any, field: str, out: Problems) -> Quantity:
    amount = quantity_of(value, field, out)
    if amount.nanos < 0:
        out.append(invalid(field, str(amount), NOT_NEGATIVE))
    if is_whole(resource) and amount.milli_value() % 1000:
        out.append(invalid(field, str(amount), "must be an integer"))
    return amount


def check_positive(value: Any, field: str, out: Problems) -> Quantity:
    amount = quantity_of(value, field, out)
    if amount.nanos <= 0:
        out.append(invalid(field, str(amount), "must be greater than zero"))
    return amount


def is_extended(resource: str) -> bool:
    """A resource that somebody else brought: `example.com/gpu`."""
    if "/" not in resource or _NATIVE_DOMAIN in resource or resource.startswith("requests."):
        return False
    return _is_name(resource)


@lru_cache(maxsize=4096)
def _is_short_name(resource: str) -> bool:
    return not names.qualified_name(f"requests.{resource}")


def _is_name(resource: str) -> bool:
    """Asked several times of each, and of the same ones in every pod. Longer ones are no names, and not kept."""
    return len(resource) <= LONGEST_NAME and _is_short_name(resource)


def is_whole(resource: str) -> bool:
    return resource in _COUNTED or (resource not in _CONTAINER_RESOURCES and is_extended(resource))


def is_huge_pages(resource: str) -> bool:
    return resource.startswith("hugepages-")


def may_overcommit(resource: str) -> bool:
    if resource in _CONTAINER_RESOURCES:
        return True
    native = "/" not in resource or _NATIVE_DOMAIN in resource
    return native and not is_huge_pages(resource)


def check_container_resource(resource: str, field: str, out: Problems) -> None:
    if resource in _CONTAINER_RESOURCES or is_huge_pages(resource):
        return
    complaints = names.qualified_name(resource)
    if complaints:
        refuse_names(complaints, field, resource, out)
    elif "/" not in resource and resource not in _STANDARD:
        out.append(invalid(field, resource, "must be a standard resource type or fully qualified"))
    if "/" not in resource:
        out.append(invalid(field, resource, "must be a standard resource for containers"))
    elif _NATIVE_DOMAIN not in resource and not is_extended(resource):
        out.append(invalid(field, resource, "doesn't follow extended resource name standard"))


def check_requirements(resources: Document, field: str, out: Problems, claims: frozenset[str] = frozenset()) -> None:
    """`resources` of a container: right names, right amounts, and no request above its limit."""
    if not resources:
        return
    limits: Mapping[str, Any] = resources.get("limits") or {}
    requests: Mapping[str, Any] = resources.get("requests") or {}
    amounts: dict[str, Quantity] = {}
    for part, named in (("limits", limits), ("requests", requests)):
        if len(named) > MOST_RESOURCES:
            out.append(too_many(f"{field}.{part}", len(named), MOST_RESOURCES))
            return
    for resource, value in limits.items():
        here = f"{field}.limits[{resource}]"
        check_container_resource(resource, here, out)
        amounts[resource] = check_amount(resource, value, here, out)
    for resource, value in requests.items():
        here = f"{field}.requests[{resource}]"
        check_container_resource(resource, here, out)
        amount = check_amount(resource, value, here, out)
        _check_against_limit(resource, amount, amounts.get(resource), field, out)
    all_named = {*limits, *requests}
    if any(is_huge_pages(resource) for resource in all_named) and not all_named & {"cpu", "memory"}:
        out.append(forbidden(field, "HugePages require cpu or memory"))
    if resources.get("claims"):
        _check_claims(resources["claims"], claims, f"{field}.claims", out)


def _check_against_limit(resource: str, request: Quantity, limit: Quantity | None, field: str, out: Problems) -> None:
    if limit is None:
        if not may_overcommit(resource):
            out.append(required(f"{field}.limits", "Limit must be set for non overcommitable resources"))
    elif request.nanos != limit.nanos and not may_overcommit(resource):
        out.append(invalid(f"{field}.requests", str(request), f"must be equal to {resource} limit of {limit}"))
    elif request.nanos > limit.nanos:
        out.append(invalid(f"{field}.requests", str(request), f"must be less than or equal to {resource} limit of {limit}"))


def _check_claims(wanted: list[Document], claims: frozenset[str], field: str, out: Problems) -> None:
    for index, claim in enumerate(wanted):
        name = claim.get("name")
        if not name:
            out.append(required(f"{field}[{index}]"))
        elif name not in claims:
            out.append(invalid(f"{field}[{index}].name", name, "must be one of the names in pod.spec.resourceClaims"))

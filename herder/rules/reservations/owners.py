"""Who may take a reservation: entries of which one must fit, with fields that must all fit (seed 004, `owners`).

Each entry is found under one key, and a pod has a few: a pod that is to be placed finds the reservations that may be for it without
looking at all the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from herder.api.kinds import ReservationView
from herder.api.kinds.reservation import ReservationController, ReservationOwner
from herder.api.meta import ObjectReference, OwnerReference
from herder.api.selectors import IN
from herder.rules.placement.terms import selector_of

OwnerKey = tuple[str, ...]
MOST_LABELS = 64
MANY_LABELS: OwnerKey = ("many labels",)


class Matched(Protocol):
    """A pod, as far as owners speak of it."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def controller(self) -> OwnerReference | None: ...


def matches(reservation: ReservationView, pod: Matched) -> bool:
    namespace = namespace_of(reservation)
    return any(owner_matches(owner, namespace, pod) for owner in reservation.spec.owners)


def owner_matches(owner: ReservationOwner, namespace: str, pod: Matched) -> bool:
    """`namespace`: of the template; an entry that names one itself means that."""
    if owner.object is None and owner.controller is None and owner.label_selector is None:
        return False
    if any(wanted != pod.namespace for wanted in _named(owner) or ([namespace] if namespace else [])):
        return False
    return (
        (owner.object is None or _is_object(owner.object, pod))
        and (owner.controller is None or _is_controller(owner.controller, pod.controller))
        and (owner.label_selector is None or selector_of(owner.label_selector).matches(pod.labels))
    )


def namespace_of(reservation: ReservationView) -> str:
    return reservation.spec.template.metadata.namespace or ""


def owner_keys(reservation: ReservationView) -> frozenset[OwnerKey]:
    namespace = namespace_of(reservation)
    return frozenset(_key(owner, (_named(owner) or [namespace])[0]) for owner in reservation.spec.owners)


def pod_keys(pod: Matched, by_label: Mapping[OwnerKey, object]) -> Iterable[OwnerKey]:
    """All keys under which an entry for this pod could be. `by_label`: those under which something is found."""
    keys = _plain_keys(pod)
    return [*keys, *(key for key in _label_keys(pod) if key in by_label)] if by_label else keys


def waiting_keys(pod: Matched) -> tuple[OwnerKey, ...]:
    """All keys under which an entry for this pod could come. Whoever makes pods makes up their labels: of many labels none counts,
    and the pod is asked about every entry that goes by a label."""
    if len(pod.labels) > MOST_LABELS:
        return (*_plain_keys(pod), MANY_LABELS)
    return (*_plain_keys(pod), *_label_keys(pod))


def _plain_keys(pod: Matched) -> list[OwnerKey]:
    """Those of entries that name a namespace, and of those that do not. Every pod that is placed is asked for these."""
    namespace, name, owner = pod.namespace, pod.name, pod.controller
    keys: list[OwnerKey] = [("uid", pod.uid), ("name", namespace, name), ("name", "", name), ("any", namespace), ("any", "")]
    if owner is not None:
        keys += [("controller uid", owner.uid)]
        keys += [("controller", namespace, owner.kind, owner.name), ("controller", "", owner.kind, owner.name)]
    return keys


def _label_keys(pod: Matched) -> Iterable[OwnerKey]:
    return (("label", namespace, name, value) for namespace in (pod.namespace, "") for name, value in pod.labels.items())


def is_label_key(key: OwnerKey) -> bool:
    return key[0] == "label"


def _named(owner: ReservationOwner) -> list[str]:
    """Namespaces that the entry itself says."""
    return [one.namespace for one in (owner.object, owner.controller) if one is not None and one.namespace]


def _key(owner: ReservationOwner, namespace: str) -> OwnerKey:
    """`any` for an entry that says nothing else by which it could be found."""
    if owner.object is not None and (owner.object.uid or owner.object.name):
        return ("uid", owner.object.uid) if owner.object.uid else ("name", namespace, owner.object.name or "")
    if owner.controller is not None:
        uid = owner.controller.uid
        return ("controller uid", uid) if uid else ("controller", namespace, owner.controller.kind, owner.controller.name)
    exact = [one for one in selector_of(owner.label_selector).requirements if one.operator == IN and len(one.values) == 1]
    return ("label", namespace, exact[0].key, exact[0].values[0]) if exact else ("any", namespace)


def _is_object(wanted: ObjectReference, pod: Matched) -> bool:
    if not (wanted.name or wanted.uid) or wanted.kind not in (None, "", "Pod") or wanted.api_version not in (None, "", "v1"):
        return False
    return wanted.name in (None, "", pod.name) and wanted.uid in (None, "", pod.uid)


def _is_controller(wanted: ReservationController, owner: OwnerReference | None) -> bool:
    if owner is None or (owner.kind, owner.name) != (wanted.kind, wanted.name):
        return False
    same_group = not wanted.api_version or _group(wanted.api_version) == _group(owner.api_version)
    return same_group and wanted.uid in (None, "", owner.uid)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def told_owners(reservation: ReservationView) -> tuple[str, ...]:
    """For people: who may take it."""
    return tuple(_told(owner, namespace_of(reservation)) for owner in reservation.spec.owners)


def _told(owner: ReservationOwner, namespace: str) -> str:
    parts: list[str] = []
    if owner.object is not None:
        parts.append(f"pod {_path(owner.object.namespace or namespace, owner.object.name or owner.object.uid or '')}")
    if owner.controller is not None:
        parts.append(f"{owner.controller.kind} {_path(owner.controller.namespace or namespace, owner.controller.name)}")
    if owner.label_selector is not None:
        wanted = ",".join(str(one) for one in selector_of(owner.label_selector).requirements) or "any labels"
        parts.append(f"pods with {wanted}")
    return " and ".join(parts)


def _path(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name

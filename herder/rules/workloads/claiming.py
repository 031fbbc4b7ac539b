"""Whose an object is: that of the owner that its reference names. One that nobody manages is taken in by whoever selects it; one
that is no longer selected is let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from herder.api.core import Deployment, ReplicaSet, StatefulSet
from herder.api.meta import Identified, LabelSelector
from herder.api.selectors import Selector, selector_from_object
from herder.rules.plans import plain

V = TypeVar("V", bound=Identified)
Owner = ReplicaSet | Deployment | StatefulSet


class Claim(msgspec.Struct, Generic[V], frozen=True):
    owned: tuple[V, ...] = ()
    adopt: tuple[V, ...] = ()
    release: tuple[V, ...] = ()


def claim(owner: Owner, candidates: Iterable[V], may_have: Callable[[V], bool] = lambda _: True) -> Claim[V]:
    """`candidates`: those that name the owner, and those that name nobody. `may_have`: what the owner asks beside its selector. An
    owner that goes takes nothing in, and lets nothing go: what becomes of its objects is up to who deletes it."""
    selector = selector_of(owner.spec.selector)
    owned: list[V] = []
    adopt: list[V] = []
    release: list[V] = []
    for one in candidates:
        matches = not selector.empty and selector.matches(one.labels) and may_have(one)
        if one.controller_uid == owner.uid:
            (owned if matches else release).append(one)
        elif not one.controller_uid and matches and not one.being_deleted:
            adopt.append(one)
    if owner.being_deleted:
        return Claim(tuple(owned))
    return Claim(tuple(owned), tuple(adopt), tuple(release))


def selector_of(selector: LabelSelector | None) -> Selector:
    return selector_from_object(plain(selector))


def selects(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    """An empty selector would select everything, which nobody means."""
    ready = selector_of(selector)
    return not ready.empty and ready.matches(labels)


def controller_reference(owner: Identified, api_version: str, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }

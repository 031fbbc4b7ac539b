"""Annotations of pods that nodes obey: orders to run, move or fill something. Who may write them, for both engines.

Only our controllers give orders: their account, and whoever may impersonate that account (cluster administrators), who could give
the same orders in its name. That it comes from there is not enough, though: on the embedded engine the same account makes the pods
of ReplicaSets, as tenants' templates describe them. So a pod with an order belongs to the object that the order follows from, if it
has a controller at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from herder.api import labels, registry
from herder.api.account import ACCOUNT, SYSTEM_NAMESPACE

Document = dict[str, Any]
# A kind of a group, of whatever version.
Owner = tuple[str, str]

_INSTANCE: Final[Owner] = (registry.INSTANCE.group, registry.INSTANCE.kind)
_DATA_VOLUME: Final[Owner] = (registry.DATA_VOLUME.group, registry.DATA_VOLUME.kind)
_VOLUME: Final[Owner] = ("", "PersistentVolume")
# Which objects' pods may have them.
RESERVED: Final[Mapping[str, tuple[Owner, ...]]] = {
    labels.GUEST: (_INSTANCE,),
    labels.MIGRATION: (_INSTANCE,),
    labels.RESUME: (_INSTANCE,),
    labels.IMPORT: (_DATA_VOLUME, _VOLUME, _INSTANCE),
}
OWNERS: Final = tuple(dict.fromkeys(owner for owners in RESERVED.values() for owner in owners))
CONTROLLERS: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNT}"


def changed_annotations(new: Document, old: Document | None) -> tuple[str, ...]:
    """Those of them that are added, changed or taken away."""
    after, before = _annotations(new), _annotations(old)
    if not after and not before:
        return ()
    return tuple(name for name in RESERVED if after.get(name) != before.get(name))


def problem(changed: Iterable[str], pod: Document, by_controllers: bool) -> str:
    """Why these may not be written into this pod; empty where they may. `by_controllers`: by who may give orders."""
    for name in changed:
        if not by_controllers:
            return not_by_controllers(name)
        if name in _annotations(pod) and (owner := controller_of(pod)) is not None and owner not in RESERVED[name]:
            kinds = " or a ".join(kind for _, kind in RESERVED[name])
            return f"{_field(name)}: is only for pods that belong to a {kinds}, and this one belongs to a {owner[1]}"
    return ""


def not_by_controllers(name: str) -> str:
    return f"{_field(name)}: a node obeys it, so only {CONTROLLERS} may write it, or who may impersonate that account"


def controller_of(pod: Document) -> Owner | None:
    for owner in (pod.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("apiVersion") or "").rpartition("/")[0], str(owner.get("kind") or "")
    return None


def _annotations(pod: Document | None) -> Mapping[str, Any]:
    """What is of another type is refused later, by who knows the types."""
    found: Any = ((pod or {}).get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def _field(name: str) -> str:
    return f"metadata.annotations[{name}]"

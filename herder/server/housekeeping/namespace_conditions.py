"""Why a namespace that is being deleted is still there, in the conditions and the words of Kubernetes' own controller. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from herder.api.problems import shortened

Document = dict[str, Any]
# Finalizers are a tenant's own words, and many of them would be more than an object may hold.
LONGEST_MESSAGE = 32 * 1024


class Remaining(msgspec.Struct):
    """What could not be cleared away, by resource and by the finalizers that hold it, and what went wrong."""

    resources: dict[str, int] = {}
    finalizers: dict[str, int] = {}
    failures: list[str] = []

    def add(self, resource: str, count: int, finalizers: dict[str, int]) -> None:
        self.resources[resource] = count
        for name, holds in finalizers.items():
            self.finalizers[name] = self.finalizers.get(name, 0) + holds


class _Words(NamedTuple):
    reason: str
    message: str


# All five are always said, in this order.
_WELL = {
    "NamespaceDeletionDiscoveryFailure": _Words("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": _Words("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": _Words("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    "NamespaceContentRemaining": _Words("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": _Words("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def said(before: list[Document], remaining: Remaining, now: str) -> list[Document]:
    """The conditions that were there, with ours as they are now. Times stay while a status does."""
    known = {one["type"]: one for one in before}
    ill = _ill(remaining)
    for kind, well in _WELL.items():
        status, words = ("True", ill[kind]) if kind in ill else ("False", well)
        old = known.get(kind)
        since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
        known[kind] = {"type": kind, "status": status, "lastTransitionTime": since, "reason": words.reason}
        known[kind]["message"] = shortened(words.message, LONGEST_MESSAGE)
    return list(known.values())


def _ill(remaining: Remaining) -> dict[str, _Words]:
    told: dict[str, _Words] = {}
    if remaining.failures:
        listed = ", ".join(sorted(remaining.failures))
        message = f"Failed to delete all resource types, {len(remaining.failures)} remaining: {listed}"
        told["NamespaceDeletionContentFailure"] = _Words("ContentDeletionFailed", message)
    if remaining.resources:
        listed = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in remaining.resources.items()))
        told["NamespaceContentRemaining"] = _Words("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if remaining.finalizers:
        listed = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in remaining.finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        told["NamespaceFinalizersRemaining"] = _Words("SomeFinalizersRemain", message)
    return told

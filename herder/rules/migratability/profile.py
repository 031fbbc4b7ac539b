"""What the processor of a node asks of others and offers to others, as the node's labels say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from herder.api import labels
from herder.api.core import Node


class Profile(msgspec.Struct, frozen=True):
    """Equal for nodes with equal processors. Needs and offers are label keys, so that they can be compared as they are."""

    # What host-model becomes on this node; empty where no host-model guest can start.
    model: str = ""
    # What a node must offer to take a guest that was first started here.
    needs: frozenset[str] = frozenset()
    # Models that guests can be moved to it with, and features.
    offers: frozenset[str] = frozenset()
    vendor: str = ""

    def takes(self, other: Profile) -> bool:
        """Whether a host-model guest that was first started on the other can be moved here."""
        return bool(other.model) and not self.lacks(other.needs, other.vendor)

    def lacks(self, needs: frozenset[str], vendor: str) -> tuple[str, ...]:
        """In words, by name: what keeps a guest with these needs away."""
        missing = tuple(sorted((readable(key) for key in needs - self.offers), key=_models_first))
        if vendor and self.vendor and vendor != self.vendor:
            return (f"vendor {vendor}", *missing)
        return missing


def readable(key: str) -> str:
    """`model Haswell`, or the name of a feature."""
    prefix, _, name = key.partition("/")
    return f"model {name}" if prefix + "/" == labels.CPU_MODEL_MIGRATION else name


def _models_first(words: str) -> tuple[bool, str]:
    return (not words.startswith("model "), words)


def profile_of(written: Mapping[str, str]) -> Profile:
    """A label counts where its value is "true". Of several host models, or vendors, the first by name."""
    return _read(frozenset([key for key, value in written.items() if value == "true"]))


# Nodes have a thousand labels each, and most have the same as some other: those are read once.
@lru_cache(maxsize=1024)
def _read(keys: frozenset[str]) -> Profile:
    offers = frozenset([key for key in keys if key.startswith((labels.CPU_FEATURE, labels.CPU_MODEL_MIGRATION))])
    others = keys - offers
    model = min(_under(labels.HOST_MODEL_CPU, others), default="")
    required = [labels.CPU_FEATURE + name for name in _under(labels.HOST_MODEL_REQUIRED_FEATURES, others)]
    needs = frozenset((labels.CPU_MODEL_MIGRATION + model, *required)) if model else frozenset[str]()
    return Profile(model, needs, offers, min(_under(labels.CPU_VENDOR, others), default=""))


def _under(prefix: str, keys: Iterable[str]) -> list[str]:
    return [key[len(prefix) :] for key in keys if key.startswith(prefix)]


def schedulable(node: Node) -> bool:
    """Whether guests may be started there now. Not cordoned, Ready, not being deleted, and not said to be closed to guests."""
    ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
    closed = node.spec.unschedulable or node.being_deleted
    return ready and not closed and node.labels.get(labels.SCHEDULABLE, "true") == "true"


def counted(node: Node) -> Profile | None:
    """None for a node that counts for nobody."""
    return profile_of(node.labels) if schedulable(node) else None

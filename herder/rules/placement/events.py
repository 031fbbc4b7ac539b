"""What happened in the cluster that may make room for a pod that waits."""

from __future__ import annotations

import enum

import msgspec

from herder.rules.placement.needs import Needs
from herder.rules.placement.nodes import Offer


class What(enum.Enum):
    NODE_CAME = "node came"
    NODE_CHANGED = "node changed"
    NODE_WENT = "node went"
    # It has a node now, or other labels than before.
    POD_PLACED = "pod placed"
    # Deleted, finished, or not bound after all: its room is free.
    POD_WENT = "pod went"
    NAMESPACE_CHANGED = "namespace changed"
    CLAIM_CHANGED = "claim changed"
    VOLUME_CHANGED = "volume changed"
    CLASS_CHANGED = "class changed"


class Event(msgspec.Struct, frozen=True):
    what: What
    # The node that it is about, or that the pod is or was on.
    node: str = ""
    pod: Needs | None = None
    before: Offer | None = None
    after: Offer | None = None
    namespace: str = ""
    name: str = ""


def node_event(before: Offer | None, after: Offer | None) -> Event | None:
    """None where nothing changed that matters to anybody."""
    if before is None and after is not None:
        return Event(What.NODE_CAME, after.name, after=after)
    if before is not None and after is None:
        return Event(What.NODE_WENT, before.name, before=before)
    if before is None or after is None or before == after:
        return None
    return Event(What.NODE_CHANGED, after.name, before=before, after=after)

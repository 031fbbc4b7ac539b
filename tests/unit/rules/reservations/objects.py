"""Reservations and pods in a few words."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from tests.unit.rules.placement.cluster import pod

Json = dict[str, Any]
CREATED = "2026-01-01T00:00:00Z"
OWNER: Json = {"controller": {"kind": "ReplicaSet", "name": "web", "uid": "rs-web", "namespace": "default"}}


def reservation(name: str = "r", *, node: str = "", owners: list[Json] | None = None, **more: Any) -> ReservationView:
    """`requests` of its one container, `spec` of its template, `labels` and `namespace` of its pods; the rest is its own spec."""
    return msgspec.convert(document(name, node=node, owners=owners, **more), ReservationView)


def document(name: str = "r", *, node: str = "", owners: list[Json] | None = None, **more: Any) -> Json:
    metadata: Json = {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED, **more.pop("metadata", {})}
    container = {"name": "c", "image": "i", "resources": {"requests": more.pop("requests", {"cpu": "1"})}}
    template = {
        "metadata": {"namespace": more.pop("namespace", "default"), "labels": more.pop("labels", {})},
        "spec": {"containers": [container], **more.pop("template", {})},
    }
    status: Json = more.pop("status", {"phase": "Available", "nodeName": node} if node else {})
    return {"metadata": metadata, "spec": {"template": template, "owners": owners or [OWNER], **more}, "status": status}


def web(name: str = "web-1", *, on: str = "", took: str = "", owner: Json | None = None, **more: Any) -> Pod:
    """A pod of the ReplicaSet that reservations are for."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": True}
    said = {RESERVATION_ALLOCATED: f'{{"name": "{took}", "uid": "uid-{took}"}}'} if took else {}
    metadata = {"ownerReferences": [owner or reference], "annotations": said, **more.pop("metadata", {})}
    return msgspec.convert(pod(name, on=on, metadata=metadata, requests=more.pop("requests", {"cpu": "1"}), **more), Pod)

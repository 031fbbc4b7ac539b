"""What log and console have in common: which pod, which container, and where it runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from herder.server import status
from herder.server.engine import Engine
from herder.server.kubelets import Kubelets, Place, place_of
from herder.server.request import Request, Target
from herder.server.served import Served
from herder.server.store.records import key_of

Document = dict[str, Any]


class Looked(msgspec.Struct, frozen=True):
    kubelets: Kubelets
    place: Place
    namespace: str
    pod: str
    container: str

    def path(self, what: str) -> str:
        return f"/{what}/{quote(self.namespace)}/{quote(self.pod)}/{quote(self.container)}"


def look(engine: Engine, served: Served, target: Target, request: Request) -> Looked | None:
    """None for a pod that no node runs yet."""
    record = engine.store.get(served.table, key_of(target.namespace, target.name))
    if record is None:
        raise status.not_found(served.resource, target.name)
    pod = record.document()
    container = _container(pod, request.query.get("container", ""))
    node = pod["spec"].get("nodeName")
    if not node:
        return None
    nodes = engine.served("", "v1", "nodes")
    found = engine.store.get(nodes.table, node)
    if found is None:
        raise status.not_found(nodes.resource, node)
    if engine.kubelets is None:
        raise status.ApiError(503, "ServiceUnavailable", "this engine has no certificate to show to nodes, and asks them nothing")
    return Looked(engine.kubelets, place_of(found.document()), target.namespace, target.name, container)


def _container(pod: Document, wanted: str) -> str:
    name = pod["metadata"]["name"]
    spec = pod["spec"]
    known = [one["name"] for part in ("containers", "initContainers", "ephemeralContainers") for one in spec.get(part) or ()]
    if wanted and wanted not in known:
        raise status.bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(spec["containers"]) > 1:
        listed = " ".join(one["name"] for one in spec["containers"])
        raise status.bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return wanted or spec["containers"][0]["name"]

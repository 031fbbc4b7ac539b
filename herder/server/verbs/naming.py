"""The path of a request decides what it is about. A body that names something else is a mistake, and not guessed about."""

from __future__ import annotations

from typing import Any

from herder.server import status
from herder.server.metadata import metadata_of
from herder.server.request import Target
from herder.server.served import Served

Document = dict[str, Any]


def check_namespace(document: Document, target: Target, served: Served) -> None:
    metadata = metadata_of(document)
    if not served.resource.namespaced:
        metadata.pop("namespace", None)
        return
    named = metadata.get("namespace")
    if named and named != target.namespace:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = target.namespace


def check_name(document: Document, target: Target) -> None:
    name = metadata_of(document).get("name")
    if not name:
        raise status.bad_request(f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided")
    if name != target.name:
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")

"""Was an update made against the state that is stored? Pure."""

from __future__ import annotations

from typing import Any

from herder.api.problems import invalid
from herder.server import status
from herder.server.served import Served

Document = dict[str, Any]


def check_update(served: Served, new: Document, old: Document) -> None:
    """409 when it was not, and the client reads again."""
    metadata, stored = new["metadata"], old["metadata"]
    name = stored["name"]
    uid = metadata.get("uid")
    if uid and uid != stored["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored['uid']}"
        raise status.conflict(served.resource, name, why)
    version = metadata.get("resourceVersion")
    if not version:
        if not served.strategy.unconditional_update:
            problem = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise status.invalid(served.resource, name, [problem])
    elif version != stored["resourceVersion"]:
        if not version.isdigit():
            problem = invalid("metadata.resourceVersion", version, "must be a resourceVersion that the server gave out")
            raise status.invalid(served.resource, name, [problem])
        raise status.conflict(served.resource, name, status.MODIFIED)

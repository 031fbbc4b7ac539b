"""What an endpoint does not write: creating and updating an object leave its status alone, the status endpoint leaves the rest."""

from __future__ import annotations

from herder.server.fields.sets import FieldSet, of_paths

_STATUS = of_paths([("f:status",)])
_SPEC = of_paths([("f:spec",)])
_CUSTOM = of_paths([("f:spec",), ("f:metadata",)])
# Beside the spec, what the status endpoints of these kinds leave alone.
_STATUS_ENDPOINTS: dict[tuple[str, str], FieldSet] = {
    ("", "Pod"): of_paths([("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")]),
    ("apps", "Deployment"): of_paths([("f:spec",), ("f:metadata", "f:labels")]),
}
# Kinds whose status is written like any other field, since they have no endpoint for it.
NO_STATUS: FieldSet = {}


def reset_fields(group: str, kind: str, subresource: str, *, has_status: bool, builtin: bool) -> FieldSet:
    """For `managed_fields_after_*`: the paths that a write to this endpoint neither gives to nor takes from anyone."""
    if subresource == "status":
        return _STATUS_ENDPOINTS.get((group, kind), _SPEC) if builtin else _CUSTOM
    return _STATUS if has_status else NO_STATUS

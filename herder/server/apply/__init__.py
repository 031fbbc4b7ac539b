"""Server-side apply: what somebody wants of an object is merged into it, and what they no longer want goes.

applied = apply(live, config, fields, entries, Applier("me", "apps/v1", ...), force=False)
if applied.conflicts: ...          # nothing was decided: other managers hold what this would change
applied.document, applied.entries  # the object before defaults, and its managedFields
"""

from herder.server.apply.applying import Applied, Applier, apply, apply_new
from herder.server.apply.checking import check_config
from herder.server.apply.conflicts import Conflict, conflict_message, describe
from herder.server.apply.owning import NotDivisible, owned

__all__ = [
    "Applied",
    "Applier",
    "Conflict",
    "NotDivisible",
    "apply",
    "apply_new",
    "check_config",
    "conflict_message",
    "describe",
    "owned",
]

"""Ways to say what should change: JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch. Pure."""

from herder.server.patching.json_patch import PatchDoesNotFit, PatchError, apply_json_patch
from herder.server.patching.merge_patch import apply_merge_patch
from herder.server.patching.strategic import apply_strategic_patch

__all__ = ["PatchDoesNotFit", "PatchError", "apply_json_patch", "apply_merge_patch", "apply_strategic_patch"]

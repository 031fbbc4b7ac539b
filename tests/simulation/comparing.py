"""Two ends of a story, side by side."""

from __future__ import annotations

from typing import Any


def places_that_differ(clean: Any, broken: Any, path: str = "") -> list[str]:
    """The places at which two things differ, and no more than that."""
    if clean == broken:
        return []
    if isinstance(clean, dict) and isinstance(broken, dict):
        names = sorted({**clean, **broken})
        return [one for name in names for one in places_that_differ(clean.get(name), broken.get(name), f"{path}.{name}")]
    return [f"{path} ends as {broken}, without the fault as {clean}"]

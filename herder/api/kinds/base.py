"""What the views of all our kinds begin with."""

from __future__ import annotations

from typing import Annotated

from herder.api.meta import Identified, ObjectMeta
from herder.api.views import View, doc


class Kind(Identified, View, frozen=True, kw_only=True):
    """Base of our kinds: what it is, and its metadata with the questions that rules ask most."""

    api_version: Annotated[str, doc("Group and version of the kind, as group/version.")] | None = None
    kind: Annotated[str, doc("Name of the kind.")] | None = None
    metadata: Annotated[ObjectMeta, doc("Standard metadata.")]

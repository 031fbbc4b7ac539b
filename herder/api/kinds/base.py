"""What the views of all our kinds begin with."""

from __future__ import annotations

from typing import Annotated

from herder.api.meta import ObjectMeta
from herder.api.views import View, doc


class Kind(View, frozen=True, kw_only=True):
    """Base of our kinds: what it is, and its metadata with the questions that rules ask most."""

    api_version: Annotated[str, doc("Group and version of the kind, as group/version.")] | None = None
    kind: Annotated[str, doc("Name of the kind.")] | None = None
    metadata: Annotated[ObjectMeta, doc("Standard metadata.")]

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}

    @property
    def being_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None

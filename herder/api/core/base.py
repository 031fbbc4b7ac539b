"""What every object of the core kinds begins with."""

from __future__ import annotations

from herder.api.meta import ObjectMeta
from herder.api.views import View


class Object(View, frozen=True, kw_only=True):
    """Base of the core kinds. What may be missing has an empty value, so that rules need not ask twice."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

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


class Named(View, frozen=True, kw_only=True):
    """Names an object in the same namespace; the name may be missing in old objects."""

    name: str = ""

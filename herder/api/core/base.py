"""What every object of the core kinds begins with."""

from __future__ import annotations

from herder.api.meta import Identified, ObjectMeta
from herder.api.views import View


class Object(Identified, View, frozen=True, kw_only=True):
    """Base of the core kinds. What may be missing has an empty value, so that rules need not ask twice."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class Named(View, frozen=True, kw_only=True):
    """Names an object in the same namespace; the name may be missing in old objects."""

    name: str = ""

"""From the bytes of an object to what the cache keeps of it. Only a little is decoded: the whole view waits until it is wanted."""

from __future__ import annotations

import sys
from typing import Generic, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from herder.api.meta import Identified
from herder.kube.cache.stored import Owner, Stored
from herder.kube.errors import Unreadable
from herder.kube.resources import Key, Resource

log = structlog.get_logger()
V = TypeVar("V", bound=Identified)
INITIAL_END = "k8s.io/initial-events-end"
_NO_LABELS: dict[str, str] = {}


class _Identity(msgspec.Struct, gc=False, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class _Metadata(_Identity, gc=False, rename="camel"):
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None


class _Place(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None


class _Part(msgspec.Struct, gc=False):
    """Pods say their node in the spec, instances in the status."""

    metadata: _Metadata
    kind: str = ""
    spec: _Place | None = None
    status: _Place | None = None


class _Bare(msgspec.Struct, gc=False):
    """For objects with labels, owners or a spec of an unheard-of shape: they are still there, and they still change."""

    metadata: _Identity
    kind: str = ""


class _MarkMetadata(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class Mark(msgspec.Struct, gc=False):
    """A bookmark."""

    metadata: _MarkMetadata

    @property
    def version(self) -> int:
        return version_of(self.metadata.resource_version)

    @property
    def ends_list(self) -> bool:
        return INITIAL_END in (self.metadata.annotations or ())


_part = msgspec.json.Decoder(_Part)
_bare = msgspec.json.Decoder(_Bare)
_mark = msgspec.json.Decoder(Mark)


def version_of(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Unreadable(f"resourceVersion: Invalid value: {text!r}: must be a whole number, as every API server writes it")
    return int(text)


def read_mark(raw: bytes | msgspec.Raw) -> Mark:
    try:
        return _mark.decode(raw)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"a bookmark of the watch cannot be read: {error}") from error


class Reader(Generic[V]):
    """For one cache: what it cannot read is counted and said there."""

    def __init__(self, resource: Resource[V], unreadable: Counter) -> None:
        """Nothing here may lead back to the cache: every object points here, and the collector does not look into objects."""
        self._resource = resource
        self._unreadable = unreadable
        self._read = self.view  # one for all objects: a bound method is an object too
        self._view = msgspec.json.Decoder(resource.view)
        kind, version = (msgspec.json.encode(text) for text in (resource.kind, resource.api_version))
        self._head = b'{"kind":' + kind + b',"apiVersion":' + version + b","

    def stored(self, raw: bytes) -> Stored[V] | None:
        """None for what has not even a name and a version: nobody could ask for it. Bytes that are no JSON are an error: then it is
        the connection that is broken."""
        try:
            part = _part.decode(raw)
        except msgspec.ValidationError:
            return self._bare(raw)
        except msgspec.MsgspecError as error:
            raise Unreadable(f"what came of {self._resource.qualified} is no JSON: {error}") from error
        metadata = part.metadata
        place = part.spec.node_name if part.spec is not None else None
        if not place and part.status is not None:
            place = part.status.node_name
        return Stored(
            Key(sys.intern(metadata.namespace), metadata.name),
            metadata.uid,
            version_of(metadata.resource_version),
            raw if part.kind else self._head + raw[1:],
            metadata.labels or _NO_LABELS,
            metadata.owner_references or (),
            place or "",
            metadata.deletion_timestamp is not None,
            self._read,
        )

    def _bare(self, raw: bytes) -> Stored[V] | None:
        try:
            part = _bare.decode(raw)
        except msgspec.MsgspecError as error:
            self._unreadable.inc()
            log.error("an object without a readable name", resource=self._resource.qualified, problem=str(error))
            return None
        metadata = part.metadata
        key = Key(metadata.namespace, metadata.name)
        version = version_of(metadata.resource_version)
        whole = raw if part.kind else self._head + raw[1:]
        return Stored(key, metadata.uid, version, whole, _NO_LABELS, (), "", metadata.deletion_timestamp is not None, self._read)

    def view(self, key: Key, raw: bytes) -> V:
        """Called once for each state of an object, so that a bad one is counted and said once."""
        try:
            return self._view.decode(raw)
        except msgspec.MsgspecError as error:
            self._unreadable.inc()
            log.error("an object that cannot be read", resource=self._resource.qualified, object=str(key), problem=str(error))
            raise Unreadable(f"{key} of {self._resource.qualified} cannot be read: {error}") from error

"""One stored version of one object, and one step of its history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Extract = Callable[[bytes], dict[str, str]]
ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Owner(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""
    kind: str = ""
    name: str = ""
    apiVersion: str = ""
    blockOwnerDeletion: bool | None = None
    controller: bool | None = None


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    ownerReferences: tuple[Owner, ...] | None = None
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class _Head(msgspec.Struct, frozen=True, gc=False):
    """The little that the store itself reads of an object. Everything else is skipped in C."""

    metadata: _Metadata


_decode_head = msgspec.json.Decoder(_Head).decode
_NO_LABELS: dict[str, str] = {}


class Record:
    """The object's bytes are the truth; the rest is read out of them once, for selectors and owners and for its end."""

    __slots__ = ("_fields", "finalizers", "key", "labels", "name", "namespace", "owners", "raw", "revision", "terminating", "uid")

    def __init__(self, key: str, revision: int, raw: bytes) -> None:
        head = _decode_head(raw).metadata
        self.key = key
        self.revision = revision
        self.raw = raw
        self.name = head.name
        self.namespace = head.namespace
        self.uid = head.uid
        self.labels = head.labels or _NO_LABELS
        self.owners = head.ownerReferences or ()
        self.finalizers = head.finalizers or ()
        self.terminating = head.deletionTimestamp is not None
        self._fields: tuple[Extract, dict[str, str]] | None = None

    def followed_by(self, revision: int, raw: bytes) -> Record:
        """The next state of the object, where nothing changed of what is read out of it here."""
        made = Record.__new__(Record)
        made.key, made.revision, made.raw = self.key, revision, raw
        made.name, made.namespace, made.uid = self.name, self.namespace, self.uid
        made.labels, made.owners = self.labels, self.owners
        made.finalizers, made.terminating = self.finalizers, self.terminating
        made._fields = None
        return made

    def document(self) -> dict[str, Any]:
        """A fresh copy that the caller may change."""
        return msgspec.json.decode(self.raw)

    def fields(self, extract: Extract) -> dict[str, str]:
        """What field selectors of its kind can see, kept because many watchers ask for the same. By who read it: a definition that
        changes brings another way to read, which may know other fields."""
        known = self._fields
        if known is None or known[0] is not extract:
            known = self._fields = (extract, extract(self.raw))
        return known[1]


class Change:
    """One committed step: what an object became, and what it was before (for watchers whose selector it left)."""

    __slots__ = ("_frames", "kind", "previous", "record", "revision", "table")

    def __init__(self, table: str, kind: str, record: Record, previous: Record | None) -> None:
        self.table = table
        self.kind = kind
        self.record = record
        self.previous = previous
        self.revision = record.revision
        self._frames: dict[str, bytes] | None = None

    def frame(self, kind: str) -> bytes:
        """The watch event's bytes, made once and shared by everyone who watches."""
        if self._frames is None:
            self._frames = {}
        frame = self._frames.get(kind)
        if frame is None:
            frame = self._frames[kind] = watch_frame(kind, self.raw(kind))
        return frame

    def raw(self, kind: str) -> bytes:
        """The object as an event of this kind shows it: DELETED without a deletion means that it left the selection."""
        if kind == DELETED and self.kind != DELETED:
            return last_seen(self)
        return self.record.raw


def watch_frame(kind: str, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"


def last_seen(change: Change) -> bytes:
    """For a watcher whose selector an object has left: the last state that matched, at the revision of its leaving."""
    assert change.previous is not None
    document = change.previous.document()
    document["metadata"]["resourceVersion"] = str(change.revision)
    return msgspec.json.encode(document)


def key_of(namespace: str, name: str) -> str:
    """Sorts as etcd's keys do, so that lists come in the order that clients know."""
    return f"{namespace}/{name}" if namespace else name

"""Leases are renewed all day, by the same patch but for its time. What was found out about one renewal is kept for the next.

A patch that says what the last one said, by the same user and manager, to the very state that the last one left, changes three
things: the time of the renewal, the time of the manager's entry and the resourceVersion. The rest of the object need not be read,
judged, compared and encoded again. What is unusual in any way goes the long way, which also says what is wrong.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from herder.server.fields.managed import MOST_UPDATERS, encoded_fields
from herder.server.request import Request
from herder.server.schema import duplicate_keys
from herder.server.store import Record

Document = dict[str, Any]

LEASES = "leases.coordination.k8s.io"
API_VERSION = "coordination.k8s.io/v1"
# More than a cluster has nodes and leaders. One is kept with its last state, usually less than 1 KB.
MOST_KNOWN = 10_000
LARGEST = 16 * 1024
# What a renewal may say. Anything else may mean more than it says.
_METADATA = frozenset({"uid", "resourceVersion"})
_SPEC = frozenset({"holderIdentity", "leaseDurationSeconds", "renewTime", "acquireTime", "leaseTransitions"})
_ENTRY = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
# As metav1.MicroTime is written.
_is_time = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z").fullmatch
_TIME_LENGTH = 27
# In place of what changes, until its place is known.
_VERSION, _ENTRY_TIME, _TIME = "\0version\0", "\0entry\0", "\0time\0"


class Renewal:
    """One that was carried out. `head` and `tail` are what was sent around its time, each in pieces around the resourceVersion if
    that was named there; `stored` is what it made of the Lease, around the resourceVersion and the two times."""

    __slots__ = ("agent", "entry_time", "head", "query", "record", "stored", "tail", "time", "user")

    def __init__(self, request: Request, record: Record, sent: tuple[list[bytes], list[bytes]], stored: list[bytes]) -> None:
        self.user = request.user
        self.query = request.query
        self.agent = request.headers.get("User-Agent")
        self.record = record
        self.head, self.tail = sent
        self.stored = stored
        self.time = b""
        self.entry_time = b""

    def asked(self, request: Request) -> bytes | None:
        """The new time, if the request differs in nothing else."""
        if request.user != self.user or request.query != self.query or request.headers.get("User-Agent") != self.agent:
            return None
        version, body = str(self.record.revision).encode(), request.body
        head, tail = version.join(self.head), version.join(self.tail)
        end = len(head) + _TIME_LENGTH
        time = body[len(head) : end]
        same = body.startswith(head) and body[end:] == tail and time != self.time
        return time if same and _is_valid(time) else None

    def again(self, revision: int, time: bytes, now: bytes) -> Record:
        """The Lease as it is from now on."""
        before, entry, spec, rest = self.stored
        raw = b"".join((before, str(revision).encode(), entry, now, spec, time, rest))
        self.time, self.entry_time = time, now
        self.record = self.record.followed_by(revision, raw)
        return self.record


class Renewals:
    def __init__(self) -> None:
        self._known: dict[str, Renewal] = {}

    def find(self, request: Request, current: Record | None, now: str) -> tuple[Renewal, bytes] | None:
        """The one that came before, and the time of this one; None where this one has to go the long way."""
        known = self._known.get(current.key) if current is not None else None
        # Who wrote last comes last in managedFields, as long as the clock does not go back.
        if known is None or known.record is not current or now.encode() < known.entry_time:
            return None
        time = known.asked(request)
        return (known, time) if time is not None else None

    def learn(self, request: Request, current: Record | None) -> None:
        """From a patch that was carried out, and what it made."""
        if current is None or current.terminating or len(current.raw) > LARGEST or request.warnings:
            return
        try:
            patch = msgspec.json.decode(request.body)
        except ValueError:
            return  # not UTF-8: the long way knows what to make of that
        lease = current.document()
        if not _is_renewal(patch, lease) or not _can_be_renewed(lease, request.manager):
            return
        sent, stored = _around_time(request.body, patch), _stored(lease)
        if sent is None or request.query.keys() - {"fieldManager"} or duplicate_keys(request.body, patch):
            return
        made = Renewal(request, current, sent, stored)
        made.time, made.entry_time = (
            value.encode() for value in (patch["spec"]["renewTime"], lease["metadata"]["managedFields"][-1]["time"])
        )
        if made.again(current.revision, made.time, made.entry_time).raw != current.raw:
            return
        made.record = current
        self._keep(current.key, made)

    def _keep(self, key: str, made: Renewal) -> None:
        self._known.pop(key, None)
        self._known[key] = made
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def _is_valid(time: bytes) -> bool:
    if not _is_time(time):
        return False
    try:
        datetime.fromisoformat(time.decode())
    except ValueError:
        return False
    return True


def _is_renewal(patch: Any, lease: Document) -> bool:
    """Whether it says nothing but what the Lease says now, and its time."""
    if not isinstance(patch, dict) or patch.keys() - {"metadata", "spec"}:
        return False
    metadata, spec = patch.get("metadata", {}), patch.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or metadata.keys() - _METADATA or spec.keys() - _SPEC:
        return False
    if metadata.get("uid", lease["metadata"]["uid"]) != lease["metadata"]["uid"]:
        return False
    if not all(type(value) in (str, int) and lease["spec"].get(name) == value for name, value in spec.items()):
        return False
    time = spec.get("renewTime")
    return isinstance(time, str) and _is_valid(time.encode())


def _can_be_renewed(lease: Document, manager: str) -> bool:
    """Whether the manager alone holds the time of the renewal, in the entry that was written last and as it would be written."""
    metadata = lease["metadata"]
    entries = metadata.get("managedFields") or []
    if lease["apiVersion"] != API_VERSION or list(metadata)[-1] != "managedFields" or not 0 < len(entries) <= MOST_UPDATERS:
        return False
    *others, mine = entries
    fields = mine.get("fieldsV1") or {}
    return (
        list(mine) == _ENTRY
        and (mine["manager"], mine["operation"]) == (manager, "Update")
        and all(entry.get("apiVersion") == API_VERSION for entry in entries)
        and _holds_time(mine)
        and not any(_holds_time(entry) for entry in others)
        and bytes(encoded_fields(fields)) == msgspec.json.encode(fields)
    )


def _holds_time(entry: Document) -> bool:
    return "f:renewTime" in (entry.get("fieldsV1") or {}).get("f:spec", {})


def _around_time(body: bytes, patch: Document) -> tuple[list[bytes], list[bytes]] | None:
    """None where the places of what changes cannot be told for sure."""
    time = msgspec.json.encode(patch["spec"]["renewTime"])
    parts = body.split(time)
    if len(parts) != 2:
        return None
    head, tail = [parts[0] + b'"'], [b'"' + parts[1]]
    version = patch.get("metadata", {}).get("resourceVersion")
    if version is None:
        return head, tail
    named = msgspec.json.encode(version)
    if not isinstance(version, str) or body.count(named) != 1:
        return None
    return _around(head[0], named), _around(tail[0], named)


def _around(text: bytes, quoted: bytes) -> list[bytes]:
    before, found, after = text.partition(quoted)
    return [before + b'"', b'"' + after] if found else [text]


def _stored(lease: Document) -> list[bytes]:
    """The Lease as it is written, around what changes."""
    metadata = lease["metadata"]
    *others, mine = metadata["managedFields"]
    marked = {
        **lease,
        "metadata": {**metadata, "resourceVersion": _VERSION, "managedFields": [*others, {**mine, "time": _ENTRY_TIME}]},
        "spec": {**lease["spec"], "renewTime": _TIME},
    }
    pieces, rest = list[bytes](), msgspec.json.encode(marked)
    for mark in (_VERSION, _ENTRY_TIME, _TIME):
        before, _, rest = rest.partition(msgspec.json.encode(mark)[1:-1])
        pieces.append(before)
    return [*pieces, rest]

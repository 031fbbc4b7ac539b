"""From a backup back to the store: what differs is written as ordinary changes, all in one transaction, at new resourceVersions.

Whoever watches sees what was deleted, changed and added, and cannot tell it from any other busy moment. Housekeeping looks only at
the state that is there afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from herder.server.backup.file import Backup, BackupError
from herder.server.metadata import ordered
from herder.server.store import ADDED, DELETED, MODIFIED, Change, Record, Store
from herder.server.store.records import key_of

Document = dict[str, Any]
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
NAMESPACES = "namespaces"
# A store that the backup was not made from cannot know how many revisions the other has handed out since; not as many as these.
JUMP = 1_000_000_000


class Wanted(msgspec.Struct, frozen=True):
    """One object of a backup. Its bytes but for the resourceVersion, which stands between `head` and `tail`."""

    table: str
    key: str
    uid: str
    raw: bytes
    head: bytes
    tail: bytes

    def at(self, revision: int) -> Record:
        return Record(self.key, revision, self.head + str(revision).encode() + self.tail)


class Restored(msgspec.Struct):
    """What a restore did, for the person who asked for it."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    revision: int = 0
    created: str = ""


def prepare(backup: Backup) -> list[Wanted]:
    """Blocking and slow: everything that can be done before the store is looked at. BackupError for what cannot be an object."""
    mark = secrets.token_hex(16)
    found = [_wanted(table, raw, mark) for table, raw in backup.objects]
    if len({(one.table, one.key) for one in found}) != len(found):
        raise BackupError("the backup is damaged: an object is in it twice")
    return found


def _wanted(table: str, raw: bytes, mark: str) -> Wanted:
    try:
        document: Document = msgspec.json.decode(raw)
        metadata = document["metadata"]
        metadata["resourceVersion"] = mark
        head, _, tail = msgspec.json.encode(ordered(document)).partition(mark.encode())
        record = Record(key_of(metadata.get("namespace", ""), metadata["name"]), 0, raw)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        raise BackupError("the backup is damaged: something in it is not an object") from None
    if not (table and record.name and record.uid):
        raise BackupError("the backup is damaged: an object in it has no name")
    return Wanted(table, record.key, record.uid, raw, head, tail)


async def restore(store: Store, backup: Backup, wanted: Sequence[Wanted], note: str = "") -> tuple[Restored, list[Change]]:
    """`note` is stored together with the objects, as a sign that all of this has happened."""
    foreign = backup.header.identity != store.identity
    if foreign:
        store.reserve_after(backup.header.revision + JUMP)
    # Nobody who knows revisions of the other store may go on from them here: what they know has another history.
    compacted = store.reserved if foreign else 0
    done = Restored(created=backup.header.created)
    changes = plan(store, wanted, done)
    await store.replace(changes, compacted, [("restored", note)])
    done.revision = store.reserved
    return done, changes


def plan(store: Store, wanted: Sequence[Wanted], done: Restored) -> list[Change]:
    """Deletions first, from the inside out; then what comes back, from the outside in. Decided and handed over without a pause."""
    current = store.newest()
    kept = {(one.table, one.key): one for one in wanted}
    leaving = [slot for slot, record in current.items() if slot not in kept or kept[slot].uid != record.uid]
    changes = [_deletion(store, slot[0], current.pop(slot)) for slot in sorted(leaving, key=_inside_first)]
    done.deleted = sum(1 for change in changes if (change.table, change.record.key) not in kept)
    replaced = len(changes) - done.deleted
    for slot in sorted(kept, key=_inside_first, reverse=True):
        before = current.get(slot)
        if before is not None and before.raw == kept[slot].raw:
            done.unchanged += 1
            continue
        kind = ADDED if before is None else MODIFIED
        changes.append(Change(slot[0], kind, kept[slot].at(store.reserve()), before))
        done.added += before is None
        done.changed += before is not None
    # One that has another uid now goes and comes back, as watchers see it; to a person it has changed.
    done.added -= replaced
    done.changed += replaced
    return changes


def _deletion(store: Store, table: str, record: Record) -> Change:
    revision = store.reserve()
    document = record.document()
    document["metadata"]["resourceVersion"] = str(revision)
    return Change(table, DELETED, Record(record.key, revision, msgspec.json.encode(document)), record)


def _inside_first(slot: tuple[str, str]) -> tuple[int, tuple[str, str]]:
    """Objects, then the namespaces that they are in, then the definitions of their kinds."""
    return (2 if slot[0] == CRDS else 1 if slot[0] == NAMESPACES else 0, slot)

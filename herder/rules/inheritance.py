"""How labels and annotations reach an object that is there already: what is given is written, what is no longer given goes, what
people added stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.inheritance import Applied, applied, applied_of, is_ours, note_of
from herder.api.meta import Identified
from herder.rules.plans import Document

Changes = dict[str, str | None]


class Given(msgspec.Struct, frozen=True):
    """What an object should have from who gives it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    eviction_strategy: str | None = None

    @property
    def record(self) -> Applied:
        return applied(self.labels, self.annotations, self.eviction_strategy is not None)


def metadata_changes(thing: Identified, given: Given) -> tuple[Changes, Changes]:
    """Of its labels and of its annotations, with the record of what was given."""
    before = applied_of(thing.annotations)
    notes = _changes(given.annotations, thing.annotations, before.annotations)
    if before != given.record:
        notes[labels.LAST_APPLIED] = note_of(given.record)
    return _changes(given.labels, thing.labels, before.labels), notes


def _changes(given: Mapping[str, str], there: Mapping[str, str], before: Iterable[str]) -> Changes:
    written: Changes = {name: value for name, value in given.items() if there.get(name) != value}
    return written | {name: None for name in before if name in there and name not in given and not is_ours(name)}


def metadata_patch(label_changes: Mapping[str, str | None], annotation_changes: Mapping[str, str | None]) -> Document:
    """A merge patch, without what does not change; {} where nothing does."""
    changes = {"labels": dict(label_changes), "annotations": dict(annotation_changes)}
    metadata = {name: change for name, change in changes.items() if change}
    return {"metadata": metadata} if metadata else {}

"""What all plans share: events that tell people what was done, and conditions that keep the time of their last change."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from herder.api import reasons
from herder.api.meta import Condition

Document = dict[str, Any]


class Event(msgspec.Struct, frozen=True):
    """Recorded on the object that the plan is about, once the plan is carried out."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Delete(msgspec.Struct, frozen=True):
    """One object, by name and identity: another one of that name is left alone."""

    name: str
    uid: str
    # 0: at once, without waiting for the node to confirm it.
    grace_period_seconds: int | None = None


def moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def text_of(time: datetime.datetime) -> str:
    """As Kubernetes writes it: whole seconds."""
    return f"{time.astimezone(datetime.UTC).isoformat(timespec='seconds')[:19]}Z"


def condition(kind: str, holds: bool | None, reason: str, message: str = "") -> Document:
    status = "Unknown" if holds is None else "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def since(wanted: Iterable[Document], known: Iterable[Condition] | None, now: float) -> list[Document]:
    """The conditions with the time since when each has the status that it has."""
    before = {one.type: one for one in known or ()}
    dated: list[Document] = []
    for one in wanted:
        old = before.get(one["type"])
        kept = old.last_transition_time if old is not None and old.status == one["status"] else None
        dated.append({**one, "lastTransitionTime": text_of(kept or moment(now))})
    return dated


def find(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    return next((one for one in conditions or () if one.type == kind), None)


def failing(conditions: Iterable[Condition] | None) -> Condition | None:
    """Why the object's reconcile fails again and again, where it does; the kit says so, not the object's own controller."""
    found = find(conditions, reasons.SYNCHRONIZED)
    return found if found is not None and found.status == "False" else None


def without_nothing(document: Document) -> Document:
    """What has no value is left out: under server-side apply that takes it away."""
    return {name: value for name, value in document.items() if value is not None}


def plain(view: msgspec.Struct | None) -> Document | None:
    """A view as a document again, without the fields that it does not have."""
    return None if view is None else _stripped(msgspec.to_builtins(view))


def _stripped(value: Any) -> Any:
    """Tuples become lists, as they are when they are read again: else nothing that has one would ever be as it is wanted."""
    if isinstance(value, dict):
        return {name: _stripped(one) for name, one in value.items() if one is not None}
    return [_stripped(one) for one in value] if isinstance(value, list | tuple) else value

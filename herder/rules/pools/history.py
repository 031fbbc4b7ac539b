"""The revisions of a pool's template, who has which, and what each changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from herder.api.problems import shortened
from herder.rules.plans import Document
from herder.rules.pools.member import Member
from herder.rules.pools.revisions import Revision, content_of

# A longer value is not shown: what counts is that it is another one.
LONGEST_VALUE = 40
_NOTHING = object()


class RevisionRow(msgspec.Struct, frozen=True, rename="camel"):
    number: int
    name: str
    created: str
    # It is the template of now; it was the last that was rolled out in full.
    wanted: bool
    current: bool
    # Names of those that have it.
    machines: tuple[str, ...]
    # Since the one before; empty for the first.
    changes: tuple[str, ...]


class PoolHistory(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    revisions: tuple[RevisionRow, ...]


def history_rows(
    known: Iterable[Revision], created: Mapping[str, str], members: Sequence[Member], wanted: str, current: str
) -> tuple[RevisionRow, ...]:
    """The oldest first. `created`: when each was made, by name."""
    rows: list[RevisionRow] = []
    before: Revision | None = None
    for one in sorted(known, key=lambda one: (one.number, one.name)):
        rows.append(
            RevisionRow(
                number=one.number,
                name=one.name,
                created=created.get(one.name, ""),
                wanted=one.name == wanted,
                current=one.name == current,
                machines=tuple(member.name for member in members if (member.instance_revision or member.revision) == one.name),
                changes=changes(before, one) if before is not None else (),
            )
        )
        before = one
    return tuple(rows)


def changes(before: Revision, after: Revision) -> tuple[str, ...]:
    """`path: old → new` for each field, with paths as they stand below the pool's spec."""
    old = content_of(before.template, before.name_generation)["spec"]
    new = content_of(after.template, after.name_generation)["spec"]
    return tuple(_differences(old, new, ""))


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{place}]")
    else:
        yield f"{path}: {_shown(old)} → {_shown(new)}"


def _of_objects(old: Document, new: Document, path: str) -> Iterator[str]:
    for name in [*old, *(name for name in new if name not in old)]:
        here = f"{path}.{name}" if path else name
        yield from _differences(old.get(name, _NOTHING), new.get(name, _NOTHING), here)


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return "…" if len(text) > LONGEST_VALUE else shortened(text)

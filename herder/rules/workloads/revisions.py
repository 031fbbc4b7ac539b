"""Templates that the pods of a StatefulSet were made of: each is kept once, as a ControllerRevision that `kubectl rollout history`
and `undo` read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from herder.api.builtin.semantics import same
from herder.api.core import ControllerRevision, StatefulSet
from herder.api.core.pods import PodTemplateSpec
from herder.api.world import SUFFIX_ALPHABET
from herder.rules.plans import Delete, Document
from herder.rules.workloads.claiming import controller_reference

HASH = "controller.kubernetes.io/hash"
# As Kubernetes cuts it, so that the name with its hash is one.
LONGEST_PREFIX = 223
_DIRECTIVE = "$patch"
_MOST = 2**63 - 1


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    template: Document
    number: int = 0
    uid: str = ""
    created: float = 0.0


class RevisionPlan(msgspec.Struct, frozen=True):
    # That of the template as it is now. None: it has yet to be made, with this number.
    update: Revision | None
    number: int
    # Whether one that people went back to is to be the newest again.
    renumber: bool = False


def revision_of(view: ControllerRevision) -> Revision | None:
    """None for what is not as we write it: whoever may write revisions may have put anything into one."""
    template = _template_in(view.data)
    if template is None:
        return None
    created = view.metadata.creation_timestamp
    return Revision(
        name=view.name,
        template=template,
        number=view.revision,
        uid=view.uid,
        created=created.timestamp() if created is not None else 0.0,
    )


def _template_in(data: Any) -> Document | None:
    spec: Any = data.get("spec") if isinstance(data, dict) else None
    template: Any = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        return None
    return {name: value for name, value in template.items() if name != _DIRECTIVE}


def oldest_first(revisions: Iterable[Revision]) -> list[Revision]:
    return sorted(revisions, key=lambda one: (one.number, one.created, one.name))


def plan_revision(template: Document, revisions: Sequence[Revision]) -> RevisionPlan:
    known = oldest_first(revisions)
    newest = known[-1] if known else None
    number = min(newest.number + 1, _MOST) if newest is not None else 1
    if newest is not None and same(newest.template, template):
        return RevisionPlan(newest, newest.number)
    found = next((one for one in reversed(known) if same(one.template, template)), None)
    return RevisionPlan(found, number, renumber=found is not None)


def current_revision(stateful_set: StatefulSet, revisions: Iterable[Revision], update: Revision) -> Revision:
    """The one that the status names, as long as it is there; else there is no past."""
    name = stateful_set.status.current_revision
    return next((one for one in revisions if one.name == name and _is_template(one.template)), update)


def _is_template(template: Document) -> bool:
    try:
        msgspec.convert(template, type=PodTemplateSpec)
    except msgspec.ValidationError:
        return False
    return True


def revision_hash(template: Document, collisions: int) -> str:
    """Equal for equal templates. It looks like that of Kubernetes, but is another: theirs is of how Go writes the template."""
    written = msgspec.json.encode([template, collisions], order="deterministic")
    number = int.from_bytes(hashlib.sha256(written).digest()[:4])
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(number))


def revision_document(stateful_set: StatefulSet, template: Document, number: int, collisions: int) -> Document:
    ending = revision_hash(template, collisions)
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return {
        "metadata": {
            # It follows from the template: made twice, it is one.
            "name": f"{stateful_set.name[:LONGEST_PREFIX]}-{ending}",
            "namespace": stateful_set.namespace,
            "labels": {**labels, HASH: ending},
            "annotations": stateful_set.annotations,
            "ownerReferences": [controller_reference(stateful_set, "apps/v1", "StatefulSet")],
        },
        # A strategic patch, which `kubectl rollout undo` sends as it is.
        "data": {"spec": {"template": {**template, _DIRECTIVE: "replace"}}},
        "revision": number,
    }


def is_same_revision(found: ControllerRevision, stateful_set: StatefulSet, template: Document) -> bool:
    """Whether a revision of the name that we wanted to give is the one that we wanted to make."""
    return found.controller_uid == stateful_set.uid and same(_template_in(found.data), template)


def to_forget(stateful_set: StatefulSet, revisions: Iterable[Revision], used: Collection[str]) -> tuple[Delete, ...]:
    """All that nobody uses but the latest so many."""
    limit = stateful_set.spec.revision_history_limit
    unused = [one for one in oldest_first(revisions) if one.name not in used]
    if limit is None or limit < 0:
        return ()
    return tuple(Delete(one.name, one.uid) for one in unused[: max(0, len(unused) - limit)])

"""Revisions of a pool's template: each is kept once, as a ControllerRevision whose name follows from its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from herder.api import defaults, labels, registry
from herder.api.core import ControllerRevision
from herder.api.kinds import VirtualMachinePool
from herder.api.reading import part
from herder.rules.machines.children import template_hash
from herder.rules.plans import Delete, Document
from herder.rules.pools.references import instance_spec

_HASH = 10
# Of the names that one content may have had: more than ever happen by chance.
MOST_COLLISIONS = 8


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A template, and which of its names get the machine's number: all that machines of this revision are made of."""

    name: str
    template: Document
    name_generation: Document
    # Equal for templates between which no instance has to be restarted.
    instance_key: str
    uid: str = ""
    resource_version: str = ""
    # Grows with each rollout; a revision that people went back to is the newest again.
    number: int = 0


def content_of(template: Document, name_generation: Document) -> Document:
    return {"spec": {"template": template, **({"nameGeneration": name_generation} if name_generation else {})}}


def revision_name(pool: str, content: Document, collisions: int) -> str:
    """Equal for equal content, whatever the order of its fields."""
    written = msgspec.json.encode([content, collisions] if collisions else content, order="deterministic")
    return f"{pool}-{hashlib.sha256(written).hexdigest()[:_HASH]}"


def revision_of(name: str, content: Document, *, uid: str = "", resource_version: str = "", number: int = 0) -> Revision:
    template, name_generation = part(content, "spec", "template"), part(content, "spec", "nameGeneration")
    # As one and the same machine would have it: names may change with the flags, or with the DataVolumes beside it.
    instance = {**part(template, "spec", "template"), "spec": instance_spec(template, name_generation, 0)}
    return Revision(
        name=name,
        template=template,
        name_generation=name_generation,
        instance_key=template_hash({"spec": {"template": instance}}),
        uid=uid,
        resource_version=resource_version,
        number=number,
    )


def stored_revision(stored: ControllerRevision) -> Revision:
    content = stored.data if isinstance(stored.data, dict) else {}
    return revision_of(
        stored.name,
        content,
        uid=stored.uid,
        resource_version=stored.metadata.resource_version or "",
        number=stored.revision,
    )


def wanted_revision(pool: VirtualMachinePool, template: Document, name_generation: Document) -> Revision:
    """That of the template as it is now."""
    content = content_of(template, name_generation)
    collisions = (pool.status.collision_count if pool.status else None) or 0
    return revision_of(revision_name(pool.name, content, collisions), content)


def is_genuine(pool: VirtualMachinePool, revision: Revision) -> bool:
    """Its name follows from its content: nobody has put another template under the name of one that was judged."""
    return revision.name in _names(pool, content_of(revision.template, revision.name_generation))


def known_as(pool: VirtualMachinePool, wanted: Revision, known: Mapping[str, Revision]) -> Revision | None:
    """The stored revision of this content: under its name, or under the one that it had before the name of another was taken."""
    content = content_of(wanted.template, wanted.name_generation)
    found = (known.get(name) for name in _names(pool, content))
    return next((one for one in found if one is not None and same_content(one, wanted)), None)


def _names(pool: VirtualMachinePool, content: Document) -> list[str]:
    """All that this content may have, that of today first."""
    collisions = (pool.status.collision_count if pool.status else None) or 0
    return [revision_name(pool.name, content, times) for times in (collisions, *range(min(collisions, MOST_COLLISIONS)))]


def same_content(one: Revision, other: Revision) -> bool:
    return one.template == other.template and one.name_generation == other.name_generation


def next_number(known: Iterable[Revision]) -> int:
    return max((one.number for one in known), default=0) + 1


def revision_document(pool: VirtualMachinePool, revision: Revision, number: int) -> Document:
    return {
        "metadata": {
            "name": revision.name,
            "namespace": pool.namespace,
            "labels": {labels.POOL: pool.name},
            "ownerReferences": [
                {
                    "apiVersion": registry.POOL.api_version,
                    "kind": registry.POOL.kind,
                    "name": pool.name,
                    "uid": pool.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": content_of(revision.template, revision.name_generation),
        "revision": number,
    }


def to_forget(
    pool: VirtualMachinePool, known: Sequence[Revision], used: Mapping[str, object] | frozenset[str]
) -> tuple[Delete, ...]:
    """All that nobody uses but the latest so many."""
    limit = pool.spec.revision_history_limit
    kept = defaults.REVISION_HISTORY_LIMIT if limit is None else limit
    unused = sorted((one for one in known if one.name not in used), key=lambda one: (one.number, one.name))
    return tuple(Delete(one.name, one.uid) for one in unused[: max(0, len(unused) - kept)])

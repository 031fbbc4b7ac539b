"""What a changed template does to a machine's running instance without a restart: labels, annotations and eviction strategy."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.inheritance import applied_of
from herder.api.kinds import VirtualMachineInstance
from herder.api.reading import part, text
from herder.rules.inheritance import metadata_changes, metadata_patch
from herder.rules.machines.children import given_by, hash_by_earlier_versions, template_hash
from herder.rules.plans import Document


class Origin(msgspec.Struct, frozen=True):
    """How the template that an instance was made from compares with its machine's."""

    # But for what needs no restart.
    is_template: bool = False
    restart_required: bool = False
    # The template's, where the instance carries the one of an earlier version.
    new_hash: str | None = None


UNKNOWN = Origin()


def origin_of(machine: Document, instance: VirtualMachineInstance) -> Origin:
    made_from = instance.annotations.get(labels.TEMPLATE_HASH)
    if made_from is None:
        return UNKNOWN
    now = template_hash(machine)
    if made_from == now:
        return Origin(is_template=True)
    if made_from == hash_by_earlier_versions(machine):
        return Origin(is_template=True, new_hash=now)
    return Origin(restart_required=True)


def instance_patch(machine: Document, instance: VirtualMachineInstance, origin: Origin) -> Document | None:
    """What is to be written into an instance that runs; None where it has all that its template gives."""
    given = given_by(machine)
    label_changes, annotation_changes = metadata_changes(instance, given)
    if origin.is_template or _has_it_as_it_is(machine, instance):
        label_changes |= _revision(machine, instance)
    if origin.new_hash is not None:
        # Once labels change as well, nobody could tell any more that nothing else did.
        annotation_changes[labels.TEMPLATE_HASH] = origin.new_hash
    patch = metadata_patch(label_changes, annotation_changes)
    strategy, there = given.eviction_strategy, instance.spec.eviction_strategy
    if strategy != there and (strategy is not None or applied_of(instance.annotations).eviction_strategy):
        patch["spec"] = {"evictionStrategy": strategy}
    return patch or None


def _revision(machine: Document, instance: VirtualMachineInstance) -> dict[str, str | None]:
    """Only where no restart is pending for it: an instance never carries a revision that it does not run."""
    wanted = text(part(machine, "spec", "template", "metadata", "labels"), labels.POOL_REVISION) or None
    return {} if instance.labels.get(labels.POOL_REVISION) == wanted else {labels.POOL_REVISION: wanted}


def _has_it_as_it_is(machine: Document, instance: VirtualMachineInstance) -> bool:
    """Its pool, which knows the revision of before, says so: what waits for a restart is what somebody changed by hand."""
    return text(part(machine, "metadata", "annotations"), labels.UPDATED_IN_PLACE) == instance.uid

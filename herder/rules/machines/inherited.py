"""What a changed template does to a machine's running instance without a restart: labels, annotations and eviction strategy."""

from __future__ import annotations

from herder.api import labels
from herder.api.inheritance import applied_of
from herder.api.kinds import VirtualMachineInstance
from herder.api.reading import part, text
from herder.rules.inheritance import metadata_changes, metadata_patch
from herder.rules.machines.children import given_by, is_made_from_template, template_hash
from herder.rules.plans import Document


def instance_patch(machine: Document, instance: VirtualMachineInstance) -> Document | None:
    """What is to be written into an instance that runs; None where it has all that its template gives."""
    given = given_by(machine)
    label_changes, annotation_changes = metadata_changes(instance, given)
    made_from = instance.annotations.get(labels.TEMPLATE_HASH)
    if made_from is not None and is_made_from_template(made_from, machine):
        label_changes |= _revision(machine, instance)
        if made_from != template_hash(machine):
            # By an earlier version. Once labels change as well, nobody could tell any more that nothing else did.
            annotation_changes[labels.TEMPLATE_HASH] = template_hash(machine)
    patch = metadata_patch(label_changes, annotation_changes)
    strategy, there = given.eviction_strategy, instance.spec.eviction_strategy
    if strategy != there and (strategy is not None or applied_of(instance.annotations).eviction_strategy):
        patch["spec"] = {"evictionStrategy": strategy}
    return patch or None


def _revision(machine: Document, instance: VirtualMachineInstance) -> dict[str, str | None]:
    """Only where no restart is pending: an instance never carries a revision that it was not made from."""
    wanted = text(part(machine, "spec", "template", "metadata", "labels"), labels.POOL_REVISION) or None
    return {} if instance.labels.get(labels.POOL_REVISION) == wanted else {labels.POOL_REVISION: wanted}

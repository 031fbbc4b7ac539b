"""What an object may not be because of others that are there: asked once it has no fault of its own.

The embedded engine looks the others up in its store, in the same moment in which it decides; the webhook asks its API server, so
two who come together may both be let in there, and the controllers decide again. The words are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.kinds import MigrationPolicy, VirtualMachineInstance, VirtualMachineInstanceMigration, VirtualMachinePool
from herder.api.problems import DUPLICATE, NOT_FOUND, Problem, forbidden, invalid, shown
from herder.api.reading import part, text
from herder.rules.plans import find
from herder.rules.policies.order import pairs_of

VMI_NAME = "spec.vmiName"
ENDED = ("Succeeded", "Failed")


def migration_problems(
    migration: VirtualMachineInstanceMigration,
    instance: VirtualMachineInstance | None,
    others: Iterable[VirtualMachineInstanceMigration],
) -> list[Problem]:
    """Of a new migration. `others`: migrations of its namespace, of whatever instance."""
    name = migration.spec.vmi_name
    if instance is None:
        said = "there is no VirtualMachineInstance of this name in the namespace; only what runs can be moved"
        return [Problem(VMI_NAME, NOT_FOUND, f"Not found: {shown(name)}: {said}")]
    return not_movable(instance) or _already_moving(migration, others)


def policy_problems(policy: MigrationPolicy, old: MigrationPolicy | None, same: Sequence[str]) -> list[Problem]:
    """`same`: the policies that have these selectors, too. One that has had them before can still be changed otherwise."""
    if not same or (old is not None and _pairs(old) == _pairs(policy)):
        return []
    selectors = policy.spec.selectors
    written = {
        "namespaceSelector": selectors.namespace_selector if selectors else None,
        "virtualMachineInstanceSelector": selectors.virtual_machine_instance_selector if selectors else None,
    }
    value = shown({name: pairs for name, pairs in written.items() if pairs})
    said = f"MigrationPolicy {same[0]} has the same selectors, and only one of the two could apply"
    return [Problem("spec.selectors", DUPLICATE, f"Duplicate value: {value}: {said}: add a label, or change {same[0]}")]


def volume_names(pool: VirtualMachinePool) -> tuple[str, ...]:
    """Names of its dataVolumeTemplates, before any number is added."""
    return tuple(template.metadata.name for template in pool.spec.template.spec.data_volume_templates or ())


def _volume_names_in(document: dict[str, Any]) -> tuple[str, ...]:
    """Of a pool that may have been stored where nobody asked us, and is now mended: none if it cannot be read."""
    try:
        return volume_names(msgspec.convert(document, VirtualMachinePool))
    except msgspec.ValidationError:
        return ()


def pool_advice(pool: dict[str, Any], old: dict[str, Any] | None, pools_with: Callable[[str], Iterable[str]]) -> list[str]:
    """What is let in, and comes into conflict with another pool. `pools_with`: the pools of the namespace that have a
    dataVolumeTemplate of a name. Said once, when the name is new."""
    before = _volume_names_in(old) if old is not None else ()
    own = text(part(pool, "metadata"), "name")
    advice: list[str] = []
    for index, name in enumerate(_volume_names_in(pool)):
        others = sorted(other for other in pools_with(name) if other != own) if name not in before else []
        if others:
            place = f"spec.template.spec.dataVolumeTemplates[{index}].metadata.name"
            said = (
                f"VirtualMachinePool {others[0]} has a dataVolumeTemplate {name}, too, and {name}-1 can belong to one machine only"
            )
            advice.append(f"{place}: {said}: give it another name")
    return advice


def is_unfinished(migration: VirtualMachineInstanceMigration) -> bool:
    return migration.status is None or migration.status.phase not in ENDED


def not_movable(instance: VirtualMachineInstance) -> list[Problem]:
    """Why no migration of it would be let in, wherever it should go."""
    status = instance.status
    phase = status.phase if status is not None else None
    if phase in ENDED:
        return [invalid(VMI_NAME, instance.name, f"the instance has ended (phase {phase}): only what runs can be moved")]
    if instance.being_deleted:
        return [invalid(VMI_NAME, instance.name, "the instance is being deleted: only what runs can be moved")]
    migratable = find(status.conditions if status is not None else None, reasons.LIVE_MIGRATABLE)
    if migratable is not None and migratable.status == "False":
        why = ": ".join(part for part in (migratable.reason, migratable.message) if part)
        return [invalid(VMI_NAME, instance.name, f"the instance cannot be migrated: {why}")]
    return []


def _already_moving(migration: VirtualMachineInstanceMigration, others: Iterable[VirtualMachineInstanceMigration]) -> list[Problem]:
    name = migration.spec.vmi_name
    moving = [one for one in others if one.spec.vmi_name == name and one.name != migration.name and is_unfinished(one)]
    if not moving:
        return []
    other = min(moving, key=lambda one: one.name)
    phase = (other.status.phase if other.status is not None else None) or "Pending"
    advice = "it is being cancelled: wait until it is gone" if other.being_deleted else "wait for it, or delete it to cancel it"
    return [forbidden(VMI_NAME, f"migration {other.name} of {name} is not finished (phase {phase}): {advice}")]


def _pairs(policy: MigrationPolicy) -> frozenset[tuple[str, ...]] | None:
    try:
        return pairs_of(policy)
    except ValueError:
        return None

"""The pod that a guest is moved into: as its launcher, but it waits for the guest, and only where this migration may go."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.guest import MigrationOrder, Started, report_of
from herder.api.kinds import VirtualMachineInstance
from herder.rules.instances.launcher import launcher_pod, pod_name
from herder.rules.migration.snapshot import MigrationSnapshot
from herder.rules.migration.where import affinity_of_target
from herder.rules.plans import Document, plain


def target_name(instance: VirtualMachineInstance, migration_uid: str) -> str:
    """Follows from both: whoever makes it twice makes the same one."""
    return f"{pod_name(instance.name, instance.uid)}-{migration_uid[:8]}"


def target_pod(snapshot: MigrationSnapshot) -> Document:
    migration, instance, status = snapshot.migration, snapshot.instance, snapshot.migration.status
    assert instance is not None and status is not None and status.effective_settings is not None, "written when it began"
    started, source = started_as(snapshot), status.source_node or ""
    document = launcher_pod(snapshot.instance_document, instance.spec, started)
    own: dict[str, Any] = document["metadata"]
    own["name"] = status.target_pod
    own["labels"][labels.MIGRATION_UID] = migration.uid
    order = MigrationOrder(migration=migration.uid, settings=status.effective_settings, source_node=source)
    own["annotations"][labels.MIGRATION] = msgspec.json.encode(plain(order)).decode()
    own_rules = document["spec"].get("affinity")
    document["spec"]["affinity"] = affinity_of_target(own_rules, migration.spec, started, source, snapshot.crowded)
    return document


def started_as(snapshot: MigrationSnapshot) -> Started:
    """What the guest is: the target has to be the same."""
    report = report_of(snapshot.source) if snapshot.source is not None else None
    return (report.started if report is not None else None) or Started()

"""`herder explain policy` and `herder explain target`: what a migration would do in the cluster as it is, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.kinds import VirtualMachineInstance
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.placement import gather
from herder.cli.tables import table
from herder.kube.client import Client
from herder.kube.errors import NotFound
from herder.kube.resources import INSTANCES, NAMESPACES, POLICIES, SETTINGS, Key
from herder.rules.configuration import NAME, NAMESPACE, ClusterMigrationSettings, cluster_migration_settings, effective, sources
from herder.rules.migration.where import asked_about
from herder.rules.placement.gather import snapshot_of
from herder.rules.plans import find
from herder.rules.policies import Chosen, Policies, PolicyRow
from herder.rules.targets import Added, TargetExplanation, TargetRow, written_term
from herder.rules.targets import explain_target as explained

Show = Callable[[str], None]
KINDS = ("vmi", "vm", "virtualmachineinstance", "virtualmachine")


async def explain_policy(client: Client, name: str, namespace: str, show: Show) -> None:
    instance, _ = await _instance(client, name, namespace)
    around = (await client.get(NAMESPACES, Key("", namespace))).labels
    policies = Policies((await client.list(POLICIES)).items)
    cluster = cluster_migration_settings(await client.find(SETTINGS, Key(NAMESPACE, NAME)))
    show(f"instance {namespace}/{instance.name}: {_told(instance.labels)}")
    show(f"namespace {namespace}: {_told(around)}")
    chosen = policies.chosen(instance.labels, around)
    show(f"{chosen.why[0].upper()}{chosen.why[1:]}." if chosen.name is None else f"Policy {chosen.why}.")
    rows = policies.explain(instance.labels, around)
    for line in (*_policy_lines(rows), "", *setting_lines(cluster, chosen)):
        show(line)


async def explain_target(client: Client, name: str, namespace: str, wanted: tuple[str, str], show: Show) -> None:
    try:
        term = written_term(*wanted)
    except ValueError as error:
        raise Refusal(str(error), WRONG_USE) from None
    instance, written = await _instance(client, name, namespace)
    cluster = cluster_migration_settings(await client.find(SETTINGS, Key(NAMESPACE, NAME)))
    found = explained(asked_about(instance, written, Added(term)), snapshot_of(await gather(client)))
    for line in target_lines(instance, found, cluster):
        show(line)


async def _instance(client: Client, asked: str, namespace: str) -> tuple[VirtualMachineInstance, dict[str, Any]]:
    """`NAME`, `vmi/NAME` or `vm/NAME`: a machine's instance has its name. As a view, and as it is written."""
    kind, slash, name = asked.partition("/")
    if slash and (kind not in KINDS or not name):
        raise Refusal(f"{asked!r} is not NAME, vmi/NAME or vm/NAME", WRONG_USE)
    name = name if slash else asked
    try:
        raw = await client.get_raw(INSTANCES, Key(namespace, name))
    except NotFound:
        why = "a machine has one while it is started"
        raise Refusal(f"there is no VirtualMachineInstance {name!r} in namespace {namespace!r}: {why}") from None
    return msgspec.json.decode(raw, type=VirtualMachineInstance), msgspec.json.decode(raw)


def _told(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


def _policy_lines(rows: list[PolicyRow]) -> list[str]:
    if not rows:
        return []
    cells = [(row.name, "yes" if row.applies else "no", str(row.labels), row.why) for row in rows]
    return table([("POLICY", "APPLIES", "LABELS", "WHY"), *cells])


def setting_lines(cluster: ClusterMigrationSettings, chosen: Chosen) -> list[str]:
    """What a migration would run with, and who decided it."""
    settings = effective(cluster, chosen.settings)
    whose = sources(cluster, chosen.name or "", chosen.settings)
    names = dict(zip(settings.__struct_fields__, settings.__struct_encode_fields__, strict=True))
    cells = [(shown, _value(getattr(settings, field)), whose[field]) for field, shown in names.items()]
    return table([("SETTING", "VALUE", "FROM"), *cells])


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def target_lines(instance: VirtualMachineInstance, found: TargetExplanation, cluster: ClusterMigrationSettings) -> list[str]:
    about = f"{instance.namespace}/{instance.name}"
    status = instance.status
    on = status.node_name if status is not None else None
    lines = [f"instance {about} runs on {on}." if on else f"instance {about} runs nowhere yet."]
    migratable = find(status.conditions if status is not None else None, reasons.LIVE_MIGRATABLE)
    if migratable is not None and migratable.status == "False":
        lines.append(f"It cannot be migrated: {migratable.reason}: {migratable.message}")
    return [*lines, *_outcome(found, cluster), *table([("NODE", "FITS", "SCORE", "WHY NOT"), *map(_cells, found.rows)])]


def _outcome(found: TargetExplanation, cluster: ClusterMigrationSettings) -> list[str]:
    if found.node:
        return [f"It would go to {found.node}."]
    if found.impossible is not None:
        return [f"A migration would fail at once: {found.impossible.reason}: {found.impossible.message}"]
    wait = f"A migration would wait, at most {cluster.unschedulable_pending_timeout} s"
    return [f"{wait}: {found.summary}"]


def _cells(row: TargetRow) -> tuple[str, ...]:
    return (row.node, "yes" if row.fits else "no", f"{row.score:.1f}" if row.score is not None else "", row.why)

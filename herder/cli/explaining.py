"""`herder explain policy` and `herder explain target`: what a migration would do in the cluster as it is, and why.

Asking and showing are apart: `explain_*` return a value, and `*_text` make lines and tables of it. What the person may not read is
asked by a MigrationReview, which answers with the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from herder.api.kinds import VirtualMachineInstance
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.placement import gather
from herder.cli.reviews import reviewed
from herder.cli.tables import Part, Table, in_few_words
from herder.kube.client import Client
from herder.kube.errors import Forbidden, NotFound
from herder.kube.resources import INSTANCES, NAMESPACES, POLICIES, SETTINGS, Key, key_of
from herder.rules import policies as policy_rules
from herder.rules.configuration import NAME, NAMESPACE, ClusterMigrationSettings, cluster_migration_settings
from herder.rules.migration.explain import MigrationExplanation, explain_migration
from herder.rules.placement.gather import snapshot_of
from herder.rules.policies import Policies, PolicyExplanation
from herder.rules.reviews import explained_migration, explained_policy
from herder.rules.targets import Added, TargetRow, written_term

Document = dict[str, Any]
KINDS = ("vmi", "vm", "virtualmachineinstance", "virtualmachine")


async def explain_policy(client: Client, name: str, namespace: str) -> PolicyExplanation:
    instance, _ = await _instance(client, name, namespace)
    around: Mapping[str, str] | None = None
    try:
        around = (await client.get(NAMESPACES, Key("", namespace))).labels
        policies = Policies((await client.list(POLICIES)).items)
        return policy_rules.explain_policy(instance, around, policies, await _cluster_settings(client))
    except Forbidden as error:
        return explained_policy(instance, around, await reviewed(client, key_of(instance), {}, error))


async def explain_target(client: Client, name: str, namespace: str, wanted: tuple[str, str]) -> MigrationExplanation:
    """`wanted` is a node and a selector of nodes, of which at most one says something."""
    try:
        term = written_term(*wanted)
    except ValueError as error:
        raise Refusal(str(error), WRONG_USE) from None
    return await explain_wanted_migration(client, *await _instance(client, name, namespace), term)


async def explain_wanted_migration(
    client: Client, instance: VirtualMachineInstance, document: Document, term: Document
) -> MigrationExplanation:
    """What would become of a migration of the instance with this term: for every command that wants to know before it makes one.
    `document` is the instance as it is written."""
    try:
        cluster = await _cluster_settings(client)
        return explain_migration(instance, document, Added(term), snapshot_of(await gather(client)), cluster, detailed=True)
    except Forbidden as error:
        return explained_migration(instance, await reviewed(client, key_of(instance), term, error))


async def _cluster_settings(client: Client) -> ClusterMigrationSettings:
    return cluster_migration_settings(await client.find(SETTINGS, Key(NAMESPACE, NAME)))


async def _instance(client: Client, asked: str, namespace: str) -> tuple[VirtualMachineInstance, Document]:
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


def policy_text(found: PolicyExplanation) -> list[Part]:
    rows = [(row.name, "yes" if row.applies else "no", str(row.labels), row.why) for row in found.policies]
    settings = [(row.name, _value(row.value), row.source) for row in found.settings]
    around, others = found.namespace_labels, found.other_policies
    return [
        f"instance {found.namespace}/{found.name}: {_told(found.labels)}",
        *([f"namespace {found.namespace}: {_told(around)}"] if around is not None else []),
        f"{found.why[0].upper()}{found.why[1:]}." if found.policy is None else f"Policy {found.why}.",
        *([Table(("POLICY", "APPLIES", "LABELS", "WHY"), rows)] if rows else []),
        *([f"({others} more, which are not for this namespace or too many to be shown)"] if others else []),
        "",
        Table(("SETTING", "VALUE", "FROM"), settings),
    ]


def _told(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def target_text(found: MigrationExplanation) -> list[Part]:
    about = f"instance {found.namespace}/{found.name}"
    lines = [f"{about} runs on {found.node_name}." if found.node_name else f"{about} runs nowhere yet."]
    if found.not_migratable is not None:
        lines.append(f"It cannot be migrated: {found.not_migratable.reason}: {found.not_migratable.message}")
    others = [f"({found.other_nodes} more nodes, which are not shown)"] if found.other_nodes else []
    return [*lines, _outcome(found), _nodes(found.nodes), *others]


def _outcome(found: MigrationExplanation) -> str:
    if found.target_node:
        return f"It would go to {found.target_node}."
    if found.impossible is not None:
        return f"A migration would fail at once: {found.impossible.reason}: {found.impossible.message}"
    return f"A migration would wait, at most {found.pending_timeout_seconds} s: {found.summary}"


def _nodes(rows: tuple[TargetRow, ...]) -> Table:
    """Scores follow from how busy nodes are, which a review does not tell; its rows are in their order all the same."""
    cells = [_cells(row) for row in rows]
    if any(row.fits and row.score is None for row in rows):
        return Table(("NODE", "FITS", "WHY NOT"), [(node, fits, why) for node, fits, _, why in cells])
    return Table(("NODE", "FITS", "SCORE", "WHY NOT"), cells)


def _cells(row: TargetRow) -> tuple[str, ...]:
    return (row.node, "yes" if row.fits else "no", f"{row.score:.1f}" if row.score is not None else "", _why_not(row))


def _why_not(row: TargetRow) -> str:
    return f"{row.why} ({in_few_words(row.details)})" if row.details else row.why

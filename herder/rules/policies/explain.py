"""Which policies apply to one instance, and what a migration of it would run with: the value that `explain policy` shows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.kinds import VirtualMachineInstance
from herder.rules.configuration import ClusterMigrationSettings, effective, sources
from herder.rules.policies.index import Chosen, Policies, PolicyRow


class SettingRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    value: bool | int | str | None
    # Who decided it, for people: a policy, KubeVirt, or nobody.
    source: str


class PolicyExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    # None where these may not be read.
    namespace_labels: Mapping[str, str] | None
    # The one that applies; None where there is none.
    policy: str | None
    why: str
    policies: tuple[PolicyRow, ...]
    settings: tuple[SettingRow, ...]
    # Policies that are not among them.
    other_policies: int = 0


def explain_policy(
    instance: VirtualMachineInstance, namespace_labels: Mapping[str, str], policies: Policies, cluster: ClusterMigrationSettings
) -> PolicyExplanation:
    """All of them, for those who may read all of them."""
    return _explained(instance, namespace_labels, policies, cluster, policies.explain(instance.labels, namespace_labels))


def explain_policy_within(
    instance: VirtualMachineInstance,
    namespace_labels: Mapping[str, str],
    policies: Policies,
    cluster: ClusterMigrationSettings,
    most: int,
) -> PolicyExplanation:
    """The first `most` of those that could apply in the namespace, for those who may know of no other."""
    rows = policies.explain_within(instance.labels, namespace_labels, most)
    return _explained(instance, namespace_labels, policies, cluster, rows)


def _explained(
    instance: VirtualMachineInstance,
    namespace_labels: Mapping[str, str],
    policies: Policies,
    cluster: ClusterMigrationSettings,
    rows: list[PolicyRow],
) -> PolicyExplanation:
    chosen = policies.chosen(instance.labels, namespace_labels)
    return PolicyExplanation(
        namespace=instance.namespace,
        name=instance.name,
        labels=instance.labels,
        namespace_labels=namespace_labels,
        policy=chosen.name,
        why=chosen.why,
        policies=tuple(rows),
        settings=tuple(_settings(cluster, chosen)),
        other_policies=len(policies) - len(rows),
    )


def _settings(cluster: ClusterMigrationSettings, chosen: Chosen) -> list[SettingRow]:
    settings = effective(cluster, chosen.settings)
    whose = sources(cluster, chosen.name or "", chosen.settings)
    names = zip(settings.__struct_fields__, settings.__struct_encode_fields__, strict=True)
    return [SettingRow(written, getattr(settings, field), whose[field]) for field, written in names]

"""KubeVirt: the settings of the whole cluster. The one that counts is `kubevirt` in namespace `kubevirt`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from herder.api.kinds.base import Kind
from herder.api.kinds.instance import EvictionStrategy
from herder.api.kinds.migration_state import PolicySettings
from herder.api.meta import Condition
from herder.api.views import Bytes, Count, Rule, View, doc

# The one object that counts.
NAMESPACE = "kubevirt"
NAME = "kubevirt"
_BOTH_SPELLINGS = Rule(
    "!(has(self.preferedHostModelMigratabilityLevel) && has(self.preferredHostModelMigratabilityLevel))",
    "preferedHostModelMigratabilityLevel and preferredHostModelMigratabilityLevel are two spellings of one setting: write only one",
    reason="FieldValueForbidden",
)


class PreferredLevel(View, frozen=True, kw_only=True):
    """A level that is wished for, and how much."""

    level: Annotated[int, doc("Lowest level that is wished for, 0 to 100.", ge=0, le=100, format="int32")]
    # No default of the schema: that would write it into the spec.
    weight: Annotated[int, doc("How much the wish counts, 1 to 100. Default 1.", ge=1, le=100, format="int32")] | None = None


class MigrationConfiguration(PolicySettings, frozen=True, kw_only=True):
    """Settings of all migrations of the cluster."""

    RULES = (_BOTH_SPELLINGS,)

    parallel_migrations_per_cluster: (
        Annotated[int, doc("Migrations that may run at once in the cluster. Default 5.", ge=1, format="int32")] | None
    ) = None
    parallel_outbound_migrations_per_node: (
        Annotated[int, doc("Migrations that may leave one node at once. Default 2.", ge=1, format="int32")] | None
    ) = None
    parallel_inbound_migrations_per_node: (
        Annotated[int, doc("Migrations that may come to one node at once. Default 2.", ge=1, format="int32")] | None
    ) = None
    node_drain_taint_key: (
        Annotated[
            str,
            doc("Key of the taint that moves guests off a node. Default kubevirt.io/drain.", min_length=1, max_length=317),
        ]
        | None
    ) = None
    unschedulable_pending_timeout: (
        Annotated[Count, doc("Seconds that a target without a fitting node is waited for. Default 300.")] | None
    ) = None
    pending_timeout: (
        Annotated[Count, doc("Seconds that a target that does not start is waited for, for whatever reason. Default 900.")] | None
    ) = None
    require_host_model_migratability_level: (
        Annotated[
            int,
            doc(
                "Lowest host-model migratability level, 0 to 100, of the node on which a host-model guest is started. 0 asks for"
                " nothing; 100 is never reached, because a node does not count itself.",
                ge=0,
                le=100,
                format="int32",
            ),
        ]
        | None
    ) = None
    prefered_host_model_migratability_level: (
        Annotated[PreferredLevel, doc("Level that is preferred for the first start of a host-model guest.")] | None
    ) = None
    preferred_host_model_migratability_level: (
        Annotated[PreferredLevel, doc("The same as preferedHostModelMigratabilityLevel; only one of the two may be set.")] | None
    ) = None


class KubeVirtConfiguration(View, frozen=True, kw_only=True):
    """Settings of the cluster."""

    eviction_strategy: (
        Annotated[EvictionStrategy, doc("What an eviction does to a machine that does not say it itself. Default None.")] | None
    ) = None
    migrations: Annotated[MigrationConfiguration, doc("Settings of migrations.")] | None = None


class KubeVirtSpec(View, frozen=True, kw_only=True):
    """What the cluster is set to."""

    configuration: Annotated[KubeVirtConfiguration, doc("Settings.")] | None = None


class KubeVirtStatus(View, frozen=True, kw_only=True):
    """Whether the settings are in use, and what is in use."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: (
        Annotated[str, doc("Deployed where the settings are in use, Ignored where another object counts.", max_length=64)] | None
    ) = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why.", max_length=32768)] | None = None
    observed_version: Annotated[str, doc("Version of the program that uses them.", max_length=128)] | None = field(
        default=None, name="observedKubeVirtVersion"
    )
    configuration: (
        Annotated[KubeVirtConfiguration, doc("Settings in use: what is built in, overlaid by spec.configuration.")] | None
    ) = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc(
                "Available: whether the settings are in use. Degraded: whether some of them cannot be used.",
                max_length=64,
                list_keys=("type",),
            ),
        ]
        | None
    ) = None


class KubeVirt(Kind, frozen=True, kw_only=True):
    """The settings of the whole cluster: kubevirt in namespace kubevirt, and no other."""

    spec: Annotated[KubeVirtSpec, doc("What is wanted.")] | None = None
    status: Annotated[KubeVirtStatus, doc("What is.")] | None = None


def empty_settings() -> dict[str, Any]:
    """The object as it is made for people to edit. Defaults are not written into it: what is present wins over newer ones."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata, "spec": {}}

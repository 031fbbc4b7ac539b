"""The settings of the cluster: what the KubeVirt object says, over what is built in.

A function of the object, so that whoever holds it in a cache has the settings of this moment. A setting that is wrong is not used:
admission refuses it, but on a cluster without our webhook it may be there all the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import defaults
from herder.api.kinds.instance import EvictionStrategy
from herder.api.kinds.kubevirt import NAME as NAME  # for those who look the object up
from herder.api.kinds.kubevirt import NAMESPACE as NAMESPACE
from herder.api.kinds.kubevirt import KubeVirt, KubeVirtConfiguration, MigrationConfiguration, PreferredLevel
from herder.api.kinds.migration_state import PolicySettings
from herder.api.names import label_key
from herder.api.quantity import parse_quantity
from herder.api.validation.settings import refinable_problems
from herder.rules.migratability.starting import preferred_level, required_level

_OF_POLICIES = PolicySettings.__struct_fields__
_BUILT_IN = PolicySettings(
    allow_auto_converge=defaults.ALLOW_AUTO_CONVERGE,
    allow_post_copy=defaults.ALLOW_POST_COPY,
    # allow_workload_disruption is left open: it follows allow_post_copy, whoever sets that.
    bandwidth_per_migration=defaults.BANDWIDTH_PER_MIGRATION,
    completion_timeout_per_gib=defaults.COMPLETION_TIMEOUT_PER_GIB,
    progress_timeout=defaults.PROGRESS_TIMEOUT,
    max_downtime_ms=defaults.MAX_DOWNTIME_MS,
)
# What a schema lets pass and may be wrong all the same.
_JUDGED = {"bandwidth_per_migration": "bandwidthPerMigration", "max_downtime_ms": "maxDowntimeMs"}
BUILT_IN = "built in"
CLUSTER = "KubeVirt"


class ClusterMigrationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and timeouts, which nobody refines, and what a MigrationPolicy may refine."""

    parallel_per_cluster: int = defaults.PARALLEL_MIGRATIONS_PER_CLUSTER
    parallel_outbound_per_node: int = defaults.PARALLEL_OUTBOUND_MIGRATIONS_PER_NODE
    parallel_inbound_per_node: int = defaults.PARALLEL_INBOUND_MIGRATIONS_PER_NODE
    node_drain_taint_key: str = defaults.NODE_DRAIN_TAINT_KEY
    # Seconds.
    unschedulable_pending_timeout: int = defaults.UNSCHEDULABLE_PENDING_TIMEOUT
    pending_timeout: int = defaults.PENDING_TIMEOUT
    eviction_strategy: EvictionStrategy = defaults.EVICTION_STRATEGY
    # Every field has a value, but for allow_workload_disruption; ask `effective` for what a migration runs with.
    for_policies: PolicySettings = _BUILT_IN
    # Which of those were set by the KubeVirt object.
    set_by_cluster: frozenset[str] = frozenset()


def cluster_migration_settings(kubevirt: KubeVirt | None) -> ClusterMigrationSettings:
    given = _configuration(kubevirt)
    migrations = given.migrations or MigrationConfiguration()
    refined = _readable(migrations)
    limits = {
        "parallel_per_cluster": migrations.parallel_migrations_per_cluster,
        "parallel_outbound_per_node": migrations.parallel_outbound_migrations_per_node,
        "parallel_inbound_per_node": migrations.parallel_inbound_migrations_per_node,
        "node_drain_taint_key": _readable_key(migrations.node_drain_taint_key),
        "unschedulable_pending_timeout": migrations.unschedulable_pending_timeout,
        "pending_timeout": migrations.pending_timeout,
        "eviction_strategy": given.eviction_strategy,
    }
    return msgspec.structs.replace(
        ClusterMigrationSettings(for_policies=overlaid(_BUILT_IN, refined), set_by_cluster=frozenset(set_in(refined))),
        **{name: value for name, value in limits.items() if value is not None},
    )


def migration_configuration(kubevirt: KubeVirt | None) -> MigrationConfiguration | None:
    """As it is written."""
    return _configuration(kubevirt).migrations


def effective_configuration(kubevirt: KubeVirt | None) -> KubeVirtConfiguration:
    """Every setting with the value that is in use, as spec.configuration would say it."""
    cluster, written = cluster_migration_settings(kubevirt), migration_configuration(kubevirt)
    return KubeVirtConfiguration(
        eviction_strategy=cluster.eviction_strategy,
        migrations=MigrationConfiguration(
            **_values(effective(cluster)),
            parallel_migrations_per_cluster=cluster.parallel_per_cluster,
            parallel_outbound_migrations_per_node=cluster.parallel_outbound_per_node,
            parallel_inbound_migrations_per_node=cluster.parallel_inbound_per_node,
            node_drain_taint_key=cluster.node_drain_taint_key,
            unschedulable_pending_timeout=cluster.unschedulable_pending_timeout,
            pending_timeout=cluster.pending_timeout,
            require_host_model_migratability_level=required_level(written),
            prefered_host_model_migratability_level=_preferred(written),
        ),
    )


def effective(cluster: ClusterMigrationSettings, policy: PolicySettings | None = None) -> PolicySettings:
    """What a migration runs with: every field has a value. `policy` is the spec of the one that applies."""
    settings = overlaid(cluster.for_policies, _readable(policy)) if policy is not None else cluster.for_policies
    if settings.allow_workload_disruption is None:
        settings = msgspec.structs.replace(settings, allow_workload_disruption=settings.allow_post_copy)
    return settings


def sources(cluster: ClusterMigrationSettings, name: str = "", policy: PolicySettings | None = None) -> dict[str, str]:
    """Who decided each field, for people: the policy, KubeVirt, or nobody."""
    by_policy = set_in(_readable(policy)) if policy is not None else ()
    found: dict[str, str] = {}
    for field in _OF_POLICIES:
        of_cluster = CLUSTER if field in cluster.set_by_cluster else BUILT_IN
        found[field] = f"MigrationPolicy {name}" if field in by_policy else of_cluster
    if "allow_workload_disruption" not in {*by_policy, *cluster.set_by_cluster}:
        found["allow_workload_disruption"] = "as allowPostCopy"
    return found


def bandwidth_bytes(settings: PolicySettings) -> int:
    """Per second; 0 is without limit."""
    return parse_quantity(settings.bandwidth_per_migration or 0).value()


def overlaid(below: PolicySettings, above: PolicySettings) -> PolicySettings:
    """What is present wins, even where it is false or 0."""
    return PolicySettings(**{**_values(below), **{name: getattr(above, name) for name in set_in(above)}})


def set_in(settings: PolicySettings) -> tuple[str, ...]:
    return tuple(name for name in _OF_POLICIES if getattr(settings, name) is not None)


def _values(settings: PolicySettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in _OF_POLICIES}


def _readable(settings: PolicySettings) -> PolicySettings:
    """Without what is wrong, such as a bandwidth that is no amount: then that of the level below counts."""
    written = {json: value for name, json in _JUDGED.items() if (value := getattr(settings, name)) is not None}
    wrong = {problem.field for problem in refinable_problems(written, "spec")} if written else ()
    if not wrong:
        return settings
    return PolicySettings(**{**_values(settings), **{name: None for name, json in _JUDGED.items() if f"spec.{json}" in wrong}})


def _readable_key(key: str | None) -> str | None:
    """None for what can be no taint's key: no node could ever be drained by it."""
    return key if key is not None and not label_key(key) else None


def _preferred(written: MigrationConfiguration | None) -> PreferredLevel | None:
    wish = preferred_level(written)
    return PreferredLevel(level=wish.level, weight=wish.weight or defaults.PREFERRED_LEVEL_WEIGHT) if wish is not None else None


def _configuration(kubevirt: KubeVirt | None) -> KubeVirtConfiguration:
    spec = kubevirt.spec if kubevirt is not None else None
    return (spec.configuration if spec is not None else None) or KubeVirtConfiguration()

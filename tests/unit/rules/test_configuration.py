"""The cluster's settings: what is built in, overlaid by the KubeVirt object, overlaid by the policy that applies."""

from typing import Any

import msgspec
import pytest

from herder.api.kinds import KubeVirt, MigrationPolicy
from herder.api.kinds.migration_state import PolicySettings
from herder.rules.configuration import (
    bandwidth_bytes,
    cluster_migration_settings,
    effective,
    sources,
)

Json = dict[str, Any]


def kubevirt(migrations: Json | None = None, **configuration: Any) -> KubeVirt:
    given = {"migrations": migrations, **configuration} if migrations is not None else configuration
    return msgspec.convert({"metadata": {"name": "kubevirt"}, "spec": {"configuration": given}}, KubeVirt)


def policy(**spec: Any) -> PolicySettings:
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, MigrationPolicy).spec


@pytest.mark.parametrize("nothing", [None, kubevirt(), kubevirt({}), msgspec.convert({"metadata": {}}, KubeVirt)])
def test_without_any_settings_the_built_in_ones_hold(nothing: KubeVirt | None) -> None:
    settings = cluster_migration_settings(nothing)
    limits = (settings.parallel_per_cluster, settings.parallel_outbound_per_node, settings.parallel_inbound_per_node)
    assert limits == (5, 2, 2)
    assert (settings.unschedulable_pending_timeout, settings.pending_timeout) == (300, 900)
    assert (settings.node_drain_taint_key, settings.eviction_strategy) == ("kubevirt.io/drain", "None")
    assert effective(settings) == PolicySettings(
        allow_auto_converge=False,
        allow_post_copy=False,
        allow_workload_disruption=False,
        bandwidth_per_migration=0,
        completion_timeout_per_gib=150,
        progress_timeout=150,
        max_downtime_ms=300,
    )


def test_what_the_cluster_says_replaces_what_is_built_in_and_nothing_else() -> None:
    given = kubevirt(
        {"parallelMigrationsPerCluster": 9, "nodeDrainTaintKey": "a/b", "progressTimeout": 0}, evictionStrategy="External"
    )
    settings = cluster_migration_settings(given)
    assert (settings.parallel_per_cluster, settings.parallel_outbound_per_node) == (9, 2)
    assert (settings.node_drain_taint_key, settings.eviction_strategy) == ("a/b", "External")
    assert (effective(settings).progress_timeout, effective(settings).completion_timeout_per_gib) == (0, 150)


def test_a_policys_value_wins_even_where_it_is_false_or_zero() -> None:
    cluster = cluster_migration_settings(kubevirt({"allowAutoConverge": True, "completionTimeoutPerGiB": 7, "maxDowntimeMs": 5}))
    made = effective(cluster, policy(allowAutoConverge=False, completionTimeoutPerGiB=0, bandwidthPerMigration="217Ki"))
    assert (made.allow_auto_converge, made.completion_timeout_per_gib, made.max_downtime_ms) == (False, 0, 5)
    assert bandwidth_bytes(made) == 217 * 1024


@pytest.mark.parametrize(
    ("of_cluster", "of_policy", "disrupted"),
    [
        ({"allowPostCopy": True}, {}, True),
        ({}, {"allowPostCopy": True}, True),
        ({"allowPostCopy": True}, {"allowPostCopy": False}, False),
        ({"allowWorkloadDisruption": False}, {"allowPostCopy": True}, False),
        ({"allowPostCopy": True}, {"allowWorkloadDisruption": False}, False),
        ({"allowWorkloadDisruption": True}, {}, True),
    ],
)
def test_disruption_follows_post_copy_where_nobody_says_otherwise(of_cluster: Json, of_policy: Json, disrupted: bool) -> None:
    cluster = cluster_migration_settings(kubevirt(of_cluster))
    assert effective(cluster, policy(**of_policy)).allow_workload_disruption is disrupted


@pytest.mark.parametrize("bandwidth", ["fast", "217m"])
def test_a_setting_that_is_wrong_leaves_that_of_the_level_below(bandwidth: str) -> None:
    """Where nobody asked us before it was stored."""
    settings = cluster_migration_settings(kubevirt({"bandwidthPerMigration": bandwidth, "maxDowntimeMs": 1}))
    assert (bandwidth_bytes(effective(settings)), effective(settings).max_downtime_ms) == (0, 1)
    good = cluster_migration_settings(kubevirt({"bandwidthPerMigration": "1Mi", "maxDowntimeMs": 7}))
    made = effective(good, policy(bandwidthPerMigration=bandwidth, maxDowntimeMs=0, progressTimeout=3))
    assert (bandwidth_bytes(made), made.max_downtime_ms, made.progress_timeout) == (1024**2, 7, 3)
    assert cluster_migration_settings(kubevirt({"nodeDrainTaintKey": "a b"})).node_drain_taint_key == "kubevirt.io/drain"


def test_each_setting_can_say_who_decided_it() -> None:
    cluster = cluster_migration_settings(kubevirt({"progressTimeout": 3}))
    found = sources(cluster, "gold", policy(allowPostCopy=True))
    assert found["progress_timeout"] == "KubeVirt"
    assert found["allow_post_copy"] == "MigrationPolicy gold"
    assert found["allow_workload_disruption"] == "as allowPostCopy"
    assert found["max_downtime_ms"] == "built in"

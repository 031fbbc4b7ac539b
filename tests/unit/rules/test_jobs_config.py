"""jobs.yaml: the seed's MigrationControllerArgs as a person writes them, and as rules read them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.core import ConfigMap
from herder.api.kinds.pod_migration_job import DeleteOptions
from herder.rules.herder_config import BUILT_IN, JOBS, InUse, JobsConfig, JobsConfiguration, Unusable, news, next_in_use, read_file
from herder.rules.herder_config.job_parts import Namespaces

EVERY_FIELD = """
apiVersion: descheduler/v1alpha2
kind: MigrationControllerArgs
dryRun: true
maxConcurrentReconciles: 4
evictFailedBarePods: true
evictLocalStoragePods: true
evictSystemCriticalPods: true
ignorePvcPods: true
labelSelector:
  matchLabels: {app: web}
  matchExpressions: [{key: tier, operator: NotIn, values: [db]}]
namespaces: {exclude: [kube-system]}
maxMigratingPerNode: 3
maxMigratingPerNamespace: 0
maxMigratingPerWorkload: 10%
maxUnavailablePerWorkload: 2
defaultJobMode: EvictDirectly
defaultJobTTL: 1m30s
evictQPS: "0.5"
evictBurst: 5
evictionPolicy: Delete
defaultDeleteOptions: {gracePeriodSeconds: 60, propagationPolicy: Background}
enabled: false
maxMigratingGlobally: 50
priorityThreshold: -7
pendingTTL: 1h
finishedJobTTL: 10m
"""


def used(text: str) -> JobsConfig:
    return read_file(text, JobsConfiguration).parsed()


def in_use(before: InUse, text: str) -> InUse:
    return next_in_use(before, ConfigMap(data={JOBS: text}))


def test_every_field_is_read() -> None:
    config = used(EVERY_FIELD)
    assert {
        name: getattr(config, name) for name in JobsConfig.__struct_fields__ if name not in ("label_selector", "namespaces")
    } == {
        "dry_run": True,
        "max_concurrent_reconciles": 4,
        "evict_failed_bare_pods": True,
        "evict_local_storage_pods": True,
        "evict_system_critical_pods": True,
        "ignore_pvc_pods": True,
        "max_migrating_per_node": 3,
        "max_migrating_per_namespace": 0,
        "max_migrating_per_workload": "10%",
        "max_unavailable_per_workload": 2,
        "default_job_mode": "EvictDirectly",
        "default_job_ttl": 90.0,
        "evict_qps": 0.5,
        "evict_burst": 5,
        "eviction_policy": "Delete",
        "default_delete_options": DeleteOptions(grace_period_seconds=60, propagation_policy="Background"),
        "enabled": False,
        "max_migrating_globally": 50,
        "priority_threshold": -7,
        "pending_ttl": 3600.0,
        "finished_job_ttl": 600.0,
    }
    assert config.label_selector.matches({"app": "web", "tier": "front"})
    assert not config.label_selector.matches({"app": "web", "tier": "db"})
    assert not config.label_selector.matches({"app": "mail"})
    assert ("shop" in config.namespaces, "kube-system" in config.namespaces) == (True, False)


def test_without_a_word_everything_is_as_the_seed_has_it() -> None:
    """And the same is built in, so nobody is told anything."""
    assert used("") == JobsConfig()
    assert (JobsConfig().enabled, JobsConfig().evict_qps, JobsConfig().evict_burst) == (True, 10.0, 1)
    assert (JobsConfig().default_job_mode, JobsConfig().eviction_policy) == ("ReservationFirst", "Eviction")
    assert (JobsConfig().default_job_ttl, JobsConfig().pending_ttl, JobsConfig().finished_job_ttl) == (300.0, 0.0, 86400.0)
    assert (JobsConfig().max_migrating_per_node, JobsConfig().max_migrating_per_namespace) == (2, None)
    assert JobsConfig().label_selector.matches({}) and "anything" in JobsConfig().namespaces
    assert news(BUILT_IN, in_use(BUILT_IN, "kind: MigrationControllerArgs")) == [
        'jobs.yaml: in use: kind: "MigrationControllerArgs"'
    ]
    assert news(BUILT_IN, in_use(BUILT_IN, "{}")) == []


def test_only_namespaces_that_are_included_are_migrated() -> None:
    assert used("namespaces: {include: [shop]}").namespaces == Namespaces(frozenset({"shop"}))
    assert ("shop" in used("namespaces: {include: [shop]}").namespaces, "mail" in Namespaces(frozenset({"shop"}))) == (True, False)


SHARE = "must be a whole number of pods, not below zero, or a percentage of the workload's up to 100%, such as 10%, or left out"
COUNT = "must be a whole number of pods from 0, which allows none, to 2147483647, or left out"
TIME = 'must be a length of time, not below zero, such as "90s", "5m" or "1h30m"'
RATE = 'must be a number of evictions a second in quotes, such as "10" or "0.5", from 0.001 to 10000, or left out for "10"'
NAMES = "must be a list of names of namespaces, at least one, or left out"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("evictQPS: 10", f"evictQPS: 10 is wrong: {RATE}"),
        *((f'evictQPS: "{rate}"', f'evictQPS: "{rate}" is wrong: {RATE}') for rate in ("0", "-1", "inf", "1e3", "10001", "٣")),
        ("evictBurst: 0", "evictBurst: 0 is wrong: must be a whole number of evictions from 1 to 10000, or left out for 1"),
        *(
            (f"{field}: {value}", f"{field}: {shown} is wrong: {SHARE}")
            for field in ("maxMigratingPerWorkload", "maxUnavailablePerWorkload")
            for value, shown in (("101%", '"101%"'), ('"5"', '"5"'), ("-1", "-1"), ("true", "true"), ("2147483648", "2147483648"))
        ),
        ("maxMigratingPerNode: -1", f"maxMigratingPerNode: -1 is wrong: {COUNT} for 2"),
        ("maxMigratingPerNamespace: 5%", f'maxMigratingPerNamespace: "5%" is wrong: {COUNT}'),
        ("maxMigratingGlobally: 1.5", f"maxMigratingGlobally: 1.5 is wrong: {COUNT}"),
        ("priorityThreshold: 2147483648", "priorityThreshold: 2147483648 is wrong: must be a whole number of 32 bits, or left out"),
        ("defaultJobTTL: 300", f'defaultJobTTL: 300 is wrong: {TIME} (0s is for ever), or left out for "5m"'),
        ("pendingTTL: -5m", f'pendingTTL: "-5m" is wrong: {TIME} (0s is for ever), or left out for "0s"'),
        ("finishedJobTTL: 9999999999h", f'finishedJobTTL: "9999999999h" is wrong: {TIME}, or left out for "24h"'),
        (
            "defaultJobMode: EvictionDirectly",
            'defaultJobMode: "EvictionDirectly" is wrong: must be ReservationFirst or EvictDirectly, or left out for "Reser',
        ),
        ("evictionPolicy: delete", 'evictionPolicy: "delete" is wrong: must be Eviction or Delete, or left out for "Eviction"'),
        ("kind: Deployment", 'kind: "Deployment" is wrong: must be MigrationControllerArgs, or left out'),
        ("dryRun: sure", 'dryRun: "sure" is wrong: must be true or false, or left out for false'),
        ("EvictQPS: '1'", 'unknown key "EvictQPS": did you mean evictQPS?'),
        ("namespaces: {includ: [a]}", 'unknown key "namespaces.includ": did you mean include?'),
        ("namespaces: {include: []}", f"namespaces.include: [] is wrong: {NAMES}"),
        ("namespaces: {exclude: ['kube-*']}", f'namespaces.exclude: ["kube-*"] is wrong: {NAMES}'),
        ("namespaces: [a]", 'namespaces: ["a"] is wrong: must be a mapping with include or exclude, each a list of namespaces'),
        (
            "namespaces: {include: [a], exclude: [b]}",
            'namespaces: {"include":["a"],"exclude":["b"]} is wrong: must have include or exclude, not both',
        ),
        ("labelSelector: {matchLabels: {a: b c}}", 'labelSelector.matchLabels: {"a":"b c"} is wrong: must be a mapping of keys'),
        ("labelSelector: {matchLabel: {a: b}}", 'unknown key "labelSelector.matchLabel": did you mean matchLabels?'),
        (
            "labelSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: is}]}",
            'labelSelector.matchExpressions[1].operator: "is" is wrong: must be In, NotIn, Exists or DoesNotExist',
        ),
        (
            "labelSelector: {matchExpressions: [{key: a, operator: In}]}",
            'labelSelector.matchExpressions[0]: {"key":"a","operator":"In"} is wrong: values: Required value',
        ),
        ("labelSelector: {matchExpressions: {}}", "labelSelector.matchExpressions: {} is wrong: must be a list of expressions"),
        (
            "defaultDeleteOptions: {dryRun: [All]}",
            'defaultDeleteOptions: {"dryRun":["All"]} is wrong: dryRun must be left out: who only tries evicts nothing',
        ),
        ("defaultDeleteOptions: {preconditions: {uid: a}}", "preconditions must be left out: they name one object"),
        (
            "defaultDeleteOptions: {orphanDependents: true, propagationPolicy: Orphan}",
            "must have orphanDependents or propagationPolicy, not both",
        ),
        (
            "defaultDeleteOptions: {gracePeriodSeconds: -1}",
            "defaultDeleteOptions.gracePeriodSeconds: -1 is wrong: must be a whole number of seconds, not below zero",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_the_field_and_what_would_be_right(text: str, why: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_file(text, JobsConfiguration)
    assert why in str(refused.value)


def test_a_mistake_leaves_the_last_good_one_in_use_and_says_of_it_what_is_not_built_in() -> None:
    good = in_use(BUILT_IN, "evictBurst: 7\nnamespaces: {exclude: [shop]}")
    assert news(BUILT_IN, good) == ['jobs.yaml: in use: evictBurst: 7, namespaces: {"exclude":["shop"]}']
    bad = in_use(good, "evictBurst: many\ndryRun: true")
    assert bad.values == good.values
    assert bad.refused[JOBS].sentence.endswith('; still in use: evictBurst: 7, namespaces: {"exclude":["shop"]}')
    assert in_use(bad, "").values == BUILT_IN.values


keys = st.sampled_from([*(line.partition(":")[0].strip() for line in EVERY_FIELD.splitlines() if line), "include", "key", "values"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["5m", "10%", "In", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(keys, values, max_size=3))
def test_whatever_is_written_is_used_or_refused(document: dict[str, Any]) -> None:
    found = in_use(BUILT_IN, repr(document).replace("None", "null"))
    written = found.values[JOBS]
    assert isinstance(written, JobsConfiguration) and written.parsed().evict_qps > 0
    assert all(len(one.sentence) < 4096 and one.sentence.isprintable() for one in found.refused.values())

"""jobs.yaml: what holds for all PodMigrationJobs of the cluster (seed 004, MigrationControllerArgs), and some settings of ours.

`JobsConfiguration` is the file as it is written, `JobsConfig` the same as rules use it: times in seconds, selectors compiled.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from herder.api import defaults
from herder.api.duration import parse_duration, parse_seconds
from herder.api.int_or_percent import IntOrPercent, validate_at_most_hundred_percent, validate_int_or_percent
from herder.api.kinds.pod_migration_job import DeleteOptions, JobMode
from herder.api.selectors import Selector
from herder.rules.herder_config.job_parts import (
    ALL_NAMESPACES,
    ALL_PODS,
    EvictionPolicy,
    Namespaces,
    WrittenDeleteOptions,
    WrittenNamespaces,
    WrittenSelector,
)
from herder.rules.herder_config.reading import Configuration, must_be

JOBS: Final = "jobs.yaml"
MOST_PODS: Final = 2**31 - 1
MOST_CONCURRENT: Final = 100
# Evictions a second. The least is one in about a quarter of an hour: `enabled: false` is for none at all.
LEAST_RATE, MOST_RATE = 0.001, 10_000.0
_RATE = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?")
_SWITCH: Final = must_be("true or false")
_COUNT: Final = must_be(f"a whole number of pods from 0, which allows none, to {MOST_PODS}")
Pods = Annotated[int, Meta(ge=0, le=MOST_PODS)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


def _share(value: IntOrPercent) -> None:
    too_many = isinstance(value, int) and value > MOST_PODS
    if too_many or validate_int_or_percent(value, "") or validate_at_most_hundred_percent(value, ""):
        raise ValueError("no number and no share of pods")


def _rate(text: str) -> float:
    rate = float(text) if _RATE.fullmatch(text) else 0.0
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError("no rate")
    return rate


def _time(text: str) -> None:
    if parse_duration(text) < 0:
        raise ValueError("below zero")


_SHARE: Final = must_be("a whole number of pods, not below zero, or a percentage of the workload's up to 100%, such as 10%", _share)
_TIME: Final = 'a length of time, not below zero, such as "90s", "5m" or "1h30m"'


class _Plain(Configuration, frozen=True, kw_only=True):
    """What needs no parsing. Where it is None: no limit, or for a workload's limits the seed's formula."""

    enabled: Annotated[bool, _SWITCH] = True
    dry_run: Annotated[bool, _SWITCH] = False
    max_concurrent_reconciles: Annotated[
        int, must_be(f"a whole number of jobs from 1 to {MOST_CONCURRENT}", ge=1, le=MOST_CONCURRENT)
    ] = defaults.MAX_CONCURRENT_RECONCILES
    evict_failed_bare_pods: Annotated[bool, _SWITCH] = False
    evict_local_storage_pods: Annotated[bool, _SWITCH] = False
    evict_system_critical_pods: Annotated[bool, _SWITCH] = False
    ignore_pvc_pods: Annotated[bool, _SWITCH] = False
    # Pods of this priority, or of a higher one, stay where they are.
    priority_threshold: Annotated[Priority | None, must_be("a whole number of 32 bits")] = None
    max_migrating_globally: Annotated[Pods | None, _COUNT] = None
    max_migrating_per_node: Annotated[Pods, _COUNT] = defaults.MAX_MIGRATING_PER_NODE
    max_migrating_per_namespace: Annotated[Pods | None, _COUNT] = None
    max_migrating_per_workload: Annotated[IntOrPercent | None, _SHARE] = None
    max_unavailable_per_workload: Annotated[IntOrPercent | None, _SHARE] = None
    default_job_mode: Annotated[JobMode, must_be("ReservationFirst or EvictDirectly")] = defaults.JOB_MODE
    evict_burst: Annotated[int, must_be(f"a whole number of evictions from 1 to {MOST_RATE:.0f}", ge=1, le=int(MOST_RATE))] = (
        defaults.EVICT_BURST
    )
    eviction_policy: Annotated[EvictionPolicy, must_be("Eviction or Delete")] = defaults.EVICTION_POLICY


class JobsConfig(_Plain, frozen=True, kw_only=True):
    """Ready for rules. Times are seconds: of a job's 0 is for ever, of waiting 0 is for ever, of a finished job 0 is at once."""

    label_selector: Selector = ALL_PODS
    namespaces: Namespaces = ALL_NAMESPACES
    default_job_ttl: float = parse_seconds(defaults.JOB_TTL)
    pending_ttl: float = parse_seconds(defaults.PENDING_JOB_TTL)
    finished_job_ttl: float = parse_seconds(defaults.FINISHED_JOB_TTL)
    evict_qps: float = float(defaults.EVICT_QPS)
    default_delete_options: DeleteOptions | None = None


class JobsConfiguration(_Plain, frozen=True, kw_only=True):
    # As files for Koordinator's descheduler begin.
    api_version: Annotated[str | None, must_be("the group and version of MigrationControllerArgs")] = None
    kind: Annotated[Literal["MigrationControllerArgs"] | None, must_be("MigrationControllerArgs")] = None
    label_selector: Annotated[WrittenSelector | None, must_be("a label selector with matchLabels, matchExpressions or both")] = None
    namespaces: Annotated[WrittenNamespaces | None, must_be("a mapping with include or exclude, each a list of namespaces")] = None
    default_job_ttl: Annotated[str, must_be(f"{_TIME} (0s is for ever)", _time)] = field(
        default=defaults.JOB_TTL, name="defaultJobTTL"
    )
    pending_ttl: Annotated[str, must_be(f"{_TIME} (0s is for ever)", _time)] = field(
        default=defaults.PENDING_JOB_TTL, name="pendingTTL"
    )
    finished_job_ttl: Annotated[str, must_be(_TIME, _time)] = field(default=defaults.FINISHED_JOB_TTL, name="finishedJobTTL")
    evict_qps: Annotated[
        str,
        must_be(f'a number of evictions a second in quotes, such as "10" or "0.5", from {LEAST_RATE} to {MOST_RATE:.0f}', _rate),
    ] = field(default=defaults.EVICT_QPS, name="evictQPS")
    default_delete_options: Annotated[
        WrittenDeleteOptions | None, must_be("a mapping with gracePeriodSeconds, propagationPolicy or orphanDependents")
    ] = None

    def parsed(self) -> JobsConfig:
        plain: dict[str, Any] = {name: getattr(self, name) for name in _Plain.__struct_fields__}
        return JobsConfig(
            **plain,
            label_selector=self.label_selector.parsed() if self.label_selector is not None else ALL_PODS,
            namespaces=self.namespaces.parsed() if self.namespaces is not None else ALL_NAMESPACES,
            default_job_ttl=parse_seconds(self.default_job_ttl),
            pending_ttl=parse_seconds(self.pending_ttl),
            finished_job_ttl=parse_seconds(self.finished_job_ttl),
            evict_qps=_rate(self.evict_qps),
            default_delete_options=self.default_delete_options.parsed() if self.default_delete_options is not None else None,
        )

"""Built-in values of settings that nobody set. They are not written into objects: what a user left out stays left out."""

from __future__ import annotations

from typing import Final

# Live migration (KubeVirt.spec.configuration.migrations). `allowWorkloadDisruption` follows `allowPostCopy` where it is not set.
PARALLEL_MIGRATIONS_PER_CLUSTER: Final = 5
PARALLEL_OUTBOUND_MIGRATIONS_PER_NODE: Final = 2
PARALLEL_INBOUND_MIGRATIONS_PER_NODE: Final = 2
BANDWIDTH_PER_MIGRATION: Final = 0  # bytes per second, 0 is without limit
COMPLETION_TIMEOUT_PER_GIB: Final = 150  # seconds, 0 is without limit
PROGRESS_TIMEOUT: Final = 150  # seconds, 0 is without limit
ALLOW_AUTO_CONVERGE: Final = False
ALLOW_POST_COPY: Final = False
MAX_DOWNTIME_MS: Final = 300
NODE_DRAIN_TAINT_KEY: Final = "kubevirt.io/drain"
UNSCHEDULABLE_PENDING_TIMEOUT: Final = 300  # seconds
PENDING_TIMEOUT: Final = 900  # seconds
PREFERRED_LEVEL_WEIGHT: Final = 1
FINISHED_MIGRATIONS_KEPT: Final = 5  # per guest
EVICTION_STRATEGY: Final = "None"

# Machines
SCHEDULER_NAME: Final = "herder-scheduler"
GUEST_MEMORY: Final = "512Mi"
GUEST_CPU_MODEL: Final = "host-model"
TERMINATION_GRACE_PERIOD_SECONDS: Final = 30

# Pools
MAX_UNAVAILABLE: Final = "25%"
STARTUP_FAILURE_THRESHOLD: Final = 3
MIN_FAILING_DURATION: Final = "0s"
BASE_POLICY: Final = "Random"
STATE_PRESERVATION: Final = "Disabled"
MIN_READY_SECONDS: Final = 0
PROGRESS_DEADLINE_SECONDS: Final = 600
REVISION_HISTORY_LIMIT: Final = 10
ON_FAILURE: Final = "Halt"
CHANGED_VOLUMES: Final = "Keep"
POOL_BURST: Final = 250

# PodMigrationJobs and Reservations
JOB_MODE: Final = "ReservationFirst"
JOB_TTL: Final = "5m"
RESERVATION_TTL: Final = "24h"
ALLOCATE_ONCE: Final = True
EVICTION_POLICY: Final = "Eviction"
MAX_MIGRATING_PER_NODE: Final = 2
MAX_CONCURRENT_RECONCILES: Final = 1
EVICT_QPS: Final = "10"
EVICT_BURST: Final = 1
PENDING_JOB_TTL: Final = "0s"
FINISHED_JOB_TTL: Final = "24h"

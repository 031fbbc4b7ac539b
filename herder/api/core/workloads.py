"""Things that keep pods running: ReplicaSets, Deployments, StatefulSets, DaemonSets, Jobs, and the revisions they leave behind."""

from __future__ import annotations

from typing import Any

from msgspec import field

from herder.api.core.base import Object
from herder.api.core.pods import PodTemplateSpec
from herder.api.core.storage import ClaimTemplate
from herder.api.meta import LabelSelector, ObjectMeta
from herder.api.views import IntOrName, Time, View


class WorkloadCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class DeploymentCondition(WorkloadCondition, frozen=True, kw_only=True):
    last_update_time: Time | None = None


class ReplicaSetSpec(View, frozen=True, kw_only=True):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(View, frozen=True, kw_only=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class ReplicaSet(Object, frozen=True, kw_only=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdateDeployment(View, frozen=True, kw_only=True):
    max_unavailable: IntOrName | None = None
    max_surge: IntOrName | None = None


class DeploymentStrategy(View, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(View, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(View, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    collision_count: int | None = None


class Deployment(Object, frozen=True, kw_only=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ClaimRetentionPolicy(View, frozen=True, kw_only=True):
    when_deleted: str = ""
    when_scaled: str = ""


class Ordinals(View, frozen=True, kw_only=True):
    start: int = 0


class RollingUpdateStatefulSet(View, frozen=True, kw_only=True):
    partition: int | None = None
    max_unavailable: IntOrName | None = None


class StatefulSetUpdateStrategy(View, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdateStatefulSet | None = None


class StatefulSetSpec(View, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = None
    ordinals: Ordinals | None = None


class StatefulSetStatus(View, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[WorkloadCondition, ...] = ()


class StatefulSet(Object, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(View, frozen=True, kw_only=True):
    max_unavailable: IntOrName | None = None
    max_surge: IntOrName | None = None


class DaemonSetUpdateStrategy(View, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(View, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(View, frozen=True, kw_only=True):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None
    conditions: tuple[WorkloadCondition, ...] = ()


class DaemonSet(Object, frozen=True, kw_only=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobCondition(WorkloadCondition, frozen=True, kw_only=True):
    last_probe_time: Time | None = None


class JobSpec(View, frozen=True, kw_only=True):
    parallelism: int | None = None
    completions: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ttl_seconds_after_finished: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobStatus(View, frozen=True, kw_only=True):
    conditions: tuple[JobCondition, ...] = ()
    start_time: Time | None = None
    completion_time: Time | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    ready: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None


class Job(Object, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(View, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(View, frozen=True, kw_only=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(View, frozen=True, kw_only=True):
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Object, frozen=True, kw_only=True):
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class ScaleSpec(View, frozen=True, kw_only=True):
    # Left out where it is 0.
    replicas: int = 0


class ScaleStatus(View, frozen=True, kw_only=True):
    replicas: int = 0
    # Its pods, as text.
    selector: str = ""


class Scale(Object, frozen=True, kw_only=True):
    """What the scale subresource of any kind answers with: the identity of the object, how many replicas it wants, and which its
    pods are."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class ControllerRevision(Object, frozen=True, kw_only=True):
    """`data` is whatever the controller keeps there."""

    revision: int = 0
    data: Any = field(default=None)

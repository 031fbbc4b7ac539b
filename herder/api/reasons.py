"""The words by which status and events say why. Programs compare them, people search for them: each is written here, once."""

from __future__ import annotations

from typing import Final

# Conditions of machines and instances
READY: Final = "Ready"
LIVE_MIGRATABLE: Final = "LiveMigratable"
PAUSED: Final = "Paused"
ALIVE: Final = "Alive"
RESTART_REQUIRED: Final = "RestartRequired"
FAILURE: Final = "Failure"
# Of an instance, False while it should leave its node and does not, with why; absent otherwise
EVACUATING: Final = "Evacuating"

# A reconcile that fails again and again: the condition (False while it does, else absent), the event, and why if nobody else says
SYNCHRONIZED: Final = "Synchronized"
RECONCILE_FAILED: Final = "ReconcileFailed"
RECONCILE_TIMEOUT: Final = "ReconcileTimeout"
INTERNAL_ERROR: Final = "InternalError"

# What a machine shows in one word (VirtualMachine.status.printableStatus)
PROVISIONING: Final = "Provisioning"
STARTING: Final = "Starting"
RUNNING: Final = "Running"
STOPPING: Final = "Stopping"
STOPPED: Final = "Stopped"
MIGRATING: Final = "Migrating"
TERMINATING: Final = "Terminating"
UNKNOWN: Final = "Unknown"
CRASH_LOOP_BACK_OFF: Final = "CrashLoopBackOff"
ERROR_UNSCHEDULABLE: Final = "ErrorUnschedulable"
ERROR_PVC_NOT_FOUND: Final = "ErrorPvcNotFound"
DATA_VOLUME_ERROR: Final = "DataVolumeError"
DATA_VOLUME_FAILED: Final = "DataVolumeFailed"  # why, where one of its DataVolumes failed for good
WAITING_FOR_VOLUME_BINDING: Final = "WaitingForVolumeBinding"

# Machines that are suspended: words, the condition, and why
SUSPENDED: Final = "Suspended"
SUSPENDING: Final = "Suspending"
RESUMING: Final = "Resuming"
SAVING_MEMORY: Final = "SavingMemory"
MEMORY_SAVED: Final = "MemorySaved"
NOTHING_SAVED: Final = "NothingSaved"
SAVE_FAILED: Final = "SaveFailed"
WAITING_FOR_GUEST: Final = "WaitingForGuest"
WAITING_FOR_MIGRATION: Final = "WaitingForMigration"
RESUMED: Final = "Resumed"
NOT_RESUMED: Final = "NotResumed"
MEMORY_DROPPED: Final = "MemoryDropped"

# What was done to children
SUCCESSFUL_CREATE: Final = "SuccessfulCreate"
SUCCESSFUL_DELETE: Final = "SuccessfulDelete"
INSTANCE_NOT_OWNED: Final = "InstanceNotOwned"

# Why an instance waits or ends
GUEST_NOT_RUNNING: Final = "GuestNotRunning"
GUEST_SHUT_DOWN: Final = "GuestShutDown"
GUEST_LOST: Final = "GuestLost"
GUEST_HANDED_OVER: Final = "GuestHandedOver"
GUEST_RECORD_UNREADABLE: Final = "GuestRecordUnreadable"
SWITCHED_OFF: Final = "SwitchedOff"
GUEST_CRASHED: Final = "GuestCrashed"
LIVENESS_PROBE_FAILED: Final = "LivenessProbeFailed"
LIVENESS_PROBE_NEVER_PASSED: Final = "LivenessProbeNeverPassed"
LIVENESS_PROBE_PENDING: Final = "LivenessProbePending"
LIVENESS_PROBE_PASSED: Final = "LivenessProbePassed"
CRASHED_EARLY: Final = "CrashedEarly"
OUT_OF: Final = "OutOf"  # and of what, as Kubernetes says it: its node had no room left when it came
MISSING_SECRET: Final = "MissingSecret"
MISSING_CONFIG_MAP: Final = "MissingConfigMap"
MISSING_CLAIM: Final = "MissingClaim"
MISSING_DATA_VOLUME: Final = "MissingDataVolume"
WAITING_FOR_DATA_VOLUME: Final = "WaitingForDataVolume"
POD_GONE: Final = "PodGone"
GUEST_STARTING: Final = "GuestStarting"
START_FAILED: Final = "StartFailed"  # its node met an error, and tries again
ENDING_FAILED: Final = "EndingFailed"
NODE_ERROR: Final = "NodeError"  # of a guest that runs
NODE_ERRORS: Final = (START_FAILED, ENDING_FAILED, NODE_ERROR)
GUEST_RUNNING: Final = "GuestRunning"
GUEST_PAUSED: Final = "GuestPaused"
NOT_READY: Final = "NotReady"
MIGRATABLE: Final = "Migratable"
STARTED: Final = "Started"
NODE_LOST: Final = "NodeLost"
NODE_GIVEN_UP: Final = "NodeGivenUp"
NODE_NOT_FENCED: Final = "NodeNotFenced"
UNSUPPORTED: Final = "Unsupported"
MIGRATABILITY_LEVEL_NOT_REACHED: Final = "MigratabilityLevelNotReached"
MIGRATABILITY_LEVEL_CHANGED: Final = "MigratabilityLevelChanged"

# Why an instance cannot be moved
DISKS_NOT_LIVE_MIGRATABLE: Final = "DisksNotLiveMigratable"
INTERFACE_NOT_LIVE_MIGRATABLE: Final = "InterfaceNotLiveMigratable"
HOST_DEVICE_NOT_LIVE_MIGRATABLE: Final = "HostDeviceNotLiveMigratable"
RUNTIME_NOT_LIVE_MIGRATABLE: Final = "RuntimeNotLiveMigratable"
CPU_NOT_LIVE_MIGRATABLE: Final = "CPUNotLiveMigratable"

# Why a migration waits
WAITING_FOR_CLUSTER_LIMIT: Final = "WaitingForClusterLimit"
WAITING_FOR_OUTBOUND_LIMIT: Final = "WaitingForOutboundLimit"
WAITING_FOR_INBOUND_LIMIT: Final = "WaitingForInboundLimit"
TARGET_UNSCHEDULABLE: Final = "TargetUnschedulable"

# What one that goes on does without
POST_COPY_NOT_AVAILABLE: Final = "PostCopyNotAvailable"

# Why a migration failed
NO_MATCHING_NODE: Final = "NoMatchingNode"
NODE_NOT_FOUND: Final = "NodeNotFound"
ALREADY_ON_NODE: Final = "AlreadyOnNode"
CONFLICTING_NODE_SELECTOR: Final = "ConflictingNodeSelector"
MISSING_CPU_FEATURES: Final = "MissingCPUFeatures"
PENDING_TIMEOUT: Final = "PendingTimeout"
COMPLETION_TIMEOUT: Final = "CompletionTimeout"
NO_PROGRESS: Final = "NoProgress"
TARGET_POD_FAILED: Final = "TargetPodFailed"
SOURCE_STOPPED: Final = "SourceStopped"
COPY_FAILED: Final = "CopyFailed"
SHAPES_DIFFER: Final = "ShapesDiffer"
VMI_NOT_FOUND: Final = "VMINotFound"
NOT_LIVE_MIGRATABLE: Final = "NotLiveMigratable"
ANOTHER_MIGRATION: Final = "AnotherMigration"
CANCELLED: Final = "Cancelled"
MIGRATION_FAILURES: Final = (
    *(NO_MATCHING_NODE, NODE_NOT_FOUND, ALREADY_ON_NODE, CONFLICTING_NODE_SELECTOR, MISSING_CPU_FEATURES, NODE_LOST),
    *(PENDING_TIMEOUT, COMPLETION_TIMEOUT, NO_PROGRESS, TARGET_POD_FAILED, SOURCE_STOPPED, COPY_FAILED, SHAPES_DIFFER),
    *(VMI_NOT_FOUND, NOT_LIVE_MIGRATABLE, ANOTHER_MIGRATION, CANCELLED),
)

# The condition of a MigrationReview, and why there is an answer
ANSWERED: Final = "Answered"

# Evacuations: the event of one that begins has the name of the condition
EVACUATION_IMPOSSIBLE: Final = "EvacuationImpossible"
INVALID: Final = "Invalid"

# MigrationPolicies
ACCEPTED: Final = "Accepted"
APPLIED: Final = "Applied"
DUPLICATE_SELECTORS: Final = "DuplicateSelectors"
NO_SELECTORS: Final = "NoSelectors"
NOT_ACCEPTED: Final = "NotAccepted"
NO_MATCHING_INSTANCE: Final = "NoMatchingInstance"
OTHER_POLICIES_FIRST: Final = "OtherPoliciesFirst"

# The settings of the cluster, and of MigrationPolicies
DEGRADED: Final = "Degraded"
SETTINGS_IN_USE: Final = "SettingsInUse"
SETTINGS_NOT_USED: Final = "SettingsNotUsed"
WRONG_NAME_OR_NAMESPACE: Final = "WrongNameOrNamespace"
# Files of herder-config
CONFIGURATION_IN_USE: Final = "ConfigurationInUse"
CONFIGURATION_REFUSED: Final = "ConfigurationRefused"

# Pools
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"
FAILED_CREATE: Final = "FailedCreate"
FAILED_DELETE: Final = "FailedDelete"
FAILED_UPDATE: Final = "FailedUpdate"
VOLUME_NOT_OWNED: Final = "VolumeNotOwned"
VOLUME_TAKEN_BACK: Final = "VolumeTakenBack"
VOLUME_REPROVISIONED: Final = "VolumeReprovisioned"
CANNOT_SAVE_MEMORY: Final = "CannotSaveMemory"
MEMORY_PRESERVED: Final = "MemoryPreserved"
STANDBY_ACTIVATED: Final = "StandbyActivated"
UNEXPECTED_NAMES: Final = "UnexpectedNames"
HEALING_WITHHELD: Final = "HealingWithheld"
READY_ON_EARLIER_REVISION: Final = "ReadyOnEarlierRevision"
HEALED: Final = "Healed"
ADOPTED: Final = "Adopted"
SUCCESSFUL_UPDATE: Final = "SuccessfulUpdate"
ROLLING_OUT: Final = "RollingOut"
ROLLOUT_COMPLETE: Final = "RolloutComplete"
ROLLOUT_PAUSED: Final = "RolloutPaused"
ROLLOUT_LIMITED: Final = "RolloutLimited"
ROLLED_BACK: Final = "RolledBack"
WAITING_FOR_RESTARTS: Final = "WaitingForRestarts"

# Conditions of a PodMigrationJob
RESERVATION_CREATED: Final = "ReservationCreated"
RESERVATION_SCHEDULED: Final = "ReservationScheduled"
EVICTION: Final = "Eviction"
POD_SCHEDULED: Final = "PodScheduled"
POD_BOUND_RESERVATION: Final = "PodBoundReservation"
RESERVATION_BOUND: Final = "ReservationBound"

# Why a PodMigrationJob is where it is
TIMEOUT: Final = "Timeout"
FAILED_CREATE_RESERVATION: Final = "FailedCreateReservation"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
MISSING_POD: Final = "MissingPod"
MISSING_RESERVATION: Final = "MissingReservation"
EVICTING: Final = "Evicting"
FAILED_EVICT: Final = "FailedEvict"
WAIT_FOR_REPLACEMENT: Final = "WaitForReplacement"
EVICT_COMPLETE: Final = "EvictComplete"
WAIT_FOR_POD_BIND_RESERVATION: Final = "WaitForPodBindReservation"
FORBIDDEN_MIGRATE_POD: Final = "ForbiddenMigratePod"
NO_REPLACEMENT: Final = "NoReplacement"
DRY_RUN: Final = "DryRun"
ABORTED: Final = "Aborted"
ADMITTED: Final = "Admitted"

# Why a PodMigrationJob waits
WAITING_FOR_GLOBAL_LIMIT: Final = "WaitingForGlobalLimit"
WAITING_FOR_NODE_LIMIT: Final = "WaitingForNodeLimit"
WAITING_FOR_NAMESPACE_LIMIT: Final = "WaitingForNamespaceLimit"
WAITING_FOR_WORKLOAD_LIMIT: Final = "WaitingForWorkloadLimit"
WAITING_FOR_DISRUPTION_BUDGET: Final = "WaitingForDisruptionBudget"
WAITING_FOR_POD: Final = "WaitingForPod"
WAITING_FOR_FLOW_CONTROL: Final = "WaitingForFlowControl"
WAITING_FOR_ADMISSION: Final = "WaitingForAdmission"
ROLLOUT_IN_PROGRESS: Final = "RolloutInProgress"
DISABLED: Final = "Disabled"

# Reservations
SCHEDULED: Final = "Scheduled"
EXPIRED: Final = "Expired"
SUCCEEDED: Final = "Succeeded"
ALLOCATED: Final = "Allocated"
NODE_UNFIT: Final = "NodeUnfit"

# DataVolumes
BOUND: Final = "Bound"
IMPORT_FAILED: Final = "ImportFailed"
IMPORT_FORBIDDEN: Final = "ImportForbidden"
IMPORT_UNVERIFIED: Final = "ImportUnverified"
CLONE_FAILED: Final = "CloneFailed"
NOT_A_DISK_IMAGE: Final = "NotADiskImage"
SOURCE_FORBIDDEN: Final = "SourceForbidden"
SOURCE_NOT_FOUND: Final = "SourceNotFound"
SOURCE_REFUSED: Final = "SourceRefused"
SOURCE_UNREACHABLE: Final = "SourceUnreachable"
SOURCE_CUT_SHORT: Final = "SourceCutShort"
SOURCE_IN_USE: Final = "SourceInUse"
VOLUME_RECORD_UNREADABLE: Final = "VolumeRecordUnreadable"
INSUFFICIENT_STORAGE: Final = "InsufficientStorage"
VOLUME_FORMAT_UNKNOWN: Final = "VolumeFormatUnknown"
SOURCE_NOT_BOUND: Final = "SourceNotBound"
CHECKSUM_MISMATCH: Final = "ChecksumMismatch"
VOLUME_TOO_SMALL: Final = "VolumeTooSmall"
CONTENT_MISSING: Final = "ContentMissing"
CLONE_SOURCE_GREW: Final = "CloneSourceGrew"
CLAIM_NOT_OWNED: Final = "ClaimNotOwned"
CLAIM_PENDING: Final = "ClaimPending"
CLAIM_LOST: Final = "ClaimLost"
CLASS_NOT_FOUND: Final = "StorageClassNotFound"
CLASS_NOT_SUPPORTED: Final = "StorageClassNotSupported"
IMPORT_SCHEDULED: Final = "ImportScheduled"
IMPORT_RUNNING: Final = "ImportRunning"
IMPORT_SUCCEEDED: Final = "ImportSucceeded"
PROVISIONING_SUCCEEDED: Final = "ProvisioningSucceeded"
PROVISIONING_FAILED: Final = "ProvisioningFailed"
# As Kubernetes' external-resizer has them.
VOLUME_RESIZE_SUCCEEDED: Final = "VolumeResizeSuccessful"
VOLUME_RESIZE_FAILED: Final = "VolumeResizeFailed"

# ReplicaSets and Deployments, in Kubernetes' own words
AVAILABLE: Final = "Available"
MINIMUM_REPLICAS_AVAILABLE: Final = "MinimumReplicasAvailable"
MINIMUM_REPLICAS_UNAVAILABLE: Final = "MinimumReplicasUnavailable"
NEW_REPLICA_SET_CREATED: Final = "NewReplicaSetCreated"
FOUND_NEW_REPLICA_SET: Final = "FoundNewReplicaSet"
REPLICA_SET_UPDATED: Final = "ReplicaSetUpdated"
NEW_REPLICA_SET_AVAILABLE: Final = "NewReplicaSetAvailable"
REPLICA_SET_CREATE_ERROR: Final = "ReplicaSetCreateError"
PROGRESS_DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
DEPLOYMENT_PAUSED: Final = "DeploymentPaused"
DEPLOYMENT_RESUMED: Final = "DeploymentResumed"
SCALING_REPLICA_SET: Final = "ScalingReplicaSet"

# Disruption budgets, in Kubernetes' own words
DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
SYNC_FAILED: Final = "SyncFailed"

# Nodes that fall silent, and their pods, in Kubernetes' own words
NODE_STATUS_UNKNOWN: Final = "NodeStatusUnknown"
NODE_STATUS_NEVER_UPDATED: Final = "NodeStatusNeverUpdated"
NODE_NOT_READY: Final = "NodeNotReady"
TAINT_MANAGER_EVICTION: Final = "TaintManagerEviction"
DELETION_BY_TAINT_MANAGER: Final = "DeletionByTaintManager"

# Autoscalers, in Kubernetes' own words: conditions, reasons and events
ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"
FAILED_GET_SCALE: Final = "FailedGetScale"
SUCCEEDED_GET_SCALE: Final = "SucceededGetScale"
SUCCEEDED_RESCALE: Final = "SucceededRescale"
FAILED_UPDATE_SCALE: Final = "FailedUpdateScale"
READY_FOR_NEW_SCALE: Final = "ReadyForNewScale"
SCALE_UP_STABILIZED: Final = "ScaleUpStabilized"
SCALE_DOWN_STABILIZED: Final = "ScaleDownStabilized"
SCALING_DISABLED: Final = "ScalingDisabled"
VALID_METRIC_FOUND: Final = "ValidMetricFound"
FAILED_GET_RESOURCE_METRIC: Final = "FailedGetResourceMetric"
FAILED_COMPUTE_METRICS_REPLICAS: Final = "FailedComputeMetricsReplicas"
SELECTOR_REQUIRED: Final = "SelectorRequired"
INVALID_SELECTOR: Final = "InvalidSelector"
AMBIGUOUS_SELECTOR: Final = "AmbiguousSelector"
DESIRED_WITHIN_RANGE: Final = "DesiredWithinRange"
SCALE_UP_LIMIT: Final = "ScaleUpLimit"
SCALE_DOWN_LIMIT: Final = "ScaleDownLimit"
TOO_MANY_REPLICAS: Final = "TooManyReplicas"
TOO_FEW_REPLICAS: Final = "TooFewReplicas"
SUCCESSFUL_RESCALE: Final = "SuccessfulRescale"
FAILED_RESCALE: Final = "FailedRescale"

"""Labels, annotations, taints and finalizers that we write or obey. Those under kubevirt.io are what users know already."""

from __future__ import annotations

from typing import Final

# Pods
LAUNCHER: Final = "virt-launcher"
APP: Final = "kubevirt.io"  # on every pod of ours: what it is for (`virt-launcher`)
CREATED_BY: Final = "kubevirt.io/created-by"  # uid of the instance
INSTANCE_NAME: Final = "vm.kubevirt.io/name"
MACHINE_NAME: Final = "kubevirt.io/vm"  # of an instance and its pods: the VirtualMachine that it is of
NODE_NAME: Final = "kubevirt.io/nodeName"  # of an instance: where its guest runs
REQUIRED_LEVEL: Final = "herder.dev/required-migratability-level"  # of a pod: the level that the cluster's settings asked for
MIGRATION_UID: Final = "kubevirt.io/migrationJobUID"  # of a target pod
IMPORTER: Final = "herder.dev/importer"  # of a pod that fills a claim or clears a volume: uid of its DataVolume or volume
IMPORT_ATTEMPT: Final = "herder.dev/import-attempt"

# What a launcher pod tells its node (JSON, `herder.api.guest`), and what it is told while it runs.
GUEST: Final = "herder.dev/guest"
IMPORT: Final = "herder.dev/import"
MIGRATION: Final = "herder.dev/migration"  # on both pods of a migration: the order (JSON, `herder.api.guest.MigrationOrder`)
RESUME: Final = "herder.dev/resume"  # on a target pod: uid of the migration whose source is known not to run any more
MEMORY: Final = "herder.dev/memory"  # of a claim: whose memory it holds (JSON, `herder.api.memory.SavedMemory`)
RESUME_FROM: Final = "herder.dev/resume-from"  # of an instance: uid of the claim with the memory that its guest goes on from; of a
# machine that a pool made, that of its first instance
NOT_RESUMED: Final = "herder.dev/not-resumed"  # of an instance or its pod: why its guest boots although memory of it was saved
PAUSE: Final = "herder.dev/paused"  # "true" on an instance stops its guest, "false" lets it go on; passed on to the pod

# Wishes about a machine, as plain annotations, so that kubectl can do what `herder` does.
START_REQUEST: Final = "herder.dev/start-requested"  # any new value: start it (run strategies Manual, RerunOnFailure, Once)
STOP_REQUEST: Final = "herder.dev/stop-requested"  # uid of the instance that shall end (run strategy Manual)
RESTART_REQUEST: Final = "herder.dev/restart-requested"  # uid of the instance that shall be replaced

EVACUATE: Final = "herder.dev/evacuate-from"  # of an instance: the node that somebody asked it to leave (an eviction, a person)
EVACUATION: Final = "herder.dev/evacuation"  # label of a migration that was made because a node is emptied; annotation: that node
EVACUATION_ATTEMPT: Final = "herder.dev/evacuation-attempt"  # of such a migration: which try it is since the last that succeeded

# Condition of a launcher pod by which its agent reports (JSON, `herder.api.guest`)
GUEST_CONDITION: Final = "herder.dev/Guest"
IMPORT_CONDITION: Final = "herder.dev/Import"  # the same of a pod that fills a claim (`herder.api.imports`)

TEMPLATE_HASH: Final = "herder.dev/template-hash"  # of an instance: which template of its machine it was made from
LAST_APPLIED: Final = "herder.dev/last-applied-metadata"  # what an instance inherits from its template, or a pod from its instance

# Pools (seed 003)
POOL: Final = "herder.dev/pool"  # of a launcher pod: the pool that controls its machine
# Label of a machine and its instance, annotation of a preserved DataVolume: the ControllerRevision that it is of.
POOL_REVISION: Final = "herder.dev/pool-revision"
POOL_UPDATED: Final = "herder.dev/pool-updated-at"  # annotation of a machine: when its pool gave it that revision
UPDATED_IN_PLACE: Final = (
    "herder.dev/updated-in-place"  # annotation of a machine: uid of the instance that has its revision as it is
)
RESTARTED_AT: Final = "herder.dev/restarted-at"  # annotation of a template of instances: a change asks for a restart
CLOUD_INIT_AGAIN: Final = (
    "herder.dev/cloud-init-again"  # annotation of a template of instances: "true" where changed user data counts
)
REPROVISION: Final = (
    "herder.dev/reprovision"  # annotation of a machine: DataVolumes to make again where they differ from its template
)
SCALE_IN: Final = "herder.dev/scale-in"  # annotation of a machine of a pool: first or never
SCALE_IN_FIRST: Final = "first"
SCALE_IN_NEVER: Final = "never"
REMOVE_REQUEST: Final = "herder.dev/remove-requested"  # annotation of such a machine, its own uid: the next one that is taken
UPDATE_REQUEST: Final = "herder.dev/update-requested"  # annotation of such a machine: the revision that it shall get before others
SUSPENDED_BY: Final = "herder.dev/suspended-by"  # annotation of such a machine: uid of the pool that suspends it, to take it away
SAVE_FAILED: Final = "herder.dev/save-failed"  # annotation of such a machine: how often its memory could not be saved (JSON)
STANDBY: Final = "herder.dev/standby"  # label of a machine that its pool keeps beside its replicas: Offline or Online
READY_REVISION: Final = "herder.dev/ready-revision"  # annotation of a preserved DataVolume: the revision its machine was ready on

# Reservations (seed 004)
RESERVATION_ALLOCATED: Final = "scheduling.koordinator.sh/reservation-allocated"  # annotation of a pod: which it took

# PodMigrationJobs (seed 004); each is an annotation unless it says otherwise
ABORT: Final = "herder.dev/abort"  # of a job: "true" ends it
MIGRATION_PRIORITY: Final = "herder.dev/migration-priority"  # of a job: the higher, the sooner; 0 where absent
JOB: Final = "herder.dev/job"  # of a migration that a job made: as label the job's uid, as annotation its name
SURGE: Final = "herder.dev/surge"  # of a job or of its Deployment: "true" where the replacement comes first
EVICTION_COST: Final = "scheduling.koordinator.sh/eviction-cost"  # of a pod: the lower, the sooner; int32
QOS_CLASS: Final = "koordinator.sh/qosClass"  # label of a pod: LSE, LSR, LS or BE
EVICT_POLICY: Final = "koordinator.sh/evict-policy"  # label of a pod: how it is ended, Eviction or Delete

# Finalizers
JOB_FINALIZER: Final = "herder.dev/pod-migration-job"  # of a job: until what it began is ended or undone
INSTANCE_FINALIZER: Final = "herder.dev/instance"  # until no pod of it is left
MIGRATION_FINALIZER: Final = "herder.dev/migration"  # until it is over and nothing of it is left: deleting it cancels it
NODE_FINALIZER: Final = "herder.dev/guests"  # on a Node, by its agent: until the last guest there has ended

# Nodes
SCHEDULABLE: Final = "kubevirt.io/schedulable"
RUNTIME: Final = "herder.dev/runtime"  # qemu or simulated
POST_COPY: Final = "herder.dev/post-copy"  # "true" where guests can come by post-copy, else "false"
NO_POST_COPY: Final = "herder.dev/no-post-copy"  # annotation beside it: why they cannot, and what would help
SAVE_MEMORY: Final = "herder.dev/save-memory"  # "true" where guests can be suspended, else "false"
NO_SAVE_MEMORY: Final = "herder.dev/no-save-memory"  # annotation beside it: why they cannot, and what would help
AGENT: Final = "herder.dev/agent"  # whose a simulated node is: no other process adopts it
STORAGE: Final = "herder.dev/storage"  # nodes with the same value see the same volumes
VM_HOST_TAINT: Final = "herder.dev/vm-host"
OUT_OF_SERVICE_TAINT: Final = "node.kubernetes.io/out-of-service"
SIMULATED: Final = "simulated.herder.dev/"  # prefix of the annotations that set how a simulated guest behaves

# As KubeVirt's labeller writes them; each is a prefix.
HOST_MODEL_CPU: Final = "host-model-cpu.node.kubevirt.io/"
HOST_MODEL_REQUIRED_FEATURES: Final = "host-model-required-features.node.kubevirt.io/"
CPU_MODEL: Final = "cpu-model.node.kubevirt.io/"
CPU_MODEL_MIGRATION: Final = "cpu-model-migration.node.kubevirt.io/"
CPU_FEATURE: Final = "cpu-feature.node.kubevirt.io/"
CPU_VENDOR: Final = "cpu-vendor.node.kubevirt.io/"
CPU_LABELS: Final = (HOST_MODEL_CPU, HOST_MODEL_REQUIRED_FEATURES, CPU_MODEL, CPU_MODEL_MIGRATION, CPU_FEATURE, CPU_VENDOR)

# How many of the nodes would take a host-model guest that is first started on this one, in percent (seed 002).
MIGRATABILITY_LEVEL: Final = "kubevirt/host-model-migratability-level"

# Storage
STORAGE_CLASS: Final = "herder-local"
PROVISIONER: Final = "herder.dev/local"

"""Our own kinds: how each is called and served, and what `kubectl get` shows of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from herder.api import kinds
from herder.api.views import View

KUBEVIRT = "kubevirt.io"
MIGRATIONS = "migrations.kubevirt.io"
SCHEDULING = "scheduling.koordinator.sh"
STORAGE = "cdi.kubevirt.io"
# What has no counterpart in other products.
OWN = "herder.dev"


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. Priority 0 is always shown, anything higher only by `-o wide`."""

    name: str
    path: str
    description: str
    type: Literal["string", "integer", "boolean", "date", "number"] = "string"
    priority: int = 0


class Scale(msgspec.Struct, frozen=True):
    """Where the scale subresource finds its numbers in the object."""

    spec_replicas: str
    status_replicas: str
    label_selector: str


class KindInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One of our kinds."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    view: type[View]
    columns: tuple[Column, ...]
    scale: Scale | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def scope(self) -> Literal["Namespaced", "Cluster"]:
        return "Namespaced" if self.namespaced else "Cluster"


def _age() -> Column:
    return Column("Age", ".metadata.creationTimestamp", "How long ago the object was created.", "date")


def _condition(name: str, type_: str, description: str, priority: int = 0) -> Column:
    return Column(name, f".status.conditions[?(@.type=='{type_}')].status", description, "string", priority)


def _reason() -> Column:
    return Column("Reason", ".status.reason", "Why, in one word.", priority=1)


def _message() -> Column:
    return Column("Message", ".status.message", "Why, in a sentence.", priority=1)


MACHINE = KindInfo(
    group=KUBEVIRT,
    version="v1",
    kind="VirtualMachine",
    plural="virtualmachines",
    singular="virtualmachine",
    short_names=("vm", "vms"),
    categories=("all",),
    view=kinds.VirtualMachine,
    columns=(
        _age(),
        Column("Status", ".status.printableStatus", "The state in one word."),
        Column("Ready", ".status.ready", "Whether the guest runs and is ready.", "boolean"),
        Column("Node", ".status.nodeName", "Where the guest runs.", priority=1),
        _reason(),
        _message(),
    ),
)

INSTANCE = KindInfo(
    group=KUBEVIRT,
    version="v1",
    kind="VirtualMachineInstance",
    plural="virtualmachineinstances",
    singular="virtualmachineinstance",
    short_names=("vmi", "vmis"),
    categories=("all",),
    view=kinds.VirtualMachineInstance,
    columns=(
        _age(),
        Column("Phase", ".status.phase", "Where the guest is in its life."),
        Column("IP", ".status.interfaces[0].ipAddress", "First address of the guest."),
        Column("NodeName", ".status.nodeName", "Where the guest runs."),
        _condition("Ready", "Ready", "Whether the guest is ready."),
        _condition("Live-Migratable", "LiveMigratable", "Whether the guest can be moved while it runs.", priority=1),
        _condition("Paused", "Paused", "Whether the guest is paused.", priority=1),
        Column("Runtime", ".status.runtime", "What runs the guest.", priority=1),
        _reason(),
        _message(),
    ),
)

MIGRATION = KindInfo(
    group=KUBEVIRT,
    version="v1",
    kind="VirtualMachineInstanceMigration",
    plural="virtualmachineinstancemigrations",
    singular="virtualmachineinstancemigration",
    short_names=("vmim", "vmims"),
    categories=("all",),
    view=kinds.VirtualMachineInstanceMigration,
    columns=(
        Column("Phase", ".status.phase", "Where the migration is on its way."),
        Column("VMI", ".spec.vmiName", "Guest that is moved."),
        Column("Source", ".status.sourceNode", "Node that the guest leaves."),
        Column("Target", ".status.targetNode", "Node that the guest goes to."),
        Column("Progress", ".status.progress.percent", "How many percent are done.", "integer"),
        _age(),
        Column("Mode", ".status.progress.mode", "How the memory is copied.", priority=1),
        Column("Policy", ".status.migrationPolicy.name", "MigrationPolicy that was chosen.", priority=1),
        Column("Reason", ".status.reason", "Why it waits or failed, in one word."),
        _message(),
    ),
)

POOL = KindInfo(
    group=KUBEVIRT,
    version="v1",
    kind="VirtualMachinePool",
    plural="virtualmachinepools",
    singular="virtualmachinepool",
    short_names=("vmpool", "vmpools"),
    categories=("all",),
    view=kinds.VirtualMachinePool,
    columns=(
        Column("Desired", ".spec.replicas", "How many machines there should be.", "integer"),
        Column("Current", ".status.replicas", "How many machines there are.", "integer"),
        Column("Ready", ".status.readyReplicas", "How many are ready.", "integer"),
        Column("Updated", ".status.updatedReplicas", "How many have the current template.", "integer"),
        _age(),
        Column("Available", ".status.availableReplicas", "How many have been ready for long enough.", "integer", 1),
        Column("Unavailable", ".status.unavailableReplicas", "How many should be available and are not.", "integer", 1),
        Column("Surplus", ".status.surplusReplicas", "How many wait to be taken away.", "integer", 1),
        Column("Detached", ".status.detachedReplicas", "How many were detached and hold their number.", "integer", 1),
        _condition("Progressing", "Progressing", "Whether an update goes on, or got stuck.", priority=1),
        Column("Revision", ".status.updateRevision", "Revision of the current template.", priority=1),
    ),
    scale=Scale(".spec.replicas", ".status.replicas", ".status.labelSelector"),
)

SETTINGS = KindInfo(
    group=KUBEVIRT,
    version="v1",
    kind="KubeVirt",
    plural="kubevirts",
    singular="kubevirt",
    short_names=("kv", "kvs"),
    view=kinds.KubeVirt,
    columns=(
        _age(),
        Column("Phase", ".status.phase", "Whether these settings are in use."),
        Column("Version", ".status.observedKubeVirtVersion", "Version of the program that uses them."),
        _reason(),
        _message(),
    ),
)

POLICY = KindInfo(
    group=MIGRATIONS,
    version="v1alpha1",
    kind="MigrationPolicy",
    plural="migrationpolicies",
    singular="migrationpolicy",
    namespaced=False,
    view=kinds.MigrationPolicy,
    columns=(
        _condition("Accepted", "Accepted", "Whether the policy is in use."),
        Column("Instances", ".status.instances", "Running instances that it applies to.", "integer"),
        Column("Bandwidth", ".spec.bandwidthPerMigration", "Bytes per second that one migration may use."),
        Column("Auto-Converge", ".spec.allowAutoConverge", "Whether a busy guest is slowed down.", "boolean"),
        Column("Post-Copy", ".spec.allowPostCopy", "Whether the guest may go on before all its memory is there.", "boolean"),
        Column("Seconds-Per-GiB", ".spec.completionTimeoutPerGiB", "How long a migration may take.", "integer"),
        _age(),
        Column("Matching", ".status.matchingInstances", "Running instances that have its labels.", "integer", 1),
        Column("VMI-Labels", ".spec.selectors.virtualMachineInstanceSelector", "Labels of the machines it is for.", priority=1),
        Column("Namespace-Labels", ".spec.selectors.namespaceSelector", "Labels of the namespaces it is for.", priority=1),
    ),
)

JOB = KindInfo(
    group=SCHEDULING,
    version="v1alpha1",
    kind="PodMigrationJob",
    plural="podmigrationjobs",
    singular="podmigrationjob",
    short_names=("pmj",),
    namespaced=False,
    view=kinds.PodMigrationJob,
    columns=(
        Column("Phase", ".status.phase", "Where the job is in its life."),
        Column("Status", ".status.status", "The step that was last reached."),
        Column("Age", ".metadata.creationTimestamp", "How long ago the object was created.", "date"),
        Column("Node", ".status.nodeName", "Node of the moved pod."),
        Column("Reason", ".status.reason", "Why it waits or failed, in one word."),
        Column("PodNamespace", ".spec.podRef.namespace", "Namespace of the pod that is moved."),
        Column("Pod", ".spec.podRef.name", "Pod that is moved."),
        Column("NewPod", ".status.podRef.name", "Pod that took its place."),
        Column("TTL", ".spec.ttl", "Time that the job has.", priority=1),
        Column("Paused", ".spec.paused", "Whether the job waits to be released.", "boolean", 1),
        _message(),
    ),
)

RESERVATION = KindInfo(
    group=SCHEDULING,
    version="v1alpha1",
    kind="Reservation",
    plural="reservations",
    singular="reservation",
    short_names=("rsv",),
    namespaced=False,
    view=kinds.Reservation,
    columns=(
        Column("Phase", ".status.phase", "Whether the room is held."),
        Column("Node", ".status.nodeName", "Where the room is held."),
        Column("TTL", ".spec.ttl", "How long the room is held."),
        Column("Expires", ".status.expirationTime", "When the room is given up."),
        _age(),
        Column("Owner", ".status.currentOwners[*].name", "Pods that use the room.", priority=1),
        _reason(),
        _message(),
    ),
)

DATA_VOLUME = KindInfo(
    group=STORAGE,
    version="v1beta1",
    kind="DataVolume",
    plural="datavolumes",
    singular="datavolume",
    short_names=("dv", "dvs"),
    categories=("all",),
    view=kinds.DataVolume,
    columns=(
        Column("Phase", ".status.phase", "How far the content is."),
        Column("Progress", ".status.progress", "How much of the content is there."),
        Column("Restarts", ".status.restartCount", "How often the work was started again.", "integer"),
        _age(),
        Column("Claim", ".status.claimName", "Claim that holds the content.", priority=1),
        _reason(),
        _message(),
    ),
)

REVIEW = KindInfo(
    group=OWN,
    version="v1alpha1",
    kind="MigrationReview",
    plural="migrationreviews",
    singular="migrationreview",
    view=kinds.MigrationReview,
    columns=(
        Column("VMI", ".spec.vmiName", "Guest that is asked about."),
        _condition("Answered", "Answered", "Whether there is an answer."),
        Column("Outcome", ".status.outcome", "What would become of such a migration."),
        Column("Target", ".status.targetNode", "Node that the guest would go to."),
        Column("Policy", ".status.migrationPolicy.name", "MigrationPolicy that applies."),
        _age(),
        _reason(),
        _message(),
    ),
)

KINDS: tuple[KindInfo, ...] = (MACHINE, INSTANCE, MIGRATION, POOL, SETTINGS, POLICY, JOB, RESERVATION, DATA_VOLUME, REVIEW)

BY_GROUP_KIND: dict[tuple[str, str], KindInfo] = {(info.group, info.kind): info for info in KINDS}


def info_of(document: dict[str, Any]) -> KindInfo | None:
    """Which of our kinds a document is, by its apiVersion and kind; None for everything else."""
    group, slash, _ = str(document.get("apiVersion", "")).partition("/")
    return BY_GROUP_KIND.get((group if slash else "", str(document.get("kind", ""))))

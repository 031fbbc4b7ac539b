"""VirtualMachineInstance: one guest that runs, from its start to its end."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.kinds.base import Kind
from herder.api.kinds.domain import CPUFeature, Domain
from herder.api.kinds.migration_state import MigrationState, PhaseTransition
from herder.api.kinds.probes import Probe
from herder.api.kinds.volumes import Network, Volume
from herder.api.meta import Affinity, Condition, Toleration, TopologySpreadConstraint
from herder.api.views import NAME, SUBDOMAIN_OR_NONE, Bytes, Count, Labels, Quantity, Time, View, doc

EvictionStrategy = Literal["LiveMigrate", "LiveMigrateIfPossible", "External", "None"]
InstancePhase = Literal["Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "Unknown"]

# Some 68 years. Its pod has some seconds more, which have to fit into 64 bits.
LONGEST_GRACE = 2**31 - 1


class VirtualMachineInstanceSpec(View, frozen=True, kw_only=True):
    """What the guest is made of, where it may run and what happens to it when its node is emptied."""

    domain: Annotated[Domain, doc("The machine that the guest sees.")]
    volumes: Annotated[tuple[Volume, ...], doc("Content for the disks.", max_length=256, list_keys=("name",))] | None = None
    networks: Annotated[tuple[Network, ...], doc("Networks for the cards.", max_length=64, list_keys=("name",))] | None = None
    node_selector: Annotated[Labels, doc("Labels that the node must have.")] | None = None
    affinity: Annotated[Affinity, doc("Rules about nodes and neighbours.")] | None = None
    tolerations: Annotated[tuple[Toleration, ...], doc("Taints that do not keep it away.", max_length=256)] | None = None
    topology_spread_constraints: (
        Annotated[tuple[TopologySpreadConstraint, ...], doc("How evenly its like are spread.", max_length=64)] | None
    ) = None
    priority_class_name: Annotated[str, doc("PriorityClass of its pod.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))] | None = None
    scheduler_name: (
        Annotated[
            str, doc("Scheduler that places its pod; herder-scheduler when absent.", max_length=253, rules=(SUBDOMAIN_OR_NONE,))
        ]
        | None
    ) = None
    termination_grace_period_seconds: (
        Annotated[
            Bytes, doc("Seconds that the guest gets to shut down before it is switched off; 30 when absent.", maximum=LONGEST_GRACE)
        ]
        | None
    ) = None
    eviction_strategy: (
        Annotated[
            EvictionStrategy,
            doc(
                "What an eviction does: LiveMigrate (refuse it and move the guest), LiveMigrateIfPossible, External (mark it"
                " and leave it to someone else) or None (let it go). The cluster's default when absent."
            ),
        ]
        | None
    ) = None
    start_strategy: Annotated[Literal["Paused"], doc("Paused: the guest is prepared and waits to be unpaused.")] | None = None
    liveness_probe: Annotated[Probe, doc("Asks whether the guest lives; if not, it is restarted.")] | None = None
    readiness_probe: Annotated[Probe, doc("Asks whether the guest is ready; sets the condition Ready.")] | None = None
    hostname: Annotated[str, doc("Host name of the guest; its name when absent.", rules=(NAME,), max_length=63)] | None = None
    subdomain: Annotated[str, doc("Domain below the namespace's.", rules=(NAME,), max_length=63)] | None = None


class StartedCPU(View, frozen=True, kw_only=True):
    """The processor that the guest was started with. Every later migration requires it."""

    model: Annotated[str, doc("Model, for example Skylake-Client-v1.", max_length=128)] | None = None
    vendor: Annotated[str, doc("Vendor, for example Intel.", max_length=128)] | None = None
    features: Annotated[tuple[CPUFeature, ...], doc("Features beyond the model.", max_length=1024, list_keys=("name",))] | None = (
        None
    )
    sockets: Annotated[Count, doc("Sockets.")] | None = None
    cores: Annotated[Count, doc("Cores per socket.")] | None = None
    threads: Annotated[Count, doc("Threads per core.")] | None = None


class StartedMemory(View, frozen=True, kw_only=True):
    """The memory that the guest was started with."""

    guest_at_boot: Annotated[Quantity, doc("Memory at the start.")] | None = None
    guest_current: Annotated[Quantity, doc("Memory now.")] | None = None


class InterfaceStatus(View, frozen=True, kw_only=True):
    """A network card as it is."""

    name: Annotated[str, doc("Name of the interface.", max_length=63)]
    ip_address: Annotated[str, doc("First address.", max_length=64)] | None = None
    ip_addresses: Annotated[tuple[str, ...], doc("All addresses.", max_length=64)] | None = None
    mac: Annotated[str, doc("Hardware address.", max_length=32)] | None = None


class ClaimInfo(View, frozen=True, kw_only=True):
    """The claim behind a volume."""

    claim_name: Annotated[str, doc("Name of the claim.", max_length=253)] | None = None
    access_modes: Annotated[tuple[str, ...], doc("How it may be used: ReadWriteOnce, ReadWriteMany, …", max_length=8)] | None = None
    volume_mode: Annotated[str, doc("Filesystem or Block.", max_length=32)] | None = None
    capacity: Annotated[dict[str, Quantity], doc("How large it is.", max_properties=16)] | None = None


class VolumeStatus(View, frozen=True, kw_only=True):
    """A volume as it is."""

    name: Annotated[str, doc("Name of the volume.", max_length=63)]
    target: Annotated[str, doc("Name of the disk in the guest, for example vda.", max_length=64)] | None = None
    phase: Annotated[Literal["Pending", "Bound", "Ready", "Failed"], doc("How far it is.")] | None = None
    reason: Annotated[str, doc("One word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why.", max_length=4096)] | None = None
    persistent_volume_claim_info: Annotated[ClaimInfo, doc("The claim behind it.")] | None = None


class VirtualMachineInstanceStatus(View, frozen=True, kw_only=True):
    """What has become of the guest, and why."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: Annotated[InstancePhase, doc("Where it is in its life.")] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why, and what to do next.", max_length=32768)] | None = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc("Ready, LiveMigratable, Paused, Provisioned, …", max_length=64, list_keys=("type",)),
        ]
        | None
    ) = None
    phase_transition_timestamps: (
        Annotated[tuple[PhaseTransition, ...], doc("When each phase was reached.", max_length=32)] | None
    ) = None
    node_name: Annotated[str, doc("Node on which the guest runs.", max_length=253)] | None = None
    launcher_pod_name: Annotated[str, doc("Pod in which the guest runs.", max_length=253)] | None = None
    active_pods: (
        Annotated[dict[str, str], doc("Pods of this instance by identity, with their nodes.", max_properties=64)] | None
    ) = None
    runtime: Annotated[str, doc("What runs the guest: qemu or simulated.", max_length=63)] | None = None
    accelerator: Annotated[str, doc("How its processor runs: kvm or tcg.", max_length=63)] | None = None
    machine_type: Annotated[str, doc("Machine type as started.", max_length=63)] | None = None
    cpu: Annotated[StartedCPU, doc("Processor as started.")] | None = None
    memory: Annotated[StartedMemory, doc("Memory as started.")] | None = None
    interfaces: (
        Annotated[tuple[InterfaceStatus, ...], doc("Network cards as they are.", max_length=64, list_keys=("name",))] | None
    ) = None
    volume_status: Annotated[tuple[VolumeStatus, ...], doc("Volumes as they are.", max_length=256, list_keys=("name",))] | None = (
        None
    )
    migration_state: Annotated[MigrationState, doc("The migration that is going on, or the last one.")] | None = None
    evacuation_node_name: Annotated[str, doc("Node that the guest must leave, if any.", max_length=253)] | None = None
    start_time: Annotated[Time, doc("When the guest was started.", nullable=True)] | None = None


class VirtualMachineInstance(Kind, frozen=True, kw_only=True):
    """One guest that runs, from its start to its end."""

    spec: Annotated[VirtualMachineInstanceSpec, doc("What is wanted.")]
    status: Annotated[VirtualMachineInstanceStatus, doc("What is.")] | None = None

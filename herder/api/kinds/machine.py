"""VirtualMachine: a machine that outlives its instances, with its disks and the rule by which it runs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from herder.api.kinds.base import Kind
from herder.api.kinds.data_volume import DataVolumeSpec
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.meta import Condition, TemplateMeta
from herder.api.views import SUBDOMAIN, Bytes, Count, Labels, Time, View, doc, exactly_one

_TEMPLATE = (
    "What each instance looks like. Labels, annotations and evictionStrategy reach one that runs; all else takes effect at the next"
    " start."
)
_SUSPENDED = (
    "true: the guest's memory is saved into the claim <name>-memory, and the machine takes nothing of any node; false: the guest"
    " goes on from there. A machine that cannot be saved goes on, and its condition Suspended says why."
)
RunStrategy = Literal["Always", "RerunOnFailure", "Manual", "Halted", "Once"]


class DataVolumeTemplateMeta(View, frozen=True, kw_only=True):
    """Metadata of a DataVolume that is made for the machine."""

    name: Annotated[str, doc("Name of the DataVolume.", rules=(SUBDOMAIN,), max_length=253)]
    namespace: Annotated[str, doc("Ignored: it is made in the machine's namespace.", max_length=63)] | None = None
    labels: Annotated[Labels, doc("Labels of the DataVolume.")] | None = None
    annotations: Annotated[dict[str, str], doc("Annotations of the DataVolume.")] | None = None
    creation_timestamp: Annotated[Time, doc("Ignored: tools that print templates write an empty one.", nullable=True)] | None = None


class DataVolumeTemplate(View, frozen=True, kw_only=True):
    """A DataVolume that is made for the machine and goes with it."""

    api_version: Annotated[str, doc("Ignored.", max_length=317)] | None = None
    kind: Annotated[str, doc("Ignored.", max_length=63)] | None = None
    metadata: Annotated[DataVolumeTemplateMeta, doc("Its name, labels and annotations.")]
    spec: Annotated[DataVolumeSpec, doc("The claim and its content.")]


class InstanceTemplate(View, frozen=True, kw_only=True):
    """What each instance of the machine looks like."""

    metadata: Annotated[TemplateMeta, doc("Labels and annotations of the instance and its pod.", nullable=True)] | None = None
    spec: Annotated[VirtualMachineInstanceSpec, doc("The instance.")]


class VirtualMachineSpec(View, frozen=True, kw_only=True):
    """When the machine runs and what it is made of."""

    RULES = (exactly_one("running", "runStrategy"),)

    running: Annotated[bool, doc("true: keep it running (as Always); false: keep it off (as Halted).")] | None = None
    run_strategy: (
        Annotated[
            RunStrategy,
            doc(
                "Always (start it again whatever happens), RerunOnFailure (start it again unless it shut itself down), Manual"
                " (start and stop only when told), Halted (keep it off), Once (start it once)."
            ),
        ]
        | None
    ) = None
    suspended: Annotated[bool, doc(_SUSPENDED)] | None = None
    template: Annotated[InstanceTemplate, doc(_TEMPLATE)]
    data_volume_templates: (
        Annotated[tuple[DataVolumeTemplate, ...], doc("DataVolumes that are made for the machine and go with it.", max_length=64)]
        | None
    ) = None


class StartFailure(View, frozen=True, kw_only=True):
    """How starting fails, and when it is tried again."""

    consecutive_fail_count: (
        Annotated[Count, doc("How often in a row it ended before it ran, or before its liveness probe passed.")] | None
    ) = None
    consecutive_crash_count: (
        Annotated[Count, doc("How often in a row it crashed soon after it had started, or others ended it.")] | None
    ) = None
    last_failed_vmi_uid: Annotated[str, doc("Identity of the instance that failed last.", max_length=128)] | None = field(
        default=None, name="lastFailedVMIUID"
    )
    first_failure_timestamp: Annotated[Time, doc("When this series of failures began.", nullable=True)] | None = None
    retry_after_timestamp: Annotated[Time, doc("When it is tried again.", nullable=True)] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why the last start failed.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why the last start failed.", max_length=32768)] | None = None


class LastReady(View, frozen=True, kw_only=True):
    """A time during which it was Ready."""

    revision: Annotated[str, doc("Revision of its pool's template that it ran.", max_length=253)] | None = None
    since: Annotated[Time, doc("When it became Ready.", nullable=True)] | None = None
    until: Annotated[Time, doc("When it ceased to be.", nullable=True)] | None = None


class VirtualMachineStatus(View, frozen=True, kw_only=True):
    """What has become of the machine, and why."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    created: Annotated[bool, doc("Whether there is an instance.")] | None = None
    ready: Annotated[bool, doc("Whether the instance runs and is ready.")] | None = None
    printable_status: (
        Annotated[
            str,
            doc(
                "The state in one word: Provisioning, Starting, Running, Stopping, Stopped, Paused, Suspending, Suspended,"
                " Resuming, Migrating, Terminating,"
                " CrashLoopBackOff, ErrorUnschedulable, DataVolumeError, …",
                max_length=64,
            ),
        ]
        | None
    ) = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why, and what to do next.", max_length=32768)] | None = None
    run_strategy: Annotated[RunStrategy, doc("Run strategy that was last acted upon.")] | None = None
    node_name: Annotated[str, doc("Node on which the instance runs.", max_length=253)] | None = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc("Ready, Paused, LiveMigratable, RestartRequired, Suspended, Failure, …", max_length=64, list_keys=("type",)),
        ]
        | None
    ) = None
    start_failure: Annotated[StartFailure, doc("How starting fails; absent while it does not.")] | None = None
    ready_revision: (
        Annotated[
            str,
            doc(
                "Revision of its pool's template on which it was Ready and has proven itself; `none`: it had no revision then.",
                max_length=253,
            ),
        ]
        | None
    ) = None
    last_ready: Annotated[LastReady, doc("When it was last Ready and ceased to be; absent until it did.")] | None = None
    last_instance_uid: Annotated[str, doc("Identity of the instance that was made last.", max_length=128)] | None = field(
        default=None, name="lastInstanceUID"
    )
    observed_start_request: (
        Annotated[str, doc("The value of herder.dev/start-requested that was last acted upon.", max_length=1024)] | None
    ) = None


class VirtualMachine(Kind, frozen=True, kw_only=True):
    """A machine that outlives its instances, with its disks and the rule by which it runs."""

    spec: Annotated[VirtualMachineSpec, doc("What is wanted.")]
    status: Annotated[VirtualMachineStatus, doc("What is.")] | None = None

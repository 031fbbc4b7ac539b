"""PodMigrationJob: moves one pod safely, by reserving room first (seed 004)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from herder.api.kinds.base import Kind
from herder.api.kinds.reservation import ReservationFields
from herder.api.meta import Condition, ObjectReference, TemplateMeta
from herder.api.views import Bytes, Count, Duration, Rule, Time, View, at_most_one, doc, unchanging

JobMode = Literal["ReservationFirst", "EvictDirectly"]
JobPhase = Literal["Pending", "Running", "Succeed", "Failed", "Aborted"]
# Placement: of a pod that has no node yet.
JobStrategy = Literal["Reservation", "Eviction", "Placement", "LiveMigration", "Surge"]

_AGAIN = "delete this job (which aborts it) and create another"


def _held(parent: str, name: str) -> str:
    return f"(has({parent}.reservationOptions) && has({parent}.reservationOptions.{name}))"


def _unchanging_option(name: str) -> Rule:
    new, old = _held("self", name), _held("oldSelf", name)
    same = f"self.reservationOptions.{name} == oldSelf.reservationOptions.{name}"
    return Rule(
        f"{new} == {old} && (!{new} || {same})", f"reservationOptions.{name} is immutable: {_AGAIN}", field=".reservationOptions"
    )


# Ours and the user's alike are written once: afterwards the job must not wander from one reservation to another.
_REFERENCE_ONCE = Rule(
    f"!{_held('oldSelf', 'reservationRef')} || ({_held('self', 'reservationRef')}"
    " && self.reservationOptions.reservationRef == oldSelf.reservationOptions.reservationRef)",
    f"reservationOptions.reservationRef can be set once and then stays: {_AGAIN}",
    field=".reservationOptions",
)


class PodReference(View, frozen=True, kw_only=True):
    """The pod that is to be moved."""

    namespace: Annotated[str, doc("Namespace of the pod.", min_length=1, max_length=63)]
    name: Annotated[str, doc("Name of the pod.", min_length=1, max_length=253)]
    uid: Annotated[str, doc("Identity of the pod; where given, no other pod of that name is moved.", max_length=128)] | None = None
    api_version: Annotated[Literal["v1"], doc("v1, if given.")] | None = None
    kind: Annotated[Literal["Pod"], doc("Pod, if given.")] | None = None
    resource_version: Annotated[str, doc("Ignored.", max_length=128)] | None = None
    field_path: Annotated[str, doc("Ignored.", max_length=1024)] | None = None


class ReservationTemplate(View, frozen=True, kw_only=True):
    """What the reservation should have beyond what the pod itself asks for."""

    metadata: Annotated[TemplateMeta, doc("Labels and annotations of the reservation.", nullable=True)] | None = None
    spec: Annotated[ReservationFields, doc("Fields of the reservation; those that are set win over the pod's.")] | None = None


class PreemptionOptions(View, frozen=True, kw_only=True):
    """Reserved for later: whether other pods may be moved away to make room. Refused unless it is empty."""

    # Kept until it is judged: what is cut off without a word is not refused.
    OPEN = True


class ReservationOptions(View, frozen=True, kw_only=True):
    """How room is reserved."""

    reservation_ref: (
        Annotated[
            ObjectReference,
            doc("A reservation that exists already; it is used as it is. Otherwise one is made, and written here."),
        ]
        | None
    ) = None
    template: Annotated[ReservationTemplate, doc("How the reservation that is made should look. Seldom needed.")] | None = None
    preemption_options: Annotated[PreemptionOptions, doc("Reserved for later.")] | None = None


class Preconditions(View, frozen=True, kw_only=True):
    """What must hold for a deletion to happen."""

    uid: Annotated[str, doc("Identity that the object must have.", max_length=128)] | None = None
    resource_version: Annotated[str, doc("Version that the object must have.", max_length=128)] | None = None


class DeleteOptions(View, frozen=True, kw_only=True):
    """How the pod is deleted or evicted."""

    RULES = (
        at_most_one("orphanDependents", "propagationPolicy"),
        Rule(
            "!has(self.dryRun)",
            "must be left out: a pod that is only tried to be deleted stays; dryRun of jobs.yaml in herder-config tries whole jobs",
            field=".dryRun",
            reason="FieldValueForbidden",
        ),
    )

    api_version: Annotated[str, doc("Ignored.", max_length=317)] | None = None
    kind: Annotated[str, doc("Ignored.", max_length=63)] | None = None
    grace_period_seconds: Annotated[Bytes, doc("Seconds that the pod gets to end; its own when absent.")] | None = None
    preconditions: Annotated[Preconditions, doc("What must hold for it to happen.")] | None = None
    orphan_dependents: Annotated[bool, doc("Old form of propagationPolicy.")] | None = None
    propagation_policy: (
        Annotated[Literal["Orphan", "Background", "Foreground"], doc("What becomes of what the pod owns.")] | None
    ) = None
    dry_run: Annotated[tuple[Literal["All"], ...], doc("Refused: a job deletes, or it does not.", max_length=1)] | None = None


class PodMigrationJobSpec(View, frozen=True, kw_only=True):
    """Which pod is moved, and how."""

    RULES = (
        unchanging("podRef", _AGAIN, required=True),
        unchanging("mode", _AGAIN),
        unchanging("ttl", _AGAIN),
        unchanging("deleteOptions", _AGAIN),
        _unchanging_option("template"),
        _unchanging_option("preemptionOptions"),
        _REFERENCE_ONCE,
    )
    REFUSED = (
        ("timeoutInSeconds", 'there is no timeoutInSeconds: write the time in ttl, for example ttl: "300s"'),
        ("TimeoutInSeconds", 'there is no TimeoutInSeconds: write the time in ttl, for example ttl: "300s"'),
    )

    pod_ref: Annotated[PodReference, doc("The pod that is to be moved.")]
    paused: Annotated[bool, doc("Whether the job waits; its time does not run meanwhile. Default false.")] | None = None
    ttl: (
        Annotated[Duration, doc("Time that the job has once it runs, for example 5m; 0s for ever. Default from the configuration.")]
        | None
    ) = None
    mode: (
        Annotated[
            JobMode,
            doc(
                "ReservationFirst (reserve room, then evict, then see that the replacement took the room) or EvictDirectly (just"
                " evict). Default from the configuration, ReservationFirst."
            ),
        ]
        | None
    ) = None
    reservation_options: Annotated[ReservationOptions, doc("How room is reserved.")] | None = None
    delete_options: Annotated[DeleteOptions, doc("How the pod is deleted or evicted.")] | None = None


class PreemptedReservation(View, frozen=True, kw_only=True):
    """A reservation that was made for a pod that had to make room."""

    namespace: Annotated[str, doc("Namespace of the reservation.", max_length=63)] | None = None
    name: Annotated[str, doc("Name of the reservation.", max_length=253)] | None = None
    node_name: Annotated[str, doc("Node on which it is.", max_length=253)] | None = None
    phase: Annotated[str, doc("Its phase.", max_length=64)] | None = None
    preempted_pod_ref: Annotated[ObjectReference, doc("The pod that had to make room.")] | None = None
    pods_ref: Annotated[tuple[ObjectReference, ...], doc("Pods that took its place.", max_length=256)] | None = None


class PodMigrationJobStatus(View, frozen=True, kw_only=True):
    """How the job goes, and why."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: Annotated[JobPhase, doc("Pending, Running, Succeed, Failed or Aborted.")] | None = None
    status: Annotated[str, doc("The step that was last reached, for example ReservationCreated.", max_length=64)] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why.", max_length=32768)] | None = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc(
                "ReservationCreated, ReservationScheduled, Preemption, Eviction, PodScheduled, PodBoundReservation and"
                " ReservationBound.",
                max_length=64,
                list_keys=("type",),
            ),
        ]
        | None
    ) = None
    node_name: Annotated[str, doc("Node of the moved pod.", max_length=253)] | None = None
    pod_ref: Annotated[ObjectReference, doc("The pod that took the place of the moved one.")] | None = None
    migration_ref: Annotated[ObjectReference, doc("For a pod of a machine: the live migration that moves it.")] | None = None
    preempted_pods_ref: Annotated[tuple[ObjectReference, ...], doc("Pods that had to make room.", max_length=256)] | None = None
    preempted_pods_reservation: (
        Annotated[tuple[PreemptedReservation, ...], doc("Reservations made for pods that had to make room.", max_length=256)] | None
    ) = None
    mode: Annotated[JobMode, doc("Mode that the job runs with.")] | None = None
    strategy: (
        Annotated[
            JobStrategy,
            doc(
                "How the pod is moved: Reservation, Eviction, Placement (it had no node yet), LiveMigration (it is a machine's) or"
                " Surge (its replacement comes first)."
            ),
        ]
        | None
    ) = None
    pod_uid: (
        Annotated[str, doc("Identity of the pod that is moved: another one of its name is not meant.", max_length=128)] | None
    ) = msgspec.field(default=None, name="podUID")
    source_node: Annotated[str, doc("Node that the pod leaves.", max_length=253)] | None = None
    controller_ref: Annotated[ObjectReference, doc("What makes pods like the one that is moved.")] | None = None
    workload_ref: Annotated[ObjectReference, doc("What the pod is a replica of.")] | None = None
    ttl: Annotated[Duration, doc("Time that the job runs with.")] | None = None
    waiting_since: Annotated[Time, doc("Since when the job is held by what reason and message say.", nullable=True)] | None = None
    pending_since: (
        Annotated[Time, doc("Since when the job is Pending, pauses left out: pendingTTL counts from then.", nullable=True)] | None
    ) = None
    start_time: Annotated[Time, doc("When the job began to run.", nullable=True)] | None = None
    running_seconds: Annotated[Count, doc("Seconds of its time that passed before it was last paused.")] | None = None
    disruption_time: (
        Annotated[
            Time,
            doc(
                "When the pod was first told to go or, where its replacement comes first, was let go by its ReplicaSet.",
                nullable=True,
            ),
        ]
        | None
    ) = None
    completion_time: Annotated[Time, doc("When the job was over.", nullable=True)] | None = None


class PodMigrationJob(Kind, frozen=True, kw_only=True):
    """Moves one pod safely, by reserving room for its replacement first."""

    spec: Annotated[PodMigrationJobSpec, doc("What is wanted. Only paused can be changed later.")]
    status: Annotated[PodMigrationJobStatus, doc("What is.")] | None = None

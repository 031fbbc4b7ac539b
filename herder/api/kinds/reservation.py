"""Reservation: room on a node, held for pods that do not exist yet (seed 004)."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.core.pods import PodTemplateSpec
from herder.api.kinds.base import Kind
from herder.api.kinds.domain import ResourceRequirements
from herder.api.meta import (
    Affinity,
    Condition,
    LabelSelector,
    ObjectReference,
    TemplateMeta,
    Toleration,
    TopologySpreadConstraint,
)
from herder.api.views import Bytes, Duration, Labels, Quantity, Rule, Time, View, at_most_one, doc, unchanging

ReservationPhase = Literal["Pending", "Available", "Succeeded", "Failed"]

_TEMPLATE = "A pod that the room must be enough for."
_OWNERS = "Who may use the room; one entry must fit."
_ANOTHER = "create another reservation, and delete this one"
_SOMEONE = Rule(
    "has(self.object) || has(self.controller) || has(self.labelSelector)",
    "must say who may use the room: object, controller or labelSelector",
)


class ReservedContainer(View, frozen=True, kw_only=True):
    """A container of the template. Beyond its resources it is kept as written."""

    OPEN = True

    name: Annotated[str, doc("Name of the container.", min_length=1, max_length=63)]
    image: Annotated[str, doc("Image of the container; not fetched for a reservation.", max_length=1024)] | None = None
    resources: Annotated[ResourceRequirements, doc("Room that the container needs.")] | None = None


class ReservedPodSpec(View, frozen=True, kw_only=True):
    """The part of a pod's spec that decides where it fits. The rest is kept as written."""

    OPEN = True

    containers: Annotated[tuple[ReservedContainer, ...], doc("Containers whose room is held.", max_length=256)] | None = None
    init_containers: (
        Annotated[tuple[ReservedContainer, ...], doc("Containers that run first; the larger need counts.", max_length=256)] | None
    ) = None
    overhead: Annotated[dict[str, Quantity], doc("Room beyond the containers'.", max_properties=64)] | None = None
    node_name: Annotated[str, doc("A certain node.", max_length=253)] | None = None
    node_selector: Annotated[Labels, doc("Labels that the node must have.")] | None = None
    affinity: Annotated[Affinity, doc("Rules about nodes and neighbours.")] | None = None
    tolerations: Annotated[tuple[Toleration, ...], doc("Taints that do not keep it away.", max_length=256)] | None = None
    topology_spread_constraints: (
        Annotated[tuple[TopologySpreadConstraint, ...], doc("How evenly its like are spread.", max_length=64)] | None
    ) = None
    priority_class_name: Annotated[str, doc("PriorityClass by which it is placed.", max_length=253)] | None = None
    priority: Annotated[int, doc("Priority by which it is placed.", format="int32")] | None = None
    scheduler_name: Annotated[str, doc("Scheduler that places it; herder-scheduler when absent.", max_length=253)] | None = None


class ReservedPodMeta(TemplateMeta, frozen=True, kw_only=True):
    """Metadata of the pods that the room is for, as far as placement looks at them."""

    namespace: Annotated[str, doc("Namespace of the pods that the room is for; any when absent.", max_length=63)] | None = None


class ReservedPodTemplate(View, frozen=True, kw_only=True):
    """A pod that the room must be enough for."""

    metadata: (
        Annotated[ReservedPodMeta, doc("Namespace, labels and annotations, as far as placement looks at them.", nullable=True)]
        | None
    ) = None
    spec: Annotated[ReservedPodSpec, doc("What the pod needs.")] | None = None


class ReservationController(View, frozen=True, kw_only=True):
    """The workload that will make the pods."""

    api_version: Annotated[str, doc("Group and version of the workload.", max_length=317)] | None = None
    kind: Annotated[str, doc("Kind of the workload.", min_length=1, max_length=63)]
    name: Annotated[str, doc("Name of the workload.", min_length=1, max_length=253)]
    namespace: Annotated[str, doc("Namespace of the workload.", max_length=63)] | None = None
    uid: Annotated[str, doc("Identity of the workload.", max_length=128)] | None = None
    controller: Annotated[bool, doc("Whether the workload manages the pods.")] | None = None
    block_owner_deletion: Annotated[bool, doc("Ignored.")] | None = None


class ReservationOwner(View, frozen=True, kw_only=True):
    """Pods that may use the room; all fields that are set must fit."""

    RULES = (_SOMEONE,)

    object: Annotated[ObjectReference, doc("This one pod.")] | None = None
    controller: Annotated[ReservationController, doc("Pods of this workload.")] | None = None
    label_selector: Annotated[LabelSelector, doc("Pods with these labels.")] | None = None


class _ReservationTerms(View, frozen=True, kw_only=True):
    """How long the room is held and how often it is given away."""

    RULES = (at_most_one("ttl", "expires"),)

    ttl: Annotated[Duration, doc("How long the room is held, from its creation; 0s for ever. Default 24h.")] | None = None
    expires: Annotated[Time, doc("When the room is given up; instead of ttl.")] | None = None
    allocate_once: Annotated[bool, doc("Whether the first pod that takes it ends the reservation. Default true.")] | None = None
    unschedulable: Annotated[bool, doc("Whether no further pod may take it. Default false.")] | None = None


class ReservationFields(_ReservationTerms, frozen=True, kw_only=True):
    """A reservation of which parts may still be missing, as in the template of a PodMigrationJob."""

    template: Annotated[ReservedPodTemplate, doc(_TEMPLATE)] | None = None
    owners: Annotated[tuple[ReservationOwner, ...], doc(_OWNERS, min_length=1, max_length=64)] | None = None


class ReservationSpec(_ReservationTerms, frozen=True, kw_only=True):
    """How much room, for whom and for how long."""

    RULES = (
        *_ReservationTerms.RULES,
        unchanging("template", _ANOTHER, required=True),
        unchanging("owners", _ANOTHER, required=True),
    )

    template: Annotated[ReservedPodTemplate, doc(_TEMPLATE)]
    owners: Annotated[tuple[ReservationOwner, ...], doc(_OWNERS, min_length=1, max_length=64)]


class ReservationStatus(View, frozen=True, kw_only=True):
    """Where the room is and who uses it."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: Annotated[ReservationPhase, doc("Pending, Available, Succeeded or Failed.")] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why.", max_length=32768)] | None = None
    node_name: Annotated[str, doc("Node on which the room is held.", max_length=253)] | None = None
    conditions: Annotated[tuple[Condition, ...], doc("Scheduled, Ready.", max_length=64, list_keys=("type",))] | None = None
    current_owners: Annotated[tuple[ObjectReference, ...], doc("Pods that use the room.", max_length=256)] | None = None
    allocatable: Annotated[dict[str, Quantity], doc("Room that is held.", max_properties=64)] | None = None
    allocated: Annotated[dict[str, Quantity], doc("Room that is used.", max_properties=64)] | None = None
    expiration_time: Annotated[Time, doc("When the room will be given up.", nullable=True)] | None = None


class Reservation(Kind, frozen=True, kw_only=True):
    """Room on a node, held for pods that do not exist yet."""

    spec: Annotated[ReservationSpec, doc("What is wanted.")]
    status: Annotated[ReservationStatus, doc("What is.")] | None = None


class ReservationToPlace(_ReservationTerms, frozen=True, kw_only=True):
    """The spec as those read it who place pods: the template is a whole pod's."""

    template: PodTemplateSpec = PodTemplateSpec()
    owners: tuple[ReservationOwner, ...] = ()


class ReservationView(Kind, frozen=True, kw_only=True):
    """A Reservation as those read it who place pods."""

    spec: ReservationToPlace = ReservationToPlace()
    status: ReservationStatus = ReservationStatus()

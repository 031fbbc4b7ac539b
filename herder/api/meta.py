"""What objects of every kind share: metadata, references, conditions, selectors, and the rules by which pods are placed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from herder.api.views import Labels, ObjectName, Time, View, doc


class OwnerReference(View, frozen=True, kw_only=True):
    """An object that this one belongs to: when all owners are gone, this one goes too."""

    api_version: Annotated[str, doc("Group and version of the owner.")]
    kind: Annotated[str, doc("Kind of the owner.")]
    name: Annotated[str, doc("Name of the owner, in the same namespace (or cluster-scoped).")]
    uid: Annotated[str, doc("Identity of the owner: another object of the same name is not it.")]
    controller: Annotated[bool, doc("Whether this owner is the one that manages the object.")] | None = None
    block_owner_deletion: Annotated[bool, doc("Whether a foreground deletion of the owner waits for this object.")] | None = None


class ObjectMeta(View, frozen=True, kw_only=True):
    """Standard metadata of a stored object."""

    name: Annotated[str, doc("Name, unique among the objects of this kind in the namespace.")] | None = None
    generate_name: Annotated[str, doc("Prefix from which the server makes a unique name.")] | None = None
    namespace: Annotated[str, doc("Namespace of the object; empty for cluster-scoped kinds.")] | None = None
    uid: Annotated[str, doc("Identity of the object, never used twice.")] | None = None
    resource_version: Annotated[str, doc("Version of this state of the object; opaque.")] | None = None
    generation: Annotated[int, doc("Counts the changes to the spec.")] | None = None
    creation_timestamp: Annotated[Time, doc("When the object was created.")] | None = None
    deletion_timestamp: Annotated[Time, doc("Set once deletion was asked for.")] | None = None
    deletion_grace_period_seconds: Annotated[int, doc("Seconds the object may take to end.")] | None = None
    labels: Annotated[Labels, doc("Pairs by which objects are selected.")] | None = None
    annotations: Annotated[dict[str, str], doc("Pairs that carry notes for people and tools.")] | None = None
    owner_references: Annotated[tuple[OwnerReference, ...], doc("Objects this one belongs to.")] | None = None
    finalizers: Annotated[tuple[str, ...], doc("Names that must be removed before the object goes.")] | None = None


class TemplateMeta(View, frozen=True, kw_only=True):
    """Metadata that a template gives to the objects made from it."""

    name: Annotated[str, doc("Ignored: the name is made by the controller.", max_length=253)] | None = None
    namespace: Annotated[str, doc("Ignored: objects are made in the namespace of the template's owner.", max_length=63)] | None = (
        None
    )
    labels: Annotated[Labels, doc("Labels of the objects made from the template.")] | None = None
    annotations: Annotated[dict[str, str], doc("Annotations of the objects made from the template.")] | None = None
    creation_timestamp: Annotated[Time, doc("Ignored: tools that print templates write an empty one.", nullable=True)] | None = None


class ListMeta(View, frozen=True, kw_only=True):
    """Metadata of a list answer."""

    resource_version: Annotated[str, doc("State of the collection that this list shows.")] | None = None
    continue_: Annotated[str, doc("Token for the next page.")] | None = field(default=None, name="continue")
    remaining_item_count: Annotated[int, doc("How many objects the following pages hold.")] | None = None


class Condition(View, frozen=True, kw_only=True):
    """One observation about an object: what, whether, since when and why."""

    type: Annotated[str, doc("What is observed, in CamelCase.", min_length=1, max_length=316)]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    observed_generation: Annotated[int, doc("Generation of the spec that this was judged by.", ge=0, format="int64")] | None = None
    last_probe_time: Annotated[Time, doc("When it was last looked at.", nullable=True)] | None = None
    last_transition_time: Annotated[Time, doc("When the status last changed.", nullable=True)] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why, for programs.", max_length=1024)] | None = None
    message: Annotated[str, doc("A sentence saying why, for people.", max_length=32768)] | None = None


class ObjectReference(View, frozen=True, kw_only=True):
    """Points to an object of any kind. Which fields count is said where it is used."""

    api_version: Annotated[str, doc("Group and version of the object.", max_length=317)] | None = None
    kind: Annotated[str, doc("Kind of the object.", max_length=63)] | None = None
    namespace: Annotated[str, doc("Namespace of the object; empty for cluster-scoped kinds.", max_length=63)] | None = None
    name: Annotated[str, doc("Name of the object.", max_length=253)] | None = None
    uid: Annotated[str, doc("Identity of the object; where given, no other will do.", max_length=128)] | None = None
    resource_version: Annotated[str, doc("Version of the object that is meant.", max_length=128)] | None = None
    field_path: Annotated[str, doc("Part of the object that is meant.", max_length=1024)] | None = None


class LocalObjectReference(View, frozen=True, kw_only=True):
    """Names an object in the same namespace."""

    name: Annotated[ObjectName, doc("Name of the object.")]


class LabelSelectorRequirement(View, frozen=True, kw_only=True):
    """One test of one label."""

    key: Annotated[str, doc("Label key that is tested.", max_length=317)]
    operator: Annotated[Literal["In", "NotIn", "Exists", "DoesNotExist"], doc("How the label is tested.")]
    values: (
        Annotated[tuple[str, ...], doc("Values for In and NotIn (at least one); none for Exists and DoesNotExist.", max_length=256)]
        | None
    ) = None


class LabelSelector(View, frozen=True, kw_only=True):
    """Selects objects by label; every part must hold. An empty selector selects everything."""

    match_labels: Annotated[Labels, doc("Pairs that must all be among the labels.")] | None = None
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], doc("Tests that must all hold.", max_length=64)] | None = (
        None
    )


class NodeSelectorRequirement(View, frozen=True, kw_only=True):
    """One test of one label or field of a node."""

    key: Annotated[str, doc("Label key, or field name, that is tested.", max_length=317)]
    operator: Annotated[Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"], doc("How it is tested.")]
    values: (
        Annotated[
            tuple[str, ...],
            doc(
                "Values for In and NotIn (at least one), one integer for Gt and Lt, none for Exists and DoesNotExist.",
                max_length=512,
            ),
        ]
        | None
    ) = None


class NodeSelectorTerm(View, frozen=True, kw_only=True):
    """Tests of a node that must all hold. An empty term matches no node."""

    match_expressions: Annotated[tuple[NodeSelectorRequirement, ...], doc("Tests of the node's labels.", max_length=64)] | None = (
        None
    )
    match_fields: (
        Annotated[
            tuple[NodeSelectorRequirement, ...], doc("Tests of the node's fields; only metadata.name is known.", max_length=64)
        ]
        | None
    ) = None


class NodeSelector(View, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], doc("Terms; a node that satisfies one is allowed.", max_length=64)]


class PreferredSchedulingTerm(View, frozen=True, kw_only=True):
    """A wish about the node, with its weight."""

    weight: Annotated[int, doc("How much the wish counts, 1 to 100.", ge=1, le=100, format="int32")]
    preference: Annotated[NodeSelectorTerm, doc("What is wished for.")]


class NodeAffinity(View, frozen=True, kw_only=True):
    """Which nodes are allowed and which are preferred."""

    required: Annotated[NodeSelector, doc("Nodes that are allowed when the pod is placed.")] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Annotated[tuple[PreferredSchedulingTerm, ...], doc("Nodes that are preferred.", max_length=64)] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(View, frozen=True, kw_only=True):
    """Other pods, and the label of a node that says what "near" means."""

    topology_key: Annotated[str, doc("Node label; nodes with the same value are one place.", min_length=1, max_length=317)]
    label_selector: Annotated[LabelSelector, doc("Selects the other pods.")] | None = None
    namespaces: Annotated[tuple[str, ...], doc("Namespaces in which to look; empty for the own one.", max_length=256)] | None = None
    namespace_selector: Annotated[LabelSelector, doc("Selects further namespaces by label.")] | None = None
    match_label_keys: (
        Annotated[tuple[str, ...], doc("Own label keys whose values the others must share.", max_length=64)] | None
    ) = None
    mismatch_label_keys: (
        Annotated[tuple[str, ...], doc("Own label keys whose values the others must not share.", max_length=64)] | None
    ) = None


class WeightedPodAffinityTerm(View, frozen=True, kw_only=True):
    """A wish about being near to (or far from) other pods, with its weight."""

    weight: Annotated[int, doc("How much the wish counts, 1 to 100.", ge=1, le=100, format="int32")]
    pod_affinity_term: Annotated[PodAffinityTerm, doc("What is wished for.")]


class PodAffinity(View, frozen=True, kw_only=True):
    """Pods to be near to, or, as anti-affinity, to be far from."""

    required: Annotated[tuple[PodAffinityTerm, ...], doc("Must all hold when the pod is placed.", max_length=64)] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Annotated[tuple[WeightedPodAffinityTerm, ...], doc("Wishes.", max_length=64)] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(View, frozen=True, kw_only=True):
    """Where a pod may and should be placed."""

    node_affinity: Annotated[NodeAffinity, doc("Rules about the node itself.")] | None = None
    pod_affinity: Annotated[PodAffinity, doc("Pods that this one should be near to.")] | None = None
    pod_anti_affinity: Annotated[PodAffinity, doc("Pods that this one should be far from.")] | None = None


class Toleration(View, frozen=True, kw_only=True):
    """A taint that does not keep the pod away."""

    key: Annotated[str, doc("Key of the taint; empty with operator Exists for every taint.", max_length=317)] | None = None
    operator: Annotated[Literal["Exists", "Equal", "Lt", "Gt"], doc("How the value is compared; Equal when absent.")] | None = None
    value: Annotated[str, doc("Value of the taint, for Equal.", max_length=63)] | None = None
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""], doc("Effect; all when absent.")] | None = None
    toleration_seconds: (
        Annotated[int, doc("For NoExecute: how long the pod stays after the taint came; for ever when absent.", format="int64")]
        | None
    ) = None


class TopologySpreadConstraint(View, frozen=True, kw_only=True):
    """How evenly the selected pods are spread over places."""

    max_skew: Annotated[int, doc("How many pods one place may have more than another.", ge=1, format="int32")]
    topology_key: Annotated[str, doc("Node label; nodes with the same value are one place.", min_length=1, max_length=317)]
    when_unsatisfiable: Annotated[Literal["DoNotSchedule", "ScheduleAnyway"], doc("Whether this is a must or a wish.")]
    label_selector: Annotated[LabelSelector, doc("Selects the pods that are counted.")] | None = None
    min_domains: Annotated[int, doc("How many places there must at least be.", ge=1, format="int32")] | None = None
    node_affinity_policy: Annotated[Literal["Honor", "Ignore"], doc("Whether only nodes that the pod allows count.")] | None = None
    node_taints_policy: Annotated[Literal["Honor", "Ignore"], doc("Whether tainted nodes count.")] | None = None
    match_label_keys: Annotated[tuple[str, ...], doc("Own label keys whose values select the pods.", max_length=64)] | None = None


class Identified:
    """The questions that everyone asks an object, whatever its kind. A mixin: it has no fields of its own."""

    __slots__ = ()

    @property
    def _meta(self) -> ObjectMeta:
        return getattr(self, "metadata")  # noqa: B009 - declared by the views, each with its own description

    @property
    def name(self) -> str:
        return self._meta.name or ""

    @property
    def namespace(self) -> str:
        return self._meta.namespace or ""

    @property
    def uid(self) -> str:
        return self._meta.uid or ""

    @property
    def labels(self) -> dict[str, str]:
        return self._meta.labels or {}

    @property
    def finalizers(self) -> tuple[str, ...]:
        return self._meta.finalizers or ()

    @property
    def annotations(self) -> dict[str, str]:
        return self._meta.annotations or {}

    @property
    def controller_uid(self) -> str:
        """Identity of the owner that manages the object; empty where nobody does."""
        return self.controller.uid if self.controller is not None else ""

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, as the object says."""
        return next((owner for owner in self._meta.owner_references or () if owner.controller), None)

    @property
    def being_deleted(self) -> bool:
        return self._meta.deletion_timestamp is not None

"""VirtualMachinePool: a number of like machines, kept, updated, scaled and healed together (seed 003)."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.kinds.base import Kind
from herder.api.kinds.machine import VirtualMachineSpec
from herder.api.meta import Condition, LabelSelector, TemplateMeta
from herder.api.views import Bytes, Count, Duration, IntOrPercent, Labels, Rule, Time, View, at_most_one, doc, untyped

BasePolicy = Literal["Oldest", "Newest", "Random"]
StatePreservation = Literal["Disabled", "Offline", "Online"]
StandbyState = Literal["Offline", "Online"]
OnFailure = Literal["Halt", "Rollback"]
ChangedVolumes = Literal["Keep", "Reprovision"]

# Numbers of machines have at most six digits, and detached machines keep theirs.
MOST_REPLICAS = 100_000
_STRATEGY_NAMES = ("unmanaged", "opportunistic", "proactive")
_STRATEGIES = at_most_one(*_STRATEGY_NAMES)
ORDERED_POLICY = {"labelSelector": {"matchLabels": {"importance": "low"}}}
# The seed's prose has other names for it.
_NO_PRESERVATION = "unknown field: did you mean statePreservation, in scaleInStrategy.proactive or scaleInStrategy.opportunistic?"
_PRESERVATIONS = tuple((name, _NO_PRESERVATION) for name in ("scaleInPreserveState", "preservation", "Preservation"))
_SOME_UNAVAILABLE = Rule(
    "self != 0 && self != '0%'",
    "must be at least 1 or 1%: with 0 no machine could ever be updated",
)
_SELECTION = "Which machines go first; at random, those that are missed least first, when absent."
_PRESERVATION = (
    "What stays of a machine that is taken away: Disabled (nothing, the default), Offline (its volumes), Online (its volumes and"
    " its memory). It is used again by the machine that later gets the same name."
)


class Unmanaged(View, frozen=True, kw_only=True):
    """Nothing is done by itself."""


class OrderedPolicy(View, frozen=True, kw_only=True):
    """One kind of machine that goes before the rest."""

    label_selector: Annotated[LabelSelector, doc("Machines with these labels.")] | None = None
    node_selector: Annotated[Labels, doc("Machines that run on a node with all these labels.", min_properties=1)] | None = None


class SelectionPolicy(View, frozen=True, kw_only=True):
    """Which machines go first."""

    CAPITALS = ("basePolicy",)

    ordered_policies: (
        Annotated[
            tuple[Annotated[OrderedPolicy, untyped(ORDERED_POLICY)], ...],
            doc(
                "Machines that match the first entry go first, then those of the second, …, then all others. An entry is one of"
                " labelSelector (matchLabels, matchExpressions: labels of the machine) and nodeSelector (pairs: labels of the"
                " node that it runs on).",
                max_length=32,
            ),
        ]
        | None
    ) = None
    base_policy: Annotated[BasePolicy, doc("Order within each group: Oldest, Newest or Random (the default).")] | None = None


class OpportunisticUpdate(View, frozen=True, kw_only=True):
    """Machines are updated while they are off."""


class ProactiveUpdate(View, frozen=True, kw_only=True):
    """Machines are restarted to update them."""

    CAPITALS = ("selectionPolicy",)

    selection_policy: Annotated[SelectionPolicy, doc(_SELECTION)] | None = None
    paused: Annotated[bool, doc("Whether the rollout stands still; scaling and healing go on. Default false.")] | None = None
    limit: (
        Annotated[
            IntOrPercent,
            doc(
                "How many machines may have the new revision, to try it on a few: a number, or a percentage of replicas, rounded"
                " down, but at least 1. All when absent; with 0 nobody gets it.",
                minimum=0,
            ),
        ]
        | None
    ) = None
    on_failure: (
        Annotated[
            OnFailure,
            doc(
                "What happens when updated machines do not become available in time: Halt (the rollout stops there, the default) or"
                " Rollback (they go back to the last good revision)."
            ),
        ]
        | None
    ) = None
    volumes: (
        Annotated[
            ChangedVolumes,
            doc(
                "What happens to disks whose dataVolumeTemplate changed: Keep (the default) or Reprovision, which wipes those disks"
                " and no others, for example to refresh an image."
            ),
        ]
        | None
    ) = None


class UpdateStrategy(View, frozen=True, kw_only=True):
    """How machines get a changed template."""

    RULES = (_STRATEGIES,)
    CAPITALS = _STRATEGY_NAMES

    unmanaged: Annotated[Unmanaged, doc("They do not: people update them one by one.")] | None = None
    opportunistic: Annotated[OpportunisticUpdate, doc("While they are off.")] | None = None
    proactive: Annotated[ProactiveUpdate, doc("By a restart, a few at a time (the default).")] | None = None


class OpportunisticScaleIn(View, frozen=True, kw_only=True):
    """Machines are taken while they are off."""

    CAPITALS = ("statePreservation",)
    REFUSED = _PRESERVATIONS

    state_preservation: Annotated[StatePreservation, doc(_PRESERVATION)] | None = None


class ProactiveScaleIn(View, frozen=True, kw_only=True):
    """Machines are shut down to take them."""

    CAPITALS = ("selectionPolicy", "statePreservation")
    REFUSED = _PRESERVATIONS

    selection_policy: Annotated[SelectionPolicy, doc(_SELECTION)] | None = None
    state_preservation: Annotated[StatePreservation, doc(_PRESERVATION)] | None = None


class ScaleInStrategy(View, frozen=True, kw_only=True):
    """How machines are taken away when there are more than replicas."""

    RULES = (_STRATEGIES,)
    CAPITALS = _STRATEGY_NAMES
    REFUSED = _PRESERVATIONS

    unmanaged: Annotated[Unmanaged, doc("They are not: people delete them one by one.")] | None = None
    opportunistic: Annotated[OpportunisticScaleIn, doc("While they are off.")] | None = None
    proactive: Annotated[ProactiveScaleIn, doc("By shutting them down (the default).")] | None = None


_POSTFIXES = ("appendPostfixToSecretReferences", "appendPostfixToConfigMapReferences")


class NameGeneration(View, frozen=True, kw_only=True):
    """Which names in the template get the machine's number."""

    CAPITALS = _POSTFIXES

    append_postfix_to_secret_references: (
        Annotated[bool, doc("Whether each machine has Secrets of its own: <name>-<number>. Default false.")] | None
    ) = None
    append_postfix_to_config_map_references: (
        Annotated[bool, doc("Whether each machine has ConfigMaps of its own: <name>-<number>. Default false.")] | None
    ) = None


class Autohealing(View, frozen=True, kw_only=True):
    """When a machine that does not start is deleted, with its volumes, and made again."""

    CAPITALS = ("startupFailureThreshold",)

    startup_failure_threshold: (
        Annotated[
            int,
            doc("Failures to start in a row that it takes. Default 3.", ge=1, maximum=2**31 - 1, format="int32"),
        ]
        | None
    ) = None
    min_failing_duration: (
        Annotated[Duration, doc("How long a machine must also have been failing, for example 10m. Default 0s.")] | None
    ) = None


class Standby(View, frozen=True, kw_only=True):
    """Machines beside the replicas that are provisioned, and sleep until a scale-out takes them."""

    replicas: Annotated[int, doc("How many. Default 0.", ge=0, maximum=MOST_REPLICAS, format="int32")] | None = None
    state: (
        Annotated[
            StandbyState,
            doc(
                "How they sleep: Offline (stopped, with their volumes; the default) or Online (booted once and suspended, so that"
                " they go on from their memory)."
            ),
        ]
        | None
    ) = None


class PoolTemplate(View, frozen=True, kw_only=True):
    """What each machine of the pool looks like."""

    metadata: Annotated[TemplateMeta, doc("Labels and annotations of each VirtualMachine.", nullable=True)] | None = None
    spec: Annotated[VirtualMachineSpec, doc("Each VirtualMachine. Its dataVolumeTemplates get the machine's number.")]


class VirtualMachinePoolSpec(View, frozen=True, kw_only=True):
    """How many machines, what they look like and how they are treated."""

    REQUIRED = (("replicas", "how many machines there should be"),)
    REFUSED = (("replica", "unknown field: did you mean replicas?"), *_PRESERVATIONS)
    CAPITALS = ("replicas", "maxUnavailable", "nameGeneration", "updateStrategy", "scaleInStrategy", "standby", "autohealing")

    replicas: Annotated[int, doc("How many machines there should be. Required.", ge=0, maximum=MOST_REPLICAS, format="int32")]
    template: Annotated[PoolTemplate, doc("What each machine looks like.")]
    paused: Annotated[bool, doc("Whether the pool is left alone: no scaling, no updates, no healing. Default false.")] | None = None
    max_unavailable: (
        Annotated[
            IntOrPercent,
            doc(
                "How many machines may be unavailable during an update: a number, or a percentage of replicas, rounded down, but at"
                " least 1. Default 25%.",
                minimum=0,
                rules=(_SOME_UNAVAILABLE,),
            ),
        ]
        | None
    ) = None
    min_ready_seconds: (
        Annotated[Count, doc("How long a machine must have been ready to count as available, in seconds. Default 0.")] | None
    ) = None
    progress_deadline_seconds: (
        Annotated[
            int,
            doc(
                "How long an updated machine may take to become available before the rollout halts, in seconds. Default 600.",
                ge=1,
                le=2**31 - 1,
                format="int32",
            ),
        ]
        | None
    ) = None
    revision_history_limit: (
        Annotated[Count, doc("How many old templates that no machine uses are kept, to go back to. Default 10.")] | None
    ) = None
    name_generation: Annotated[NameGeneration, doc("Which names in the template get the machine's number.")] | None = None
    update_strategy: Annotated[UpdateStrategy, doc("How machines get a changed template; proactive when absent.")] | None = None
    scale_in_strategy: Annotated[ScaleInStrategy, doc("How machines are taken away; proactive when absent.")] | None = None
    standby: Annotated[Standby, doc("Further machines that sleep until a scale-out takes them. None when absent.")] | None = None
    autohealing: Annotated[Autohealing, doc("Replace machines that do not start; {} enables it. Off when absent.")] | None = None


class Healing(View, frozen=True, kw_only=True):
    """One machine that was deleted with its volumes and made again."""

    name: Annotated[str, doc("Name of the machine.", max_length=253)]
    attempts: Annotated[Count, doc("How often in a row.")] | None = None
    last_healed_time: Annotated[Time, doc("When it was last deleted for that.", nullable=True)] | None = None
    retry_after_time: Annotated[Time, doc("Until when it is left alone, should it fail again.", nullable=True)] | None = None


class Rollout(View, frozen=True, kw_only=True):
    """The rollout of updateRevision."""

    started_time: Annotated[Time, doc("When it began.", nullable=True)] | None = None
    updated_time: Annotated[Time, doc("When the last machine was updated.", nullable=True)] | None = None


class VirtualMachinePoolStatus(View, frozen=True, kw_only=True):
    """How many machines there are, and in which state."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    replicas: Annotated[Count, doc("Machines of the pool.")] | None = None
    ready_replicas: Annotated[Count, doc("Machines that are ready.")] | None = None
    available_replicas: Annotated[Count, doc("Machines that have been ready for minReadySeconds.")] | None = None
    updated_replicas: Annotated[Count, doc("Machines whose instance has the current template.")] | None = None
    unavailable_replicas: Annotated[Count, doc("Machines that should be available and are not.")] | None = None
    surplus_replicas: Annotated[Count, doc("Machines beyond replicas that the strategy does not let us take yet.")] | None = None
    standby_replicas: Annotated[Count, doc("Machines that are kept beside the replicas.")] | None = None
    ready_standby_replicas: Annotated[Count, doc("Those of them that sleep and can be taken at once.")] | None = None
    preserved_states: Annotated[Count, doc("Machines that are gone and whose state is kept.")] | None = None
    detached_replicas: Annotated[Count, doc("Machines that were detached and still hold their number.")] | None = None
    detached: Annotated[tuple[str, ...], doc("The first 256 of them, by name.", max_length=256)] | None = None
    label_selector: Annotated[str, doc("Selects the pods of the pool's machines, for autoscalers.", max_length=4096)] | None = None
    current_revision: Annotated[str, doc("Revision of the template that was last rolled out in full.", max_length=253)] | None = (
        None
    )
    update_revision: Annotated[str, doc("Revision of the template as it is now.", max_length=253)] | None = None
    failed_revision: (
        Annotated[str, doc("Revision whose rollout was halted or rolled back: machines did not become available.", max_length=253)]
        | None
    ) = None
    collision_count: Annotated[Count, doc("How often the name of a revision was taken; part of its hash.")] | None = None
    rollout: Annotated[Rollout, doc("The rollout of updateRevision.")] | None = None
    healing: (
        Annotated[
            tuple[Healing, ...],
            doc("Machines that were healed, and when they may be again.", max_length=1000, list_keys=("name",)),
        ]
        | None
    ) = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc("Progressing, ReplicaFailure, Paused, …", max_length=64, list_keys=("type",)),
        ]
        | None
    ) = None


class VirtualMachinePool(Kind, frozen=True, kw_only=True):
    """A number of like machines, kept, updated, scaled and healed together."""

    spec: Annotated[VirtualMachinePoolSpec, doc("What is wanted.")]
    status: Annotated[VirtualMachinePoolStatus, doc("What is.")] | None = None

"""MigrationPolicy: migration settings for the machines that its selectors match (seed 000)."""

from __future__ import annotations

from typing import Annotated

from herder.api.kinds.base import Kind
from herder.api.kinds.migration_state import PolicySettings
from herder.api.meta import Condition
from herder.api.views import Bytes, Count, Rule, Untyped, View, doc

NO_SELECTORS = (
    "a policy without selectors applies to no machine: name labels in selectors.virtualMachineInstanceSelector or"
    " selectors.namespaceSelector, or write settings for the whole cluster in spec.configuration.migrations of the KubeVirt object"
)


class Selectors(View, frozen=True, kw_only=True):
    """Which machines a policy is for: all pairs of both selectors must be there."""

    namespace_selector: (
        Annotated[
            dict[str, Untyped],
            doc(
                'Labels that the machine\'s namespace must have. Values are strings; true and 1 are read as "true" and "1".',
                max_properties=64,
            ),
        ]
        | None
    ) = None
    virtual_machine_instance_selector: (
        Annotated[
            dict[str, Untyped],
            doc(
                'Labels that the VirtualMachineInstance must have. Values are strings; true and 1 are read as "true" and "1".',
                max_properties=64,
            ),
        ]
        | None
    ) = None


class MigrationPolicySpec(PolicySettings, frozen=True, kw_only=True):
    """Settings, and the machines they are for. The policy with the most matching labels wins."""

    RULES = (Rule("has(self.selectors)", NO_SELECTORS, field=".selectors", reason="FieldValueRequired"),)

    selectors: Annotated[Selectors, doc("Which machines the policy is for. No two policies may have the same.")] | None = None


class MigrationPolicyStatus(View, frozen=True, kw_only=True):
    """Whether the policy is in use, and for how many instances."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    instances: (
        Annotated[Count, doc("Running instances that it applies to: those of which no other policy goes before it.")] | None
    ) = None
    matching_instances: (
        Annotated[Count, doc("Running instances that have its labels, whether or not another policy goes before it.")] | None
    ) = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc(
                "Accepted: whether the policy is in use, and why not. Applied: whether it applies to an instance that runs.",
                max_length=64,
                list_keys=("type",),
            ),
        ]
        | None
    ) = None


class MigrationPolicy(Kind, frozen=True, kw_only=True):
    """Migration settings for the machines that its selectors match. They refine the cluster's."""

    spec: Annotated[MigrationPolicySpec, doc("What is wanted.")]
    status: Annotated[MigrationPolicyStatus, doc("What is.")] | None = None

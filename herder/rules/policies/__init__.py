"""Which MigrationPolicy applies, and the effective settings (seed 000)."""

from herder.rules.policies.explain import PolicyExplanation, SettingRow, explain_policy, explain_policy_within
from herder.rules.policies.index import Chosen, Policies, PolicyRow
from herder.rules.policies.usage import Counts, Usage

__all__ = [
    "Chosen",
    "Counts",
    "Policies",
    "PolicyExplanation",
    "PolicyRow",
    "SettingRow",
    "Usage",
    "explain_policy",
    "explain_policy_within",
]

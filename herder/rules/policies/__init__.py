"""Which MigrationPolicy applies, and the effective settings (seed 000)."""

from herder.rules.policies.explain import PolicyExplanation, SettingRow, explain_policy, explain_policy_within
from herder.rules.policies.index import Chosen, Policies, PolicyRow

__all__ = ["Chosen", "Policies", "PolicyExplanation", "PolicyRow", "SettingRow", "explain_policy", "explain_policy_within"]

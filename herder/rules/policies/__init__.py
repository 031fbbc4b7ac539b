"""Which MigrationPolicy applies, and the effective settings (seed 000)."""

from herder.rules.policies.index import Chosen, Policies, PolicyRow

__all__ = ["Chosen", "Policies", "PolicyRow"]

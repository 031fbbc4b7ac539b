"""Where host-model guests can be moved to (seed 002): levels of nodes, what a moved guest requires, and a common baseline."""

from herder.rules.migratability.levels import Count, Levels
from herder.rules.migratability.profile import Profile, counted, profile_of, schedulable

__all__ = ["Count", "Levels", "Profile", "counted", "profile_of", "schedulable"]

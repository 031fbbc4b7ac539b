"""Answers MigrationReviews, and clears them away.

answering.py  one namespace after the other, each a few at a time
snapshots.py  the cluster as reviews see it: made when asked for, and used for a while
expiry.py     a question that nobody looks at any more goes
"""

from herder.controllers.reviews.answering import MigrationReviews
from herder.controllers.reviews.expiry import ReviewExpiry

__all__ = ["MigrationReviews", "ReviewExpiry"]

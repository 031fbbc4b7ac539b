"""Where a pod may and should go. A first, small set of rules: room, labels, taints, cordons, disks."""

from herder.rules.placement.disks import Disks, claims_of, disks_of
from herder.rules.placement.place import Candidate, Placement, place

__all__ = ["Candidate", "Disks", "Placement", "claims_of", "disks_of", "place"]

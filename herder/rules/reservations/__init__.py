"""Room that is held on nodes for pods that do not exist yet (seed 004, Reservation).

What is free of a reservation follows from its template and from the pods that took it, never from its status, which only reports:
whoever leads next finds the same.
"""

from herder.rules.reservations.allocation import Allocation, allocation_of, allocation_text
from herder.rules.reservations.expiry import expires_at, is_expired
from herder.rules.reservations.ledger import Held, Ledger
from herder.rules.reservations.lifecycle import ReservationPlan, is_finished, job_that_made, plan_reservation
from herder.rules.reservations.owners import OwnerKey, matches, waiting_keys
from herder.rules.reservations.placing import place_reservation
from herder.rules.reservations.room import placing_needs, template_pod
from herder.rules.reservations.status import placed_status, unplaced_status
from herder.rules.reservations.taking import Candidate, Take, held_key, take_reservation

__all__ = [
    "Allocation",
    "Candidate",
    "Held",
    "Ledger",
    "OwnerKey",
    "ReservationPlan",
    "Take",
    "allocation_of",
    "allocation_text",
    "expires_at",
    "held_key",
    "is_expired",
    "is_finished",
    "job_that_made",
    "matches",
    "place_reservation",
    "placed_status",
    "placing_needs",
    "plan_reservation",
    "take_reservation",
    "template_pod",
    "unplaced_status",
    "waiting_keys",
]

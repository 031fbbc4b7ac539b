"""Which reservation a pod took: an annotation that the scheduler's Binding writes together with the node.

Anybody who may write the pod could write it as well, so it counts only where the reservation is for that pod.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.kinds import ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from herder.rules.reservations.owners import Matched, matches

LONGEST = 1024


class Allocation(msgspec.Struct, frozen=True):
    name: str
    uid: str


def allocation_text(reservation: ReservationView) -> str:
    return msgspec.json.encode(Allocation(reservation.name, reservation.uid)).decode()


def allocation_of(annotations: Mapping[str, str]) -> Allocation | None:
    """None where nothing is said, or nothing that can be read."""
    text = annotations.get(RESERVATION_ALLOCATED)
    if not text or len(text) > LONGEST:
        return None
    try:
        return msgspec.json.decode(text, type=Allocation)
    except msgspec.DecodeError:
        return None


def took(pod: Matched, reservation: ReservationView) -> bool:
    """Whether the pod took this very reservation, and it is for pods like this."""
    said = allocation_of(pod.annotations)
    return said is not None and (said.name, said.uid) == (reservation.name, reservation.uid) and matches(reservation, pod)

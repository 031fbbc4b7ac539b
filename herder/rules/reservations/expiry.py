"""When a reservation's room is given up."""

from __future__ import annotations

from herder.api.defaults import RESERVATION_TTL
from herder.api.duration import parse_seconds
from herder.api.kinds import ReservationView


def expires_at(reservation: ReservationView) -> float | None:
    """None: never."""
    spec, created = reservation.spec, reservation.metadata.creation_timestamp
    if spec.expires is not None:
        return spec.expires.timestamp()
    seconds = parse_seconds(RESERVATION_TTL if spec.ttl is None else spec.ttl)
    return created.timestamp() + seconds if seconds > 0 and created is not None else None


def is_expired(reservation: ReservationView, now: float) -> bool:
    end = expires_at(reservation)
    return end is not None and end <= now

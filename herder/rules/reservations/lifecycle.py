"""What becomes of a reservation: taken, expired, sent back to be placed anew, and in the end removed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from herder.api import reasons, registry
from herder.api.core import Node, Pod
from herder.api.kinds import ReservationView
from herder.api.meta import OwnerReference
from herder.rules.matching.resources import pod_requests
from herder.rules.placement import OF_THE_NODE, Offer, Snapshot
from herder.rules.placement.rule import refuses
from herder.rules.plans import Delete, Document, Event, find
from herder.rules.reservations import status as shown
from herder.rules.reservations.expiry import expires_at, is_expired
from herder.rules.reservations.room import allocates_once, placing_needs, total

FINISHED = ("Succeeded", "Failed")
# How long one that is over can still be looked at.
RETENTION = 24 * 3600.0


class ReservationPlan(msgspec.Struct, frozen=True):
    # None: as it is.
    status: Document | None = None
    events: tuple[Event, ...] = ()
    delete: Delete | None = None
    next_look: float | None = None


def is_finished(reservation: ReservationView) -> bool:
    return reservation.status.phase in FINISHED


def plan_reservation(reservation: ReservationView, node: Node | None, takers: Sequence[Pod], now: float) -> ReservationPlan:
    """`node`: where it is, if there is such a node. `takers`: the pods that took it, and that it is for."""
    if reservation.being_deleted:
        return ReservationPlan()
    if is_finished(reservation):
        return _retained(reservation, now)
    if _is_taken(reservation, takers):
        return _succeeded(reservation, takers, now)
    if is_expired(reservation, now):
        return _expired(reservation, now)
    end = expires_at(reservation)
    next_look = end - now if end is not None else None
    if reservation.status.phase != "Available":
        return ReservationPlan(next_look=next_look)
    if not takers and (why := why_unfit(reservation, node)):
        return _sent_back(reservation, why, next_look, now)
    taken = total(pod_requests(pod) for pod in takers)
    return ReservationPlan(shown.available_status(reservation, takers, taken, now), next_look=next_look)


def _is_taken(reservation: ReservationView, takers: Sequence[Pod]) -> bool:
    return bool(takers) and allocates_once(reservation)


def _succeeded(reservation: ReservationView, takers: Sequence[Pod], now: float) -> ReservationPlan:
    first = f"{takers[0].namespace}/{takers[0].name}"
    event = Event("Normal", reasons.ALLOCATED, f"pod {first} took the room on node {takers[0].spec.node_name}")
    # Of one that a job made the job's events tell it: not the same thing twice.
    events = () if job_that_made(reservation) is not None else (event,)
    return ReservationPlan(shown.succeeded_status(reservation, takers, now), events, next_look=RETENTION)


def job_that_made(reservation: ReservationView) -> OwnerReference | None:
    """The PodMigrationJob that it was made for."""
    owner = reservation.controller
    if owner is None or (owner.api_version.rpartition("/")[0], owner.kind) != (registry.JOB.group, registry.JOB.kind):
        return None
    return owner


def _expired(reservation: ReservationView, now: float) -> ReservationPlan:
    where = f" on node {reservation.status.node_name}" if reservation.status.node_name else ""
    event = Event("Warning", reasons.EXPIRED, f"its time is over: the room{where} is given up" if where else "its time is over")
    return ReservationPlan(shown.expired_status(reservation, now), (event,), next_look=RETENTION)


def _sent_back(reservation: ReservationView, why: str, next_look: float | None, now: float) -> ReservationPlan:
    said = f"{why}: it is placed anew"
    event = Event("Warning", reasons.NODE_UNFIT, said)
    return ReservationPlan(shown.sent_back_status(reservation, said, now), (event,), next_look=next_look)


def _retained(reservation: ReservationView, now: float) -> ReservationPlan:
    ready = find(reservation.status.conditions, reasons.READY)
    ended = ready.last_transition_time if ready is not None else None
    left = ended.timestamp() + RETENTION - now if ended is not None else RETENTION
    if left > 0:
        return ReservationPlan(next_look=left)
    return ReservationPlan(delete=Delete(reservation.name, reservation.uid))


def why_unfit(reservation: ReservationView, node: Node | None) -> str:
    """Why its node is none for a pod of its template any more; empty where it is. `node`: where it is, if there is such a node."""
    name = reservation.status.node_name or ""
    if node is None:
        return f"node {name} is gone"
    snapshot = Snapshot()
    snapshot.put_node(Offer.of(node))
    needs = placing_needs(reservation)
    row = snapshot.nodes.rows[name]
    for rule in OF_THE_NODE:
        if refuses(rule, needs, name, snapshot):
            details = next(iter(rule.details(needs, [row], snapshot)))
            return f"node {name} is not for it any more: {'; '.join(details)}"
    return ""

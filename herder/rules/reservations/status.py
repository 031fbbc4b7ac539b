"""What a reservation's status says. It is whole each time, and written only over the very state that it was made from: the
scheduler, which places it, and the controller, which follows it, cannot undo each other's word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from herder.api import reasons
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.api.quantity import BINARY_SI, DECIMAL_SI, of, of_milli
from herder.rules.matching.resources import CPU, PODS
from herder.rules.placement.needs import MEMORY, Needs
from herder.rules.plans import Document, condition, find, moment, since, text_of, without_nothing
from herder.rules.reservations.expiry import expires_at
from herder.rules.reservations.room import placing_needs

MOST_OWNERS = 256
_BINARY = (MEMORY, "ephemeral-storage", "hugepages-")
Amounts = Mapping[str, int]


def placed_status(reservation: ReservationView, needs: Needs, node: str, now: float) -> Document:
    conditions = (condition(reasons.SCHEDULED, True, reasons.SCHEDULED), condition(reasons.READY, True, reasons.AVAILABLE))
    return _status(reservation, "Available", conditions, now, node=node, allocatable=quantities(needs.requests), allocated={})


def unplaced_status(reservation: ReservationView, message: str, now: float, reason: str = reasons.UNSCHEDULABLE) -> Document:
    conditions = (condition(reasons.SCHEDULED, False, reason, message),)
    return _status(reservation, "Pending", conditions, now, reason=reason, message=message)


def sent_back_status(reservation: ReservationView, message: str, now: float) -> Document:
    conditions = (condition(reasons.SCHEDULED, False, reasons.NODE_UNFIT, message),)
    return _status(reservation, "Pending", conditions, now, reason=reasons.NODE_UNFIT, message=message)


def available_status(reservation: ReservationView, takers: Sequence[Pod], taken: Amounts, now: float) -> Document:
    conditions = (condition(reasons.SCHEDULED, True, reasons.SCHEDULED), condition(reasons.READY, True, reasons.AVAILABLE))
    node = reservation.status.node_name
    held = quantities(placing_needs(reservation).requests)
    return _status(
        reservation, "Available", conditions, now, node=node, owners=takers, allocatable=held, allocated=quantities(taken)
    )


def succeeded_status(reservation: ReservationView, takers: Sequence[Pod], now: float) -> Document:
    message = f"pod {takers[0].namespace}/{takers[0].name} took it"
    conditions = (
        condition(reasons.SCHEDULED, True, reasons.SCHEDULED),
        condition(reasons.READY, False, reasons.SUCCEEDED, message),
    )
    node = takers[0].spec.node_name
    return _status(reservation, "Succeeded", conditions, now, reason=reasons.SUCCEEDED, message=message, node=node, owners=takers)


def expired_status(reservation: ReservationView, now: float) -> Document:
    message = "its time was over before a pod took it" if not reservation.status.current_owners else "its time is over"
    scheduled = find(reservation.status.conditions, reasons.SCHEDULED)
    known = (condition(reasons.SCHEDULED, scheduled.status == "True", scheduled.reason or ""),) if scheduled is not None else ()
    conditions = (*known, condition(reasons.READY, False, reasons.EXPIRED, message))
    node = reservation.status.node_name
    return _status(reservation, "Failed", conditions, now, reason=reasons.EXPIRED, message=message, node=node)


def quantities(amounts: Amounts) -> Document:
    """As people write them. That it takes the place of a pod is not worth a line."""
    return {name: _quantity(name, amount) for name, amount in sorted(amounts.items()) if amount and name != PODS}


def _quantity(name: str, amount: int) -> str:
    if name == CPU:
        return str(of_milli(amount))
    return str(of(amount, BINARY_SI if name.startswith(_BINARY) else DECIMAL_SI))


def _status(
    reservation: ReservationView,
    phase: str,
    conditions: Iterable[Document],
    now: float,
    *,
    reason: str | None = None,
    message: str | None = None,
    node: str | None = None,
    owners: Sequence[Pod] = (),
    allocatable: Document | None = None,
    allocated: Document | None = None,
) -> Document:
    end = expires_at(reservation)
    return without_nothing(
        {
            "observedGeneration": reservation.metadata.generation,
            "phase": phase,
            "reason": reason,
            "message": message,
            "nodeName": node or None,
            "expirationTime": text_of(moment(end)) if end is not None else None,
            "conditions": since(conditions, reservation.status.conditions, now),
            "currentOwners": [_reference(pod) for pod in sorted(owners, key=_by_name)[:MOST_OWNERS]] or None,
            "allocatable": allocatable,
            "allocated": allocated or None,
        }
    )


def _by_name(pod: Pod) -> tuple[str, str]:
    return (pod.namespace, pod.name)


def _reference(pod: Pod) -> Document:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}

"""How much room a reservation holds: that of its template, less what the pods took that have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api.core import Pod
from herder.api.core.containers import Container
from herder.api.defaults import ALLOCATE_ONCE
from herder.api.kinds import ReservationView
from herder.api.meta import ObjectMeta
from herder.rules.matching.resources import CPU, PODS
from herder.rules.placement.needs import MEMORY, Needs, needs_of

Amounts = Mapping[str, int]


def template_pod(reservation: ReservationView) -> Pod:
    """The pod that the room must be enough for, under the reservation's own name."""
    template = reservation.spec.template
    metadata = ObjectMeta(
        name=reservation.name,
        namespace=template.metadata.namespace,
        uid=reservation.uid,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        creation_timestamp=reservation.metadata.creation_timestamp,
    )
    spec = msgspec.structs.replace(
        template.spec,
        containers=tuple(_defaulted(one) for one in template.spec.containers or ()),
        init_containers=tuple(_defaulted(one) for one in template.spec.init_containers),
    )
    return Pod(metadata=metadata, spec=spec)


def _defaulted(container: Container) -> Container:
    """As the API server does it with pods: what has a limit and no request asks for as much."""
    resources = container.resources
    if not resources.limits:
        return container
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests={**resources.limits, **resources.requests})
    )


def placing_needs(reservation: ReservationView) -> Needs:
    """What a node for it must have. Volumes that will be made for the pod alone are not there yet, and say nothing."""
    needs = needs_of(template_pod(reservation))
    return msgspec.structs.replace(needs, claims=tuple(claim for claim in needs.claims if not claim.ephemeral))


def allocates_once(reservation: ReservationView) -> bool:
    """Whether the first pod that takes it ends it."""
    once = reservation.spec.allocate_once
    return ALLOCATE_ONCE if once is None else once


def held_needs(needs: Needs, taken: Amounts) -> Needs | None:
    """What it takes from everyone else on its node; None where all of it is taken. It uses no claims: it only has to reach them."""
    rest = {name: max(amount - taken.get(name, 0), 0) for name, amount in needs.requests.items()}
    if taken and not any(amount for name, amount in rest.items() if name != PODS):
        return None
    counted = (rest.get(CPU, 0), rest.get(MEMORY, 0)) if taken else needs.counted
    return msgspec.structs.replace(needs, namespace="", requests=rest, counted=counted, claims=(), deleting=False)


def total(requests: Iterable[Amounts]) -> dict[str, int]:
    added: dict[str, int] = {}
    for one in requests:
        for name, amount in one.items():
            added[name] = added.get(name, 0) + amount
    return added

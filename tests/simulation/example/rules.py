"""What should happen to a flock. Pure: a snapshot in, a plan out; the same value is carried out, tested and shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from herder.api.core import ConfigMap
from herder.api.world import timestamp
from tests.simulation.example.kind import Flock

Document = dict[str, Any]


class Sheep(msgspec.Struct, frozen=True):
    """A child as it should be. Its name follows from its parent's: made twice, it is still one."""

    name: str
    data: dict[str, str]


class Stray(msgspec.Struct, frozen=True):
    """A child that is not as it should be, exactly as it was seen."""

    name: str
    uid: str
    resource_version: str
    data: dict[str, str | None] = {}


class Plan(msgspec.Struct, frozen=True):
    create: tuple[Sheep, ...] = ()
    change: tuple[Stray, ...] = ()
    remove: tuple[Stray, ...] = ()
    # None where what is there already says it.
    status: Document | None = None
    # Seconds until time alone changes the answer.
    next_look: float | None = None


def plan_flock(flock: Flock, present: Sequence[ConfigMap], now: float) -> Plan:
    wanted = {sheep.name: sheep for sheep in wanted_sheep(flock)}
    there = {one.name: one for one in present}
    rests_in = _rests_in(flock, now)
    status = _status(flock, sum(name in there for name in wanted), rests_in == 0.0, now)
    return Plan(
        create=tuple(sheep for name, sheep in wanted.items() if name not in there),
        change=tuple(_stray(one, wanted[name]) for name, one in there.items() if name in wanted and one.data != wanted[name].data),
        remove=tuple(_stray(one) for name, one in there.items() if name not in wanted and not one.being_deleted),
        status=None if _says(flock) == status else status,
        next_look=rests_in or None,
    )


def wanted_sheep(flock: Flock) -> list[Sheep]:
    spec = flock.spec
    shepherd = {"shepherd": spec.shepherd} if spec.shepherd else {}
    bells = dict(enumerate(spec.bells or ()))
    return [
        Sheep(
            f"{flock.name}-sheep-{number}",
            {"pasture": spec.pasture, **shepherd, **({"bell": bells[number]} if number in bells else {})},
        )
        for number in range(spec.sheep)
    ]


def _stray(seen: ConfigMap, wanted: Sheep | None = None) -> Stray:
    data: dict[str, str | None] = {}
    if wanted is not None:
        data = {**dict.fromkeys(seen.data), **wanted.data}
    return Stray(seen.name, seen.uid, seen.metadata.resource_version or "", data)


def _rests_in(flock: Flock, now: float) -> float | None:
    """Seconds until it rests, 0 when it does; None when it never will."""
    created = flock.metadata.creation_timestamp
    if flock.spec.rest_after_seconds is None or created is None:
        return None
    return max(0.0, created.timestamp() + flock.spec.rest_after_seconds - now)


def _status(flock: Flock, count: int, rests: bool, now: float) -> Document:
    whole = count == flock.spec.sheep
    phase = "Gathering" if not whole else "Resting" if rests else "Grazing"
    ready = {"type": "Ready", "status": "True" if whole else "False", "reason": phase, "message": ""}
    return {
        "observedGeneration": flock.metadata.generation,
        "sheep": count,
        "phase": phase,
        "conditions": [{**ready, "lastTransitionTime": _since(flock, ready["status"], now)}],
    }


def _since(flock: Flock, value: str, now: float) -> str:
    """The time stays while the status does."""
    for one in (flock.status and flock.status.conditions) or ():
        if one.type == "Ready" and one.status == value and one.last_transition_time is not None:
            return timestamp(one.last_transition_time.timestamp())
    return timestamp(now)


def _says(flock: Flock) -> Document:
    """What our part of the status says now; other conditions are other people's."""
    status: Document = msgspec.json.decode(msgspec.json.encode(flock.status)) if flock.status is not None else {}
    ours = [_shown(one) for one in status.get("conditions") or () if one["type"] == "Ready"]
    return {**{name: status.get(name) for name in ("observedGeneration", "sheep", "phase")}, "conditions": ours}


def _shown(condition: Document) -> Document:
    return {name: condition.get(name) for name in ("type", "status", "reason", "message", "lastTransitionTime")}

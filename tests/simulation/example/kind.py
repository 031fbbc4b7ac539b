"""Flock: so many sheep on a pasture. Each sheep is a ConfigMap."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.kinds.base import Kind
from herder.api.meta import Condition
from herder.api.registry import Column, KindInfo
from herder.api.views import Count, View, doc
from herder.kube.resources import Resource

Pasture = Literal["north", "south", "hill"]


class FlockSpec(View, frozen=True, kw_only=True):
    """What somebody wants."""

    sheep: Annotated[int, doc("How many sheep.", ge=0, le=4)]
    pasture: Annotated[Pasture, doc("Where they graze.")]
    shepherd: Annotated[str, doc("Who looks after them.", min_length=1, max_length=20)] | None = None
    bells: Annotated[tuple[str, ...], doc("Bells for the first sheep.", list_set=True, max_items=3)] | None = None
    rest_after_seconds: Annotated[Count, doc("When they have grazed enough and rest.")] | None = None


class FlockStatus(View, frozen=True, kw_only=True):
    """How things are."""

    observed_generation: Annotated[int, doc("Generation of the spec that this was judged by.", ge=0, format="int64")] | None = None
    sheep: Annotated[int, doc("How many sheep are there.", ge=0)] | None = None
    phase: Annotated[Literal["Gathering", "Grazing", "Resting"], doc("What the flock does.")] | None = None
    conditions: Annotated[tuple[Condition, ...], doc("What is known about it.", list_keys=("type",))] | None = None


class Flock(Kind, frozen=True, kw_only=True):
    """Sheep on a pasture."""

    spec: Annotated[FlockSpec, doc("What somebody wants.")]
    status: Annotated[FlockStatus, doc("How things are.")] | None = None


FLOCK = KindInfo(
    group="example.herder.dev",
    version="v1",
    kind="Flock",
    plural="flocks",
    singular="flock",
    view=Flock,
    columns=(Column("Phase", ".status.phase", "What the flock does."),),
)
FLOCKS: Resource[Flock] = Resource(
    group=FLOCK.group, version=FLOCK.version, plural=FLOCK.plural, kind=FLOCK.kind, namespaced=True, view=Flock
)

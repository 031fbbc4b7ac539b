"""What both sides of a move need to have at hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from herder.api.world import World
from herder.nodes.moving.link import Link
from herder.nodes.moving.notes import Notes
from herder.nodes.runtimes.base import Runtime


class Means(msgspec.Struct, frozen=True):
    node: str
    runtime: Runtime
    notes: Notes
    link: Link
    world: World
    # Something about this guest is to be told to others.
    changed: Callable[[str], None]

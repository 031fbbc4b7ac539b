"""Moving a guest between two nodes: docs/migration.md is the protocol, and this is the agents' side of it."""

from herder.nodes.moving.link import Link
from herder.nodes.moving.mover import Mover
from herder.nodes.moving.notes import DiskNotes, MemoryNotes, Notes
from herder.nodes.moving.switchboard import Switchboard

__all__ = ["DiskNotes", "Link", "MemoryNotes", "Mover", "Notes", "Switchboard"]

"""All that a pool's plan is made from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import defaults
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import Document
from herder.rules.pools.member import Member
from herder.rules.pools.revisions import Revision
from herder.rules.pools.selection.inputs import NodeState


class OwnedVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A DataVolume, or a claim with memory, that the pool is an owner of: preserved, or about to be, or forgotten by who was
    interrupted."""

    name: str
    uid: str
    resource_version: str
    # The machine that it is of, by its label.
    machine: str
    # uid of the machine that still controls it; empty where none does.
    controller: str = ""
    deleting: bool = False
    # What that machine was ready on, and which revision it had.
    ready_revision: str = ""
    revision: str = ""
    references: tuple[Document, ...] = ()
    # A claim with the memory of a machine that was suspended.
    memory: bool = False


class Attachable(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with a reference to the pool that does not say that it is its controller, and with no other controller."""

    name: str
    uid: str
    resource_version: str
    references: tuple[Document, ...]


class Refusal(msgspec.Struct, frozen=True):
    """What the API server last answered about a machine, and when it is tried again."""

    message: str
    retry: float


class PoolSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    pool: VirtualMachinePool
    # Those of the pool as they are stored: machines are made from them, not from the views.
    template: Document
    name_generation: Document
    # Machines that the pool controls, in the order of their numbers.
    members: tuple[Member, ...] = ()
    # Names of other machines of the namespace that look like ours, and which of them were ours.
    held: frozenset[str] = frozenset()
    detached: tuple[str, ...] = ()
    attachable: tuple[Attachable, ...] = ()
    volumes: tuple[OwnedVolume, ...] = ()
    # uids of all machines that exist and are not being deleted: who controls a volume may be a machine that was detached.
    living: frozenset[str] = frozenset()
    revisions: tuple[Revision, ...] = ()
    nodes: Mapping[str, NodeState] = msgspec.field(default_factory=dict[str, NodeState])
    # When the template was first seen as it is; None where that is long ago.
    template_since: float | None = None
    refusals: Mapping[str, Refusal] = msgspec.field(default_factory=dict[str, Refusal])
    burst: int = defaults.POOL_BURST

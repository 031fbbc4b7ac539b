"""Memory of a guest that was suspended: what the claim that holds it says of it.

It stands in an annotation of the claim, which everybody may change who may change the claim. So nobody is believed for it: the
node that goes on from the memory looks at what the node that saved it has written beside it (herder/nodes/runtimes).
"""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec

from herder.api.core import PersistentVolumeClaim
from herder.api.guest import SavedGuest
from herder.api.labels import MEMORY
from herder.api.views import View

# Saving: nothing that could be used. Saved: whole, and unused. Resuming: of one instance, and of nobody else any more. Used:
# nothing is left of it, and its claim is kept while the pod that had it holds it.
MemoryState = Literal["Saving", "Saved", "Resuming", "Used"]


class SavedMemory(View, frozen=True, kw_only=True):
    state: MemoryState
    machine: str  # uid of the VirtualMachine
    instance: str  # uid of the instance whose guest it is
    pod: str  # uid of the pod that it ran in
    # Of the template that the instance was made from, and of the pool that it came from.
    revision: str = ""
    pool_revision: str = ""
    # uids of the claims of its disks, by their names.
    disks: dict[str, str] = msgspec.field(default_factory=dict)
    saved: SavedGuest | None = None
    saved_at: datetime.datetime | None = None
    # uid of the instance that goes on from it.
    resumed_by: str = ""


def memory_claim(machine: str) -> str:
    """The name of the claim for the memory of this machine."""
    return f"{machine}-memory"


def machine_of(claim: str) -> str:
    """The machine whose memory a claim of this name would hold; empty where it is no such name."""
    return claim.removesuffix("-memory") if claim.endswith("-memory") else ""


def memory_of(claim: PersistentVolumeClaim) -> SavedMemory | None:
    """None where it says nothing, or nothing that can be read: then nothing can be used."""
    text = claim.annotations.get(MEMORY)
    try:
        return msgspec.json.decode(text, type=SavedMemory) if text else None
    except msgspec.MsgspecError:
        return None

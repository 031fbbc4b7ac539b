"""What is done to the machines of a pool, each as a value: plans are made of these."""

from __future__ import annotations

import msgspec

from herder.rules.plans import Document
from herder.rules.pools.rollout import Effect


class Create(msgspec.Struct, frozen=True):
    name: str
    revision: str
    document: Document
    # Volumes that were kept from a machine of this name, with its memory perhaps; and those of them that are made again, because
    # their template changed.
    returning: bool = False
    resumes: bool = False
    wiped: tuple[str, ...] = ()
    # Kept beside the replicas, and not among them.
    standby: bool = False


class Update(msgspec.Struct, frozen=True):
    """Of that very machine, in that very state: what somebody did meanwhile is looked at first."""

    name: str
    uid: str
    resource_version: str
    revision: str
    document: Document
    effect: Effect
    # Before it can be applied: `running` said as `runStrategy`, which changes nothing but the word.
    reword: Document | None = None
    # Volumes are wiped and made again.
    wipes: bool = False


class Remove(msgspec.Struct, frozen=True):
    """By foreground deletion, so that the name stays held until nothing of it runs."""

    name: str
    uid: str
    resource_version: str
    # Whether its volumes stay, and its memory, and what they are to say: what its machine was ready on, and which revision it had.
    preserve: bool = False
    memory: bool = False
    ready_revision: str = ""
    revision: str = ""


class Suspend(msgspec.Struct, frozen=True):
    """Of that very machine, in that very state. `document`: to be applied, where its spec has to be again what its guest runs, else
    it could not go on from its memory; without one it is a patch."""

    name: str
    uid: str
    resource_version: str
    document: Document | None = None


class Resume(msgspec.Struct, frozen=True):
    """A machine that was suspended to be taken stays after all. `failure`: what is to be remembered, where that is because its
    memory could not be saved."""

    name: str
    uid: str
    resource_version: str
    failure: str = ""


class Adopt(msgspec.Struct, frozen=True):
    name: str
    uid: str
    resource_version: str
    references: tuple[Document, ...]

"""What a look at a job leads to. A plan is final: it is carried out in the order of its fields, each step safe to repeat."""

from __future__ import annotations

from typing import Literal

import msgspec

from herder.rules.plans import Delete, Document, Event


class Evict(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the pod that is moved, and of no other one of its name."""

    namespace: str
    name: str
    uid: str
    policy: Literal["Eviction", "Delete"] = "Eviction"
    # gracePeriodSeconds, propagationPolicy and so on; preconditions without the uid, which is always added.
    options: Document = msgspec.field(default_factory=dict[str, object])


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    # Our finalizer, and the name of the reservation that is about to be made: before anything is made.
    hold: bool = False
    refer: str = ""
    create_reservation: Document | None = None
    # Whole, and written only over the very state that was looked at. None: as it is. It is durable before what follows.
    status: Document | None = None
    events: tuple[Event, ...] = ()
    # Lets pods take the reservation.
    open_reservation: bool = False
    # Looked at again right before, and paced: neither the eviction nor the migration happens where a limit holds it now.
    evict: Evict | None = None
    create_migration: Document | None = None
    # Strategic merge patches of pods in the namespace of the job's pod, by name: (name, uid, patch).
    patch_pods: tuple[tuple[str, str, Document], ...] = ()
    # Whether such a patch takes the pod from its controller: limits are looked at again right before it, as before an eviction; it
    # is not paced, as nobody goes yet.
    releases: bool = False
    delete_migration: Delete | None = None
    delete_reservation: Delete | None = None
    # Takes our finalizer away.
    let_go: bool = False
    # The job itself: it has been over for long enough.
    delete: Delete | None = None
    # Whether it only tells how far the job is: nothing rests on that being known at once.
    informs: bool = False
    # Seconds until time alone would change the answer.
    next_look: float | None = None

    @property
    def disrupts(self) -> bool:
        """Whether it does what limits and budgets are about: it is looked at again right before."""
        return self.paced or self.releases

    @property
    def paced(self) -> bool:
        """Whether flow control is about it: something goes."""
        return self.evict is not None or self.create_migration is not None


NOTHING = JobPlan()

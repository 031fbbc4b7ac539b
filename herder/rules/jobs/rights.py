"""The rights that a PodMigrationJob takes of who writes it (seed 004).

Our controllers carry jobs out, and they may evict everywhere and make and use every reservation. Whoever files a job has that done
under their account: so they must be let do it by themselves.
"""

from __future__ import annotations

import msgspec

from herder.api import registry
from herder.api.kinds import PodMigrationJob
from herder.api.meta import ObjectReference
from herder.api.problems import Problem, forbidden, quoted
from herder.api.reading import Json, part
from herder.rules.jobs.admission import POD_REF

TEMPLATE, RESERVATION_REF = "spec.reservationOptions.template", "spec.reservationOptions.reservationRef"


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """In the words of access rules; and the field that asks for it, with what is wanted by that and what would help."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field: str
    wanted: str
    advice: str

    def refusal(self, user: str) -> Problem:
        """For who does not have it."""
        return forbidden(self.field, f"user {quoted(user)} may not {self._deed()}, and must be let {self.wanted}: {self.advice}")

    def unanswered(self) -> Problem:
        """Where nobody says whether they have it."""
        return forbidden(self.field, f"the API server did not say in time who may {self._deed()}: must be tried again")

    def _deed(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        of_group = f"{kind}.{self.group}" if self.group else kind
        named = f" of {self.name}" if self.subresource else f" {quoted(self.name)}" if self.name else ""
        return f"{self.verb} {of_group}{named}" + (f" in namespace {quoted(self.namespace)}" if self.namespace else "")


def asks_anew(job: Json, old: Json) -> bool:
    """Whether a change takes a right. All that is about the pod, and the template, cannot be changed; a reservation can be named
    later. A job that says nothing new is not even read: one that cannot be must be able to end."""
    return _reference(job) is not None and _reference(old) is None


def rights_needed(job: PodMigrationJob, *, created: bool) -> tuple[Right, ...]:
    """Of a new job, or of one that `asks_anew`, in the order in which they are asked about. The first that is missing is told, and
    nothing else: neither whether there is such a pod or reservation."""
    options = job.spec.reservation_options
    template = options.template if options is not None else None
    reference = options.reservation_ref if options is not None else None
    return (
        *((_evict(job),) if created else ()),
        *((_reserve(),) if created and template is not None else ()),
        *((_use(reference),) if reference is not None else ()),
    )


def _reference(job: Json) -> object:
    return part(job, "spec", "reservationOptions").get("reservationRef")


def _evict(job: PodMigrationJob) -> Right:
    """Of this very pod: a role may name single ones."""
    reference = job.spec.pod_ref
    return Right(
        verb="create",
        group="",
        resource="pods",
        subresource="eviction",
        namespace=reference.namespace,
        name=reference.name,
        field=POD_REF,
        wanted="to have the pod moved",
        advice="the role pod-migrator has this right",
    )


def _reserve() -> Right:
    """A template may ask for more than the pod, for other owners and in another namespace. What follows from the pod alone takes
    no right: its room is that of the pod, and for who comes after it."""
    return Right(
        verb="create",
        group=registry.RESERVATION.group,
        resource=registry.RESERVATION.plural,
        field=TEMPLATE,
        wanted="to have one made that differs from what the pod asks for",
        advice="leave template out, or ask for the role herder-admin, which has this right",
    )


def _use(reference: ObjectReference) -> Right:
    """Who names a reservation has it used up, and meanwhile keeps it from other jobs: that is a change of it."""
    return Right(
        verb="patch",
        group=registry.RESERVATION.group,
        resource=registry.RESERVATION.plural,
        name=reference.name or "",
        field=RESERVATION_REF,
        wanted="to have it used up",
        advice="leave reservationRef out to have one made, or ask for the role herder-admin, which has this right",
    )

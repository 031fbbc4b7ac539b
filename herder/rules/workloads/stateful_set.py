"""The next step of a StatefulSet: which pods of which ordinals are made, replaced or ended, and what is done to their claims.

In order (`OrderedReady`), one pod at a time, and only when all before it are well: so a template that never gets ready stops
everything, until its pod is deleted by hand. At once (`Parallel`), all that are missing or too many; updates are one after the
other there, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from herder.api import reasons
from herder.api.core import PersistentVolumeClaim, Pod, StatefulSet
from herder.rules.plans import Delete, Document, Event
from herder.rules.workloads.failing import seconds_kept
from herder.rules.workloads.ordinals import claim_name, ordinal_of, ordinals, partition, pod_name
from herder.rules.workloads.pods import FINISHED, available_in, is_ready
from herder.rules.workloads.retention import Member, is_stale, owners_to_write
from herder.rules.workloads.revisions import Revision
from herder.rules.workloads.stateful_pods import POD_NAME, claim_document, identity, pod_document, revision_name, template_name

# As many in one go: others want to be looked at, too.
BURST = 500
PARALLEL = "Parallel"
ON_DELETE = "OnDelete"


class StatefulSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    stateful_set: StatefulSet
    # What pods below the partition are made of, and what all others are.
    current: Revision
    update: Revision
    # `spec.volumeClaimTemplates` as they were written: views drop what they do not know.
    claim_templates: tuple[Document, ...] = ()
    # Those that it manages, by ordinal, also those that have ended.
    pods: Mapping[int, Pod] = msgspec.field(default_factory=dict[int, Pod])
    # By name: those of the ordinals that `ordinals_to_look_at` tells.
    claims: Mapping[str, PersistentVolumeClaim] = msgspec.field(default_factory=dict[str, PersistentVolumeClaim])
    # By the name of a pod that this set would make: who has one of that name.
    taken: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    # By the name of a pod: how often in a row it has failed at once, before.
    failures: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])


class NewPod(msgspec.Struct, frozen=True):
    name: str
    document: Document
    claims: tuple[Document, ...] = ()


class NewClaim(msgspec.Struct, frozen=True):
    """Of a pod that waits for it."""

    pod: str
    document: Document


class Owners(msgspec.Struct, frozen=True):
    """Those that a claim is to have, as it was seen: what somebody else has changed since is decided upon anew."""

    claim: str
    resource_version: str
    references: list[Document]


class Labels(msgspec.Struct, frozen=True):
    pod: str
    labels: dict[str, str]


class StatefulSetPlan(msgspec.Struct, frozen=True):
    """In the order in which it is carried out."""

    # Pods that have ended: they come back under their names when they are gone.
    replace: tuple[Delete, ...] = ()
    claims: tuple[NewClaim, ...] = ()
    create: tuple[NewPod, ...] = ()
    labels: tuple[Labels, ...] = ()
    owners: tuple[Owners, ...] = ()
    delete: tuple[Delete, ...] = ()
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def pods_by_ordinal(stateful_set: StatefulSet, pods: list[Pod]) -> dict[int, Pod]:
    found = ((ordinal_of(stateful_set.name, pod.name), pod) for pod in pods)
    return {ordinal: pod for ordinal, pod in found if ordinal is not None}


def ordinals_to_look_at(stateful_set: StatefulSet, pods: Mapping[int, Pod]) -> list[int]:
    """Those that have pods, and the next of those that have none: nobody looks at more in one go, however many there are to be."""
    missing = (ordinal for ordinal in ordinals(stateful_set) if ordinal not in pods)
    return sorted([*pods, *islice(missing, BURST if _at_once(stateful_set) else 1)])


def _at_once(stateful_set: StatefulSet) -> bool:
    return stateful_set.spec.pod_management_policy == PARALLEL


def plan_stateful_set(snapshot: StatefulSetSnapshot, now: float) -> StatefulSetPlan:
    draft = _Draft(snapshot, now)
    if not snapshot.stateful_set.being_deleted and draft.keep_up() and draft.scale_in():
        draft.roll()
    return draft.plan()


class _Draft:
    """Each step adds to the plan, and says whether the next one may be taken."""

    def __init__(self, snapshot: StatefulSetSnapshot, now: float) -> None:
        self._snapshot = snapshot
        self._set = snapshot.stateful_set
        self._wanted = ordinals(self._set)
        self._at_once = _at_once(self._set)
        self._now = now
        self._replace: list[Delete] = []
        self._new_claims: list[NewClaim] = []
        self._create: list[NewPod] = []
        self._labels: list[Labels] = []
        self._owners: list[Owners] = []
        self._delete: list[Delete] = []
        self._events: list[Event] = []
        self._looks: list[float] = []

    def plan(self) -> StatefulSetPlan:
        return StatefulSetPlan(
            tuple(self._replace),
            tuple(self._new_claims),
            tuple(self._create),
            tuple(self._labels),
            tuple(self._owners),
            tuple(self._delete),
            tuple(self._events),
            min(self._looks, default=None),
        )

    def keep_up(self) -> bool:
        """The pods that are to be there, the lowest ordinal first."""
        looked_at = ordinals_to_look_at(self._set, self._snapshot.pods)
        for ordinal in (one for one in looked_at if one in self._wanted):
            if not self._keep_up(ordinal) and not self._at_once:
                return False
        # Where more are missing than are made in one go, they come first.
        return len(self._create) < BURST

    def _keep_up(self, ordinal: int) -> bool:
        """Whether all is well with this one."""
        pod = self._snapshot.pods.get(ordinal)
        if pod is None:
            self._make(ordinal)
            return False
        if pod.status.phase in FINISHED:
            self._replace_finished(ordinal, pod)
            return False
        if pod.being_deleted:
            return False
        well = _is_well(pod, self._set, self._now)
        if pod.status.phase == "Pending":
            self._new_claims += [NewClaim(pod.name, one) for one in self._missing_claims(ordinal)]
        if well or self._at_once or pod.status.phase == "Pending":
            self._give_identity(ordinal, pod)
            self._give_owners(ordinal, Member(pod.name, pod.uid))
        return well

    def _make(self, ordinal: int) -> None:
        """Unless it has to wait: whatever is in the way wakes us when it is gone."""
        name = pod_name(self._set.name, ordinal)
        claims = self._claims_of(ordinal)
        if any(is_stale(self._set, one, name) for one in claims):
            return
        why = next((f"PersistentVolumeClaim {one.name} is being deleted" for one in claims if one.being_deleted), None)
        if name in self._snapshot.taken:
            why = f"Pod {name} exists and belongs to {self._snapshot.taken[name]}"
        if why is not None:
            self._events.append(failed_create(self._set, name, why))
            return
        document = pod_document(self._set, self._snapshot.claim_templates, self._revision_for(ordinal), ordinal)
        self._create.append(NewPod(name, document, tuple(self._missing_claims(ordinal))))
        self._give_owners(ordinal, Member(name))

    def _revision_for(self, ordinal: int) -> Revision:
        return self._snapshot.current if ordinal < partition(self._set) else self._snapshot.update

    def _replace_finished(self, ordinal: int, pod: Pod) -> None:
        if pod.being_deleted:
            return
        row = self._snapshot.failures.get(pod.name, 0)
        # Only where the next one is of the same template: else there is hope.
        same = revision_name(pod) == self._revision_for(ordinal).name
        left = seconds_kept(pod, row, self._now) if same else 0.0
        if left > 0:
            self._looks.append(left)
        else:
            self._replace.append(Delete(pod.name, pod.uid))

    def _give_identity(self, ordinal: int, pod: Pod) -> None:
        if pod.labels.get(POD_NAME) != pod.name:
            self._labels.append(Labels(pod.name, identity(self._set, ordinal)))

    def _give_owners(self, ordinal: int, member: Member) -> None:
        for claim in self._claims_of(ordinal):
            references = owners_to_write(self._set, claim, member)
            if references is not None:
                self._owners.append(Owners(claim.name, claim.metadata.resource_version or "", references))

    def _claims_of(self, ordinal: int) -> list[PersistentVolumeClaim]:
        names = (claim_name(template_name(one), self._set.name, ordinal) for one in self._snapshot.claim_templates)
        return [self._snapshot.claims[name] for name in names if name in self._snapshot.claims]

    def _missing_claims(self, ordinal: int) -> Iterator[Document]:
        for template in self._snapshot.claim_templates:
            if claim_name(template_name(template), self._set.name, ordinal) not in self._snapshot.claims:
                yield claim_document(self._set, template, ordinal)

    def scale_in(self) -> bool:
        """The pods that are too many, the highest ordinal first."""
        condemned = {one: pod for one, pod in sorted(self._snapshot.pods.items(), reverse=True) if one not in self._wanted}
        for ordinal, pod in condemned.items():
            self._give_owners(ordinal, Member(pod.name, pod.uid))
        if self._at_once:
            self._delete += [Delete(pod.name, pod.uid) for pod in condemned.values() if not pod.being_deleted]
            return True
        if condemned:
            self._end_first(list(condemned.values()))
        return not condemned

    def _end_first(self, condemned: list[Pod]) -> None:
        """One that is unwell waits while another one below it is. But not one that has ended, as in Kubernetes: it never gets
        well, and the wait would have no end."""
        first = condemned[0]
        unwell = [pod for pod in condemned if self._is_unavailable(pod)]
        lasts = first.status.phase not in FINISHED and not _is_well(first, self._set, self._now)
        if not first.being_deleted and not (lasts and unwell[-1:] != [first]):
            self._delete.append(Delete(first.name, first.uid))

    def roll(self) -> None:
        """One pod that is not of the newest template, the highest ordinal first, when those above it are well."""
        if self._set.spec.update_strategy.type == ON_DELETE:
            return
        going = {one.uid for one in self._replace}
        for ordinal in reversed(range(max(self._wanted.start, partition(self._set)), self._wanted.stop)):
            pod = self._snapshot.pods.get(ordinal)
            if pod is None or pod.uid in going:
                return
            if revision_name(pod) != self._snapshot.update.name and not pod.being_deleted:
                self._delete.append(Delete(pod.name, pod.uid))
                return
            if self._is_unavailable(pod):
                return

    def _is_unavailable(self, pod: Pod) -> bool:
        return pod.being_deleted or available_in(pod, self._set.spec.min_ready_seconds, self._now) != 0.0


def _is_well(pod: Pod, stateful_set: StatefulSet, now: float) -> bool:
    return pod.status.phase == "Running" and available_in(pod, stateful_set.spec.min_ready_seconds, now) == 0.0


def stateful_set_status(snapshot: StatefulSetSnapshot, collisions: int, now: float) -> tuple[Document, float | None]:
    """With the time when it has to be looked at again."""
    one, seconds = snapshot.stateful_set, snapshot.stateful_set.spec.min_ready_seconds
    pods = list(snapshot.pods.values())
    ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
    waits = [wait for pod in ready if (wait := available_in(pod, seconds, now)) is not None]
    of_revision = [revision_name(pod) for pod in pods if not pod.being_deleted]
    updated, current = of_revision.count(snapshot.update.name), of_revision.count(snapshot.current.name)
    name = snapshot.current.name
    if _is_rolled_out(one, len(pods), len(ready), updated):
        current, name = updated, snapshot.update.name
    counted = {"readyReplicas": len(ready), "currentReplicas": current, "updatedReplicas": updated}
    status: Document = {
        "observedGeneration": one.metadata.generation,
        "replicas": len(pods),
        **{field: count for field, count in counted.items() if count},
        "availableReplicas": sum(wait == 0 for wait in waits),
        "currentRevision": name,
        "updateRevision": snapshot.update.name,
        "collisionCount": collisions,
    }
    return status, min((wait for wait in waits if wait > 0), default=None)


def _is_rolled_out(stateful_set: StatefulSet, present: int, ready: int, updated: int) -> bool:
    wanted = len(ordinals(stateful_set))
    return stateful_set.spec.update_strategy.type != ON_DELETE and present == ready == updated == wanted


# In Kubernetes' own words.


def created(stateful_set: StatefulSet, pod: str) -> Event:
    return Event("Normal", reasons.SUCCESSFUL_CREATE, f"Create Pod {pod} in StatefulSet {stateful_set.name} successful")


def created_claim(stateful_set: StatefulSet, pod: str, claim: str) -> Event:
    words = f"Create Claim {claim} Pod {pod} in StatefulSet {stateful_set.name} success"
    return Event("Normal", reasons.SUCCESSFUL_CREATE, words)


def failed_create(stateful_set: StatefulSet, pod: str, why: str) -> Event:
    words = f"Create Pod {pod} in StatefulSet {stateful_set.name} failed error: {why}"
    return Event("Warning", reasons.FAILED_CREATE, words)


def deleted(stateful_set: StatefulSet, pod: str) -> Event:
    return Event("Normal", reasons.SUCCESSFUL_DELETE, f"Delete Pod {pod} in StatefulSet {stateful_set.name} successful")

"""A number of pods of one template: which to make, which to end, and what to say about it."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator

import msgspec

from herder.api import reasons
from herder.api.core import Pod, ReplicaSet
from herder.api.world import SUFFIX_ALPHABET, SUFFIX_LENGTH
from herder.rules.plans import Delete, Document, moment, text_of, without_nothing
from herder.rules.workloads.claiming import controller_reference
from herder.rules.workloads.failing import places_taken
from herder.rules.workloads.pods import available_in, is_active, is_ready, is_terminating
from herder.rules.workloads.ranking import first_to_go

# As many in one go: others want to be looked at, too.
BURST = 500
# Kubernetes cuts what comes before a generated end there, so that the name is a DNS label.
LONGEST_PREFIX = 58


class ReplicaSetSnapshot(msgspec.Struct, frozen=True):
    replica_set: ReplicaSet
    # `spec.template` as it was written: views drop what they do not know.
    template: Document
    # Those that it owns, also those that have ended.
    pods: tuple[Pod, ...] = ()
    # Those of all sets of the same Deployment.
    related: tuple[Pod, ...] = ()


class ReplicaSetPlan(msgspec.Struct, frozen=True):
    # How many pods to make; `names` says how they may be called.
    create: int = 0
    delete: tuple[Delete, ...] = ()
    # Seconds until more may be made, where pods have failed at once.
    next_look: float | None = None


def plan_replica_set(snapshot: ReplicaSetSnapshot, now: float) -> ReplicaSetPlan:
    wanted = size_of(snapshot.replica_set)
    if snapshot.replica_set.being_deleted:
        return ReplicaSetPlan()
    active = [pod for pod in snapshot.pods if is_active(pod)]
    if len(active) <= wanted:
        return _filling(wanted - len(active), places_taken(snapshot.pods, now) if len(active) < wanted else [])
    count = min(len(active) - wanted, BURST)
    gone = first_to_go(active, snapshot.related or active, count, now)
    return ReplicaSetPlan(delete=tuple(Delete(pod.name, pod.uid) for pod in gone))


def _filling(missing: int, taken: list[float]) -> ReplicaSetPlan:
    free = max(0, missing - len(taken))
    return ReplicaSetPlan(create=min(free, BURST), next_look=taken[0] if free < missing else None)


def size_of(replica_set: ReplicaSet) -> int:
    """The API server fills in 1 where nothing is said."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def names(snapshot: ReplicaSetSnapshot) -> Iterator[str]:
    """Without end, and the same for the same pods: one that was made and not answered for is made once more under the name that it
    has, and is not a second one. With each pod that comes or goes they are others."""
    one = snapshot.replica_set
    known = ",".join(sorted(pod.uid for pod in snapshot.pods))
    prefix = f"{one.name}-"[:LONGEST_PREFIX]
    number = 0
    while True:
        yield prefix + _suffix(f"{one.uid} {one.metadata.generation} {known} {number}")
        number += 1


def _suffix(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    letters: list[str] = []
    for _ in range(SUFFIX_LENGTH):
        number, letter = divmod(number, len(SUFFIX_ALPHABET))
        letters.append(SUFFIX_ALPHABET[letter])
    return "".join(letters)


def pod_document(snapshot: ReplicaSetSnapshot, name: str) -> Document:
    one = snapshot.replica_set
    written = snapshot.template.get("metadata") or {}
    kept = {part: written[part] for part in ("labels", "annotations", "finalizers") if written.get(part)}
    owner = controller_reference(one, "apps/v1", "ReplicaSet")
    # The prefix is what a pod of a generated name has, and what people look for.
    generated = {"generateName": f"{one.name}-"}
    metadata = {"name": name, **generated, "namespace": one.namespace, **kept, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": snapshot.template.get("spec") or {}}


def replica_set_status(snapshot: ReplicaSetSnapshot, failure: str, now: float) -> tuple[Document, float | None]:
    """With the time when it has to be looked at again. `failure`: why pods could not be made or ended, if so."""
    one, seconds = snapshot.replica_set, snapshot.replica_set.spec.min_ready_seconds
    active = [pod for pod in snapshot.pods if is_active(pod)]
    waits = [wait for pod in active if (wait := available_in(pod, seconds, now)) is not None]
    labels = (snapshot.template.get("metadata") or {}).get("labels") or {}
    counted: Document = {
        "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(wait == 0 for wait in waits),
    }
    status: Document = {
        "replicas": len(active),
        **{name: count or None for name, count in counted.items()},
        "terminatingReplicas": sum(map(is_terminating, snapshot.pods)),
        "observedGeneration": one.metadata.generation,
        "conditions": _conditions(one, failure, len(active), now) or None,
    }
    return without_nothing(status), min((wait for wait in waits if wait > 0), default=None)


def _conditions(one: ReplicaSet, failure: str, active: int, now: float) -> list[Document]:
    if not failure:
        return []
    known = next((found for found in one.status.conditions if found.type == reasons.REPLICA_FAILURE), None)
    if known is not None:
        # As it was told first: the sentence may differ each time, and the reader need not hear of it.
        since, reason, message = known.last_transition_time, known.reason, known.message
    else:
        since, message = None, failure
        reason = reasons.FAILED_CREATE if active < size_of(one) else reasons.FAILED_DELETE
    return [_condition(reason, message, since or moment(now))]


def _condition(reason: str, message: str, since: datetime.datetime) -> Document:
    told = {"type": reasons.REPLICA_FAILURE, "status": "True", "reason": reason, "message": message}
    return {**told, "lastTransitionTime": text_of(since)}

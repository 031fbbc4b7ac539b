"""What a Deployment says about itself: how many pods of which kind, whether enough are available, and whether it gets on."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from herder.api import reasons
from herder.api.core import Deployment
from herder.api.core.workloads import DeploymentCondition
from herder.rules.plans import Document, moment, text_of, without_nothing
from herder.rules.workloads.rolling import Limits
from herder.rules.workloads.templates import Member

NO_DEADLINE = 2**31 - 1


class Said(msgspec.Struct, frozen=True):
    """A condition, before it is known since when."""

    type: str
    status: str
    reason: str
    message: str
    # Progress is news each time, even where the words are the same.
    news: bool = False


class Counts(msgspec.Struct, frozen=True):
    replicas: int
    updated: int
    ready: int
    available: int


def counts_of(new: Member | None, everyone: Sequence[Member]) -> Counts:
    return Counts(
        replicas=sum(one.view.status.replicas for one in everyone),
        updated=new.view.status.replicas if new is not None else 0,
        ready=sum(one.view.status.ready_replicas for one in everyone),
        available=sum(one.view.status.available_replicas for one in everyone),
    )


def status_of(
    deployment: Deployment, new: Member | None, everyone: Sequence[Member], limits: Limits, progress: Said | None, now: float
) -> Document:
    """`progress`: what is said about it anew; None leaves what was said."""
    counts = counts_of(new, everyone)
    conditions = [
        _dated(deployment, _available(counts, limits), now),
        _progressing(deployment, progress, now),
        _failure(new, everyone),
    ]
    unavailable = max(0, sum(one.size for one in everyone) - counts.available)
    counted = {
        "replicas": counts.replicas,
        "updatedReplicas": counts.updated,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "unavailableReplicas": unavailable,
    }
    return without_nothing(
        {
            "observedGeneration": deployment.metadata.generation,
            **{name: count or None for name, count in counted.items()},
            "terminatingReplicas": _terminating(everyone),
            "collisionCount": deployment.status.collision_count,
            "conditions": [one for one in conditions if one is not None],
        }
    )


def _terminating(everyone: Sequence[Member]) -> int | None:
    """None while one of them has not said."""
    seen = [one.view.status for one in everyone if one.view.status.observed_generation]
    counts = [status.terminating_replicas for status in seen]
    return None if None in counts else sum(count for count in counts if count is not None)


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, NO_DEADLINE)


def is_complete(counts: Counts, wanted: int) -> bool:
    return counts.updated == counts.replicas == counts.available == wanted


def was_complete(deployment: Deployment, wanted: int) -> bool:
    """As its status says: only then is the past cleared away."""
    known = deployment.status
    said = Counts(known.replicas, known.updated_replicas, known.ready_replicas, known.available_replicas)
    return is_complete(said, wanted) and known.observed_generation >= (deployment.metadata.generation or 0)


def rollout_progress(
    deployment: Deployment, new: Member | None, everyone: Sequence[Member], wanted: int, now: float
) -> Said | None:
    """What a rollout has come to. Nothing new once it is complete: that pods come and go is no rollout."""
    known = condition_of(deployment, reasons.PROGRESSING)
    counts = counts_of(new, everyone)
    who = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    done = Said(reasons.PROGRESSING, "True", reasons.NEW_REPLICA_SET_AVAILABLE, f"{who} has successfully progressed.")
    # The words name the set: that another one was complete says nothing about this one.
    if known is not None and (known.reason, known.message) == (done.reason, done.message) and counts.replicas == counts.updated:
        return None
    if is_complete(counts, wanted):
        return done
    if _is_further(deployment, counts):
        return Said(reasons.PROGRESSING, "True", reasons.REPLICA_SET_UPDATED, f"{who} is progressing.", news=True)
    if _is_late(deployment, known, now):
        return Said(reasons.PROGRESSING, "False", reasons.PROGRESS_DEADLINE_EXCEEDED, f"{who} has timed out progressing.")
    if known is None and new is not None:
        return Said(reasons.PROGRESSING, "True", reasons.FOUND_NEW_REPLICA_SET, f'Found new replica set "{new.name}"')
    return None


def _is_further(deployment: Deployment, counts: Counts) -> bool:
    known = deployment.status
    fewer_old = counts.replicas - counts.updated < known.replicas - known.updated_replicas
    more = counts.updated > known.updated_replicas or counts.ready > known.ready_replicas
    return fewer_old or more or counts.available > known.available_replicas


def _is_late(deployment: Deployment, known: DeploymentCondition | None, now: float) -> bool:
    if known is None or known.reason in (reasons.NEW_REPLICA_SET_AVAILABLE, reasons.PROGRESS_DEADLINE_EXCEEDED):
        return False
    left = time_left(deployment, known, now)
    return left is not None and left < 0


def time_left(deployment: Deployment, known: DeploymentCondition | None, now: float) -> float | None:
    """Seconds until it has taken too long; None where it may take any time."""
    deadline = deployment.spec.progress_deadline_seconds
    if not has_deadline(deployment) or deadline is None or known is None or known.last_update_time is None:
        return None
    return known.last_update_time.timestamp() + deadline - now


def pause_progress(deployment: Deployment) -> Said | None:
    """That it is paused, or no longer: the time in between must not count against it."""
    known = condition_of(deployment, reasons.PROGRESSING)
    if known is not None and known.reason == reasons.PROGRESS_DEADLINE_EXCEEDED:
        return None
    paused = known is not None and known.reason == reasons.DEPLOYMENT_PAUSED
    if deployment.spec.paused and not paused:
        return Said(reasons.PROGRESSING, "Unknown", reasons.DEPLOYMENT_PAUSED, "Deployment is paused")
    if not deployment.spec.paused and paused:
        return Said(reasons.PROGRESSING, "Unknown", reasons.DEPLOYMENT_RESUMED, "Deployment is resumed")
    return None


def condition_of(deployment: Deployment, kind: str) -> DeploymentCondition | None:
    return next((one for one in deployment.status.conditions if one.type == kind), None)


def _available(counts: Counts, limits: Limits) -> Said:
    if counts.available >= limits.fewest:
        return Said(reasons.AVAILABLE, "True", reasons.MINIMUM_REPLICAS_AVAILABLE, "Deployment has minimum availability.")
    return Said(reasons.AVAILABLE, "False", reasons.MINIMUM_REPLICAS_UNAVAILABLE, "Deployment does not have minimum availability.")


def _progressing(deployment: Deployment, said: Said | None, now: float) -> Document | None:
    if not has_deadline(deployment):
        return None
    known = condition_of(deployment, reasons.PROGRESSING)
    if said is not None:
        return _dated(deployment, said, now)
    return None if known is None else _kept(known, now)


def _dated(deployment: Deployment, said: Said, now: float) -> Document:
    known = condition_of(deployment, said.type)
    if (
        known is not None
        and (known.status, known.reason, known.message) == (said.status, said.reason, said.message)
        and not said.news
    ):
        return _kept(known, now)
    since = known.last_transition_time if known is not None and known.status == said.status else None
    return _condition(said, since or moment(now), moment(now))


def _kept(known: DeploymentCondition, now: float) -> Document:
    said = Said(known.type, known.status, known.reason, known.message)
    return _condition(said, known.last_transition_time or moment(now), known.last_update_time or moment(now))


def _condition(said: Said, since: datetime.datetime, updated: datetime.datetime) -> Document:
    words = {"type": said.type, "status": said.status, "reason": said.reason, "message": said.message}
    return {**words, "lastTransitionTime": text_of(since), "lastUpdateTime": text_of(updated)}


def _failure(new: Member | None, everyone: Sequence[Member]) -> Document | None:
    """Why pods cannot be made, as the set says that cannot make them; that of the new one first."""
    for one in [*([new] if new is not None else []), *everyone]:
        for found in one.view.status.conditions:
            if found.type == reasons.REPLICA_FAILURE and found.last_transition_time is not None:
                said = Said(found.type, found.status, found.reason, found.message)
                return _condition(said, found.last_transition_time, found.last_transition_time)
    return None

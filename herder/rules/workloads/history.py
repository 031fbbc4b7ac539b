"""Revisions: each template of a Deployment has a number, which grows when it is rolled out again. `kubectl rollout history` and
`undo` read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from herder.api.core import Deployment
from herder.rules.plans import Delete
from herder.rules.workloads.rolling import Limits
from herder.rules.workloads.templates import Member

REVISION = "deployment.kubernetes.io/revision"
REVISIONS_BEFORE = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
# These are not passed on: they are about the one object that they are on.
OWN = (
    *("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to"),
    *(REVISION, REVISIONS_BEFORE, DESIRED, MOST),
)
LONGEST_HISTORY = 2000
NO_LIMIT = 2**31 - 1


def number_of(annotations: Mapping[str, str], name: str) -> int | None:
    """None where there is none, or it is no number that we wrote."""
    text = annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None


def revision_of(member: Member) -> int:
    return number_of(member.view.annotations, REVISION) or 0


def next_revision(old: Sequence[Member]) -> int:
    return max(map(revision_of, old), default=0) + 1


def sizes_said(limits: Limits) -> dict[str, str]:
    """With which sizes in mind a set was last given its own: by this a change of size is told from a rollout."""
    return {DESIRED: str(limits.wanted), MOST: str(limits.most)}


def passed_on(deployment: Deployment) -> dict[str, str]:
    return {name: value for name, value in deployment.annotations.items() if name not in OWN}


def annotations_of_new(deployment: Deployment, revision: int) -> dict[str, str]:
    return {**passed_on(deployment), REVISION: str(revision)}


def annotations_to_change(deployment: Deployment, new: Member, revision: int) -> dict[str, str]:
    """Of a set that is there already, for example one that people went back to."""
    known = new.view.annotations
    wanted = passed_on(deployment)
    if REVISION in known and number_of(known, REVISION) is None:
        # Somebody wrote something else there: it is left alone.
        return _changed(known, wanted)
    if revision_of(new) < revision:
        wanted[REVISION] = str(revision)
        if REVISION in known:
            wanted[REVISIONS_BEFORE] = _history(known.get(REVISIONS_BEFORE, ""), known[REVISION])
    return _changed(known, wanted)


def _changed(known: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if known.get(name) != value}


def _history(known: str, revision: str) -> str:
    """The latest are kept."""
    numbers = [*(number for number in known.split(",") if number), revision]
    while len(",".join(numbers)) > LONGEST_HISTORY:
        del numbers[0]
    return ",".join(numbers)


def to_forget(deployment: Deployment, old: Sequence[Member]) -> tuple[Delete, ...]:
    """All but the latest so many. One that still has pods, or may have, stays."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == NO_LIMIT:
        return ()
    alive = [one for one in old if not one.view.being_deleted]
    ordered = sorted(alive, key=lambda one: (revision_of(one), one.created, one.name))
    gone = [one for one in ordered[: max(0, len(alive) - limit)] if _is_empty(one)]
    return tuple(Delete(one.name, one.view.uid) for one in gone)


def _is_empty(one: Member) -> bool:
    seen = one.view.status.observed_generation >= (one.view.metadata.generation or 0)
    return seen and one.size == 0 and one.view.status.replicas == 0

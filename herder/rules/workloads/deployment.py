"""The next step of a Deployment: a new ReplicaSet, other sizes, or less of the past; and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import Deployment
from herder.rules.plans import Delete, Document, Event, plain
from herder.rules.workloads import history, progress
from herder.rules.workloads.progress import Said
from herder.rules.workloads.rolling import Limits, Share, Sizes, limits_of, new_size, next_sizes
from herder.rules.workloads.scaling import scaled_sizes
from herder.rules.workloads.templates import Member, new_replica_set, same_template


class DeploymentSnapshot(msgspec.Struct, frozen=True):
    deployment: Deployment
    # `spec.template` as it was written: what is made is made of it, and not of the view.
    template: Document
    sets: tuple[Member, ...] = ()
    # By name: sets of which a pod may still run, also one that is told to end.
    running: frozenset[str] = frozenset()


class Change(msgspec.Struct, frozen=True):
    """To one ReplicaSet, as it was seen: a size that somebody else has changed since is decided upon anew."""

    name: str
    resource_version: str
    patch: Document


class DeploymentPlan(msgspec.Struct, frozen=True):
    create: Document | None = None
    changes: tuple[Change, ...] = ()
    delete: tuple[Delete, ...] = ()
    # What the Deployment's own annotation shall say; None leaves it.
    revision: str | None = None
    status: Document = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()
    next_look: float | None = None


class _Step(msgspec.Struct, frozen=True):
    """What is to be done to the sets."""

    sizes: Sizes = msgspec.field(default_factory=dict)
    # How many pods a set begins with that has yet to be made; None where it is not made now.
    create: int | None = None
    forget: bool = False
    # Whether it is a rollout whose progress is of interest.
    rollout: bool = True


class _View(msgspec.Struct, frozen=True):
    """The snapshot, sorted out."""

    deployment: Deployment
    template: Document
    new: Member | None
    old: tuple[Member, ...]
    limits: Limits
    running: frozenset[str]

    @property
    def everyone(self) -> tuple[Member, ...]:
        return (*self.old, *([self.new] if self.new is not None else []))


def plan_deployment(snapshot: DeploymentSnapshot, now: float) -> DeploymentPlan:
    view = _view(snapshot)
    if view.deployment.being_deleted:
        return DeploymentPlan(status=progress.status_of(view.deployment, view.new, view.everyone, view.limits, None, now))
    return _plan(view, _step(view), now)


def _view(snapshot: DeploymentSnapshot) -> _View:
    deployment = snapshot.deployment
    ordered = sorted(snapshot.sets, key=lambda one: (one.created, one.name))
    new = next((one for one in ordered if same_template(one.template, snapshot.template)), None)
    old = tuple(one for one in ordered if one is not new)
    return _View(
        deployment, snapshot.template, new, old, limits_of(deployment.spec.strategy, wanted_of(deployment)), snapshot.running
    )


def wanted_of(deployment: Deployment) -> int:
    """The API server fills in 1 where nothing is said."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def _step(view: _View) -> _Step:
    if view.deployment.spec.paused or _was_scaled(view):
        return _Step(_scaled(view), forget=view.deployment.spec.paused, rollout=False)
    return _recreated(view) if view.deployment.spec.strategy.type == "Recreate" else _rolled(view)


def _was_scaled(view: _View) -> bool:
    """Whether the Deployment wants another number of pods than when its sets were last given their sizes."""
    said = [history.number_of(one.view.annotations, history.DESIRED) for one in view.everyone if one.size > 0]
    return any(number is not None and number != view.limits.wanted for number in said)


def _scaled(view: _View) -> Sizes:
    before = {
        one.name: history.number_of(one.view.annotations, history.MOST) or view.deployment.status.replicas for one in view.everyone
    }
    return scaled_sizes(
        view.limits,
        _share(view.new) if view.new is not None else None,
        [_share(one) for one in view.old],
        before=before,
        saturated=_is_saturated(view),
        rolling=view.deployment.spec.strategy.type == "RollingUpdate",
    )


def _is_saturated(view: _View) -> bool:
    new, wanted = view.new, view.limits.wanted
    if new is None or history.number_of(new.view.annotations, history.DESIRED) != wanted:
        return False
    return new.size == wanted == new.view.status.available_replicas


def _rolled(view: _View) -> _Step:
    old = [_share(one) for one in view.old]
    if view.new is None:
        return _Step(create=new_size(view.limits, Share("", 0), old))
    sizes = next_sizes(view.limits, _share(view.new), old)
    return _Step(sizes, forget=not sizes)


def _recreated(view: _View) -> _Step:
    """First all of the old, and when nothing of it runs any more, all of the new."""
    shrunk = {one.name: 0 for one in view.old if one.size > 0}
    if shrunk:
        return _Step(shrunk)
    if any(one.view.status.replicas > 0 or one.name in view.running for one in view.old):
        return _Step()
    if view.new is None:
        return _Step(create=view.limits.wanted)
    sizes = {view.new.name: view.limits.wanted} if view.new.size != view.limits.wanted else {}
    return _Step(sizes, forget=True)


def _share(one: Member) -> Share:
    status = one.view.status
    return Share(one.name, one.size, status.replicas, status.available_replicas, one.created)


def _plan(view: _View, step: _Step, now: float) -> DeploymentPlan:
    deployment, revision = view.deployment, history.next_revision(view.old)
    create = None if step.create is None else _made(view, step.create, revision)
    changes = _changes(view, step.sizes, revision)
    forget = step.forget and (deployment.spec.paused or progress.was_complete(deployment, view.limits.wanted))
    said = _said(view, step, create, now)
    status = progress.status_of(deployment, view.new, view.everyone, view.limits, said, now)
    return DeploymentPlan(
        create=create,
        changes=changes,
        delete=history.to_forget(deployment, view.old) if forget else (),
        revision=_own_revision(view, revision, create is not None),
        status=status,
        events=_events(view, step, create),
        next_look=_next_look(view, status, now),
    )


def _made(view: _View, size: int, revision: int) -> Document:
    annotations = {**history.annotations_of_new(view.deployment, revision), **history.sizes_said(view.limits)}
    return new_replica_set(view.deployment, plain(view.deployment.spec.selector) or {}, view.template, size, annotations)


def _changes(view: _View, sizes: Sizes, revision: int) -> tuple[Change, ...]:
    found = [(one, _patch(view, one, sizes, revision)) for one in view.everyone]
    return tuple(Change(one.name, one.view.metadata.resource_version or "", patch) for one, patch in found if patch)


def _patch(view: _View, one: Member, sizes: Sizes, revision: int) -> Document:
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}
    if one is view.new:
        annotations |= history.annotations_to_change(view.deployment, one, revision)
        if one.view.spec.min_ready_seconds != view.deployment.spec.min_ready_seconds:
            spec["minReadySeconds"] = view.deployment.spec.min_ready_seconds
    if one.name in sizes:
        annotations |= _unlike(one.view.annotations, history.sizes_said(view.limits))
        spec |= {"replicas": sizes[one.name]} if sizes[one.name] != one.size else {}
    patch: Document = {"metadata": {"annotations": annotations}} if annotations else {}
    return {**patch, "spec": spec} if spec else patch


def _unlike(known: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if known.get(name) != value}


def _own_revision(view: _View, revision: int, made: bool) -> str | None:
    """That of the new set, once it has one."""
    if view.new is None:
        wanted = str(revision) if made else None
    else:
        changed = history.annotations_to_change(view.deployment, view.new, revision)
        wanted = changed.get(history.REVISION) or view.new.view.annotations.get(history.REVISION)
    return wanted if wanted != view.deployment.annotations.get(history.REVISION) else None


def _said(view: _View, step: _Step, create: Document | None, now: float) -> Said | None:
    if not progress.has_deadline(view.deployment):
        return None
    if create is not None:
        message = f'Created new replica set "{create["metadata"]["name"]}"'
        return Said(reasons.PROGRESSING, "True", reasons.NEW_REPLICA_SET_CREATED, message)
    pause = progress.pause_progress(view.deployment)
    if pause is not None or not step.rollout:
        return pause
    return progress.rollout_progress(view.deployment, view.new, view.everyone, view.limits.wanted, now)


def creation_failed(snapshot: DeploymentSnapshot, name: str, why: str, now: float) -> tuple[Document, Event]:
    """The status and the event, where the new set could not be made."""
    view = _view(snapshot)
    message = f'Failed to create new replica set "{name}": {why}'
    said = Said(reasons.PROGRESSING, "False", reasons.REPLICA_SET_CREATE_ERROR, message)
    status = progress.status_of(view.deployment, view.new, view.everyone, view.limits, said, now)
    return status, Event("Warning", reasons.REPLICA_SET_CREATE_ERROR, message)


def _events(view: _View, step: _Step, create: Document | None) -> tuple[Event, ...]:
    told = [_scaling(create["metadata"]["name"], 0, step.create or 0)] if create is not None and step.create else []
    for one in view.everyone:
        size = step.sizes.get(one.name, one.size)
        if size != one.size:
            told.append(_scaling(one.name, one.size, size))
    return tuple(told)


def _scaling(name: str, before: int, after: int) -> Event:
    direction = "up" if after > before else "down"
    return Event("Normal", reasons.SCALING_REPLICA_SET, f"Scaled {direction} replica set {name} from {before} to {after}")


def _next_look(view: _View, status: Document, now: float) -> float | None:
    """When it will have taken too long, if nothing happens until then."""
    said = next((one for one in status["conditions"] if one["type"] == reasons.PROGRESSING), None)
    over = (reasons.NEW_REPLICA_SET_AVAILABLE, reasons.PROGRESS_DEADLINE_EXCEEDED, reasons.DEPLOYMENT_PAUSED)
    if said is None or said["reason"] in over:
        return None
    return _seconds_left(view.deployment, said, now)


def _seconds_left(deployment: Deployment, said: Document, now: float) -> float | None:
    known = msgspec.convert(said, type=progress.DeploymentCondition)
    left = progress.time_left(deployment, known, now)
    # A second more: times are written without fractions.
    return None if left is None else max(0.0, left) + 1.0


def is_ours(found: Member, snapshot: DeploymentSnapshot) -> bool:
    """Whether a set of the name that we wanted to give is the one that we wanted to make. If not, two templates have one hash."""
    return found.view.controller_uid == snapshot.deployment.uid and same_template(found.template, snapshot.template)


def collided(snapshot: DeploymentSnapshot, now: float) -> Document:
    """The status that makes the next try have another name."""
    view = _view(snapshot)
    counted = {"collisionCount": (view.deployment.status.collision_count or 0) + 1}
    return progress.status_of(view.deployment, view.new, view.everyone, view.limits, None, now) | counted

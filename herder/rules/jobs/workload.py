"""What a pod is a replica of: found from its controller upwards (seed 004: jobs are grouped by workload).

A ReplicaSet's pods are those of its Deployment, a launcher pod is that of its machine's pool. Each step is taken only where the
object that the reference names is there with the very uid: an owner that was made again under its name is another one. Kinds of
somebody else's say how many replicas they want through their scale subresource; those without one have as many as there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol

import msgspec

from herder.api import registry
from herder.api.core import DaemonSet, Deployment, Pod, ReplicaSet, StatefulSet
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.meta import Identified
from herder.rules.jobs.rollout import (
    daemon_set_rolls_out,
    deployment_rolls_out,
    is_behind,
    pool_rolls_out,
    stateful_set_rolls_out,
)

GroupKind = tuple[str, str]

DEPLOYMENT: Final[GroupKind] = ("apps", "Deployment")
REPLICA_SET: Final[GroupKind] = ("apps", "ReplicaSet")
STATEFUL_SET: Final[GroupKind] = ("apps", "StatefulSet")
DAEMON_SET: Final[GroupKind] = ("apps", "DaemonSet")
BATCH_JOB: Final[GroupKind] = ("batch", "Job")
INSTANCE: Final[GroupKind] = (registry.INSTANCE.group, registry.INSTANCE.kind)
MACHINE: Final[GroupKind] = (registry.MACHINE.group, registry.MACHINE.kind)
POOL: Final[GroupKind] = (registry.POOL.group, registry.POOL.kind)
# Those that are looked up; every other kind is asked for its scale.
KNOWN: Final = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, INSTANCE, MACHINE, POOL)
# The only ways up between them, so that no circle of references is one.
_NEXT: Final = {REPLICA_SET: DEPLOYMENT, INSTANCE: MACHINE, MACHINE: POOL}
# Controllers of somebody else's keep these too.
_KEPT_BY_OTHERS: Final = (REPLICA_SET, INSTANCE)
# Kinds of Kubernetes' own of which is known that they have no scale: nobody need be asked. A Node has the pods that mirror its own.
WITHOUT_SCALE: Final = (BATCH_JOB, ("", "Node"))


class Reference(Protocol):
    """An ownerReference, whoever has read it."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


class Controller(msgspec.Struct, frozen=True, gc=False):
    """An owner that manages an object, as the object names it."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group_kind(self) -> GroupKind:
        return self.api_version.rpartition("/")[0], self.kind


class Scale(msgspec.Struct, frozen=True, gc=False):
    """What the scale subresource of a controller says."""

    uid: str
    replicas: int


class NoScale(msgspec.Struct, frozen=True, gc=False):
    """Why there is no number. NoScale: its kind has no such subresource. Missing: there is no such object. Unknown: it could not
    be read, which says nothing about the number."""

    why: Literal["NoScale", "Missing", "Unknown"]
    message: str = ""


class Objects(Protocol):
    """What there is, by reference. Everything is looked for in the namespace of the pod."""

    def get(self, kind: GroupKind, namespace: str, name: str) -> Identified | None:
        """One of the KNOWN kinds; None where it is not there or cannot be read."""
        ...

    def scale(self, controller: Controller, namespace: str) -> Scale | NoScale: ...

    def replica_sets(self, namespace: str, uid: str) -> Iterable[ReplicaSet]:
        """Those that this object controls."""
        ...


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    api_version: str
    kind: str
    # That of its pods: also where it is in none itself.
    namespace: str
    name: str
    uid: str
    # The direct controller of the pod that was asked about: of a Deployment's pod, its ReplicaSet.
    controller: Controller
    # How many it wants; None where that is not known, which `problem` explains: unknown is not zero.
    replicas: int | None = None
    # Whether it has a number of replicas that people set. Else there are as many as there are pods.
    scalable: bool = True
    being_deleted: bool = False
    rolling_out: bool = False
    # It is not there: gone, made again as another one, or not yet seen.
    missing: bool = False
    problem: str = ""

    @property
    def id(self) -> tuple[str, str]:
        """What jobs are grouped by. With the namespace: whoever makes pods elsewhere may write any uid into them."""
        return self.namespace, self.uid

    @property
    def group_kind(self) -> GroupKind:
        return self.api_version.rpartition("/")[0], self.kind


class Top(msgspec.Struct, frozen=True):
    """How far up a pod's owners could be followed."""

    controller: Controller
    # The object, where it is of a known kind and there.
    thing: Identified | None = None
    problem: str = ""


def controller_named(reference: Reference) -> Controller:
    return Controller(reference.api_version, reference.kind, reference.name, reference.uid)


def top_of(controller: Controller, namespace: str, objects: Objects) -> Top:
    """From the pod's controller up to its workload."""
    while controller.group_kind in KNOWN:
        thing = objects.get(controller.group_kind, namespace, controller.name)
        if thing is None or thing.uid != controller.uid:
            return Top(controller, None, _why_missing(controller, thing))
        above = thing.controller
        if above is None or not _leads_up(controller.group_kind, controller_named(above).group_kind):
            return Top(controller, thing)
        controller = controller_named(above)
    return Top(controller)


def _leads_up(kind: GroupKind, above: GroupKind) -> bool:
    return _NEXT.get(kind) == above or (kind in _KEPT_BY_OTHERS and above not in KNOWN)


def _why_missing(controller: Controller, thing: Identified | None) -> str:
    said = f"{controller.kind} {controller.name} (uid {controller.uid})"
    return f"{said} is not there" if thing is None else f"{said} is another one by now (uid {thing.uid})"


def describe(controller: Controller, top: Top, namespace: str, pods: Sequence[Pod], objects: Objects) -> Workload:
    """The workload of pods with this direct controller; `pods` are all of its own that have not ended."""
    about = top.controller
    base = Workload(
        api_version=about.api_version, kind=about.kind, namespace=namespace, name=about.name, uid=about.uid, controller=controller
    )
    if top.problem:
        return msgspec.structs.replace(base, missing=True, problem=top.problem)
    if top.thing is None:
        unscaled = about.group_kind in WITHOUT_SCALE
        return foreign(base, NoScale("NoScale") if unscaled else objects.scale(about, namespace), len(pods))
    return _known(base, top.thing, pods, objects)


def _known(base: Workload, thing: Identified, pods: Sequence[Pod], objects: Objects) -> Workload:
    replicas: int | None = None
    scalable, rolls = True, False
    match thing:
        case Deployment():
            replicas, rolls = (
                _or_one(thing.spec.replicas),
                deployment_rolls_out(thing, objects.replica_sets(base.namespace, base.uid)),
            )
        case ReplicaSet():
            replicas = _or_one(thing.spec.replicas)
            rolls = is_behind(thing.metadata.generation, thing.status.observed_generation)
        case StatefulSet():
            replicas, rolls = _or_one(thing.spec.replicas), stateful_set_rolls_out(thing, pods)
        case DaemonSet():
            replicas, scalable, rolls = thing.status.desired_number_scheduled, False, daemon_set_rolls_out(thing)
        case VirtualMachinePool():
            replicas, rolls = thing.spec.replicas, pool_rolls_out(thing)
        case VirtualMachine() | VirtualMachineInstance():
            replicas, scalable = 1, False
        case _:
            raise TypeError(f"{type(thing).__name__} is none of the kinds that are looked up")
    return msgspec.structs.replace(base, replicas=replicas, scalable=scalable, rolling_out=rolls, being_deleted=thing.being_deleted)


def foreign(base: Workload, answer: Scale | NoScale, pods: int) -> Workload:
    """Of a kind that we know nothing of but its scale: whether it is being deleted, or rolls out, it does not say there."""
    if isinstance(answer, Scale):
        if answer.uid == base.uid:
            return msgspec.structs.replace(base, replicas=answer.replicas)
        problem = f"{base.kind} {base.name} (uid {base.uid}) is another one by now (uid {answer.uid})"
        return msgspec.structs.replace(base, missing=True, problem=problem)
    if answer.why == "NoScale":
        return msgspec.structs.replace(base, replicas=pods, scalable=False)
    return msgspec.structs.replace(base, missing=answer.why == "Missing", problem=answer.message)


def _or_one(replicas: int | None) -> int:
    """As the API server fills it in."""
    return 1 if replicas is None else replicas

"""What people ask of a pool and of its machines, as the patch that says so. kubectl can patch the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from herder.api import labels, registry
from herder.api.kinds import VirtualMachine, VirtualMachinePool
from herder.api.meta import OwnerReference
from herder.api.problems import nearest
from herder.api.reading import part
from herder.rules.instances.pool_label import is_pool
from herder.rules.machines.preserved import pool_of
from herder.rules.machines.wishes import Impossible
from herder.rules.plans import Document, moment, text_of
from herder.rules.pools.gather import references_of
from herder.rules.pools.member import FIRST, NEVER, Member
from herder.rules.pools.naming import number_of
from herder.rules.pools.revisions import Revision, content_of
from herder.rules.pools.rollout import is_updated, proactive, strategy_of
from herder.rules.pools.scale import may_take
from herder.rules.pools.status import counted
from herder.rules.pools.waiting import after_failure

JsonPatch = list[Document]


class Wish(msgspec.Struct, frozen=True):
    """The patch, None where all is as it is wished, and what has come of it for the person who asked."""

    patch: Document | None
    said: str = ""


NOTHING_TO_DO = Wish(None, "unchanged")


# Of a machine.


def own_pool(machine: VirtualMachine) -> OwnerReference:
    """Raises `Impossible` for a machine of no pool."""
    owner = pool_of(machine)
    if owner is None:
        raise Impossible(
            f"VirtualMachine {machine.name} is of no pool; `herder pool attach {machine.name}` puts one back that was detached"
        )
    return owner


def no_machine(namespace: str, name: str, machines: Sequence[VirtualMachine], pools: Sequence[str]) -> str:
    """What is said of a machine that is not there: perhaps which is meant, and what lists those that there are."""
    close = nearest(name, [one.name for one in machines])
    named = name.rpartition("-")[0]
    owner = next((pool_of(one) for one in machines if one.name == close), None)
    pool = named if named in pools else owner.name if owner is not None else ""
    meant = f"; did you mean {close}?" if close else ";"
    lists = (
        f"`herder pool status {pool}` lists those of pool {pool}"
        if pool
        else f"`kubectl get vm -n {namespace}` lists those that there are"
    )
    return f"there is no VirtualMachine {name!r} in namespace {namespace!r}{meant} {lists}"


def detach(machine: VirtualMachine) -> Wish:
    """Also one whose reference its pool has not completed yet."""
    _refuse_deleted(machine)
    left = [one for one in references_of(machine) if not _is_reference_to_pool(one)]
    named = [one for one in machine.metadata.owner_references or () if is_pool(one)]
    if not named:
        own_pool(machine)
    said = f"detached from pool {named[0].name}, which makes another in its place; `herder pool attach {machine.name}` returns it"
    return Wish({"metadata": {**_in_this_state(machine), "ownerReferences": left or None}}, said)


def attach(machine: VirtualMachine, pool: VirtualMachinePool, size: int) -> Wish:
    """A reference that the pool completes. `size`: how many machines it has now."""
    _refuse_deleted(machine)
    if pool.being_deleted:
        raise Impossible(f"pool {pool.name} is being deleted, and its machines with it")
    owner = machine.controller
    if owner is not None and owner.uid != pool.uid:
        raise Impossible(
            f"VirtualMachine {machine.name} is controlled by {owner.kind} {owner.name}"
            + (f", another than the pool {pool.name} of now" if owner.name == pool.name else "")
            + "; take that reference away first"
            + (f": `herder pool detach {machine.name}`" if is_pool(owner) else "")
        )
    if number_of(pool.name, machine.name) is None:
        raise Impossible(f"VirtualMachine {machine.name} is not named {pool.name}-<n>, and a pool takes no other")
    known = references_of(machine)
    if any(one.get("uid") == pool.uid for one in known):
        return NOTHING_TO_DO
    # References to a pool of this name that is gone would not let it be adopted, and mean nothing.
    others = [one for one in known if not (_is_reference_to_pool(one) and one.get("name") == pool.name)]
    reference = {"apiVersion": registry.POOL.api_version, "kind": registry.POOL.kind, "name": pool.name, "uid": pool.uid}
    return Wish({"metadata": {**_in_this_state(machine), "ownerReferences": [*others, reference]}}, _attached(machine, pool, size))


def _attached(machine: VirtualMachine, pool: VirtualMachinePool, size: int) -> str:
    said = f"attached to pool {pool.name}"
    if size < pool.spec.replicas:
        return said
    more = f", which has {size} of {pool.spec.replicas}: one too many, and one is taken by its scaleInStrategy"
    return f"{said}{more}; `herder pool protect {machine.name}` keeps this one"


def protect(machine: VirtualMachine, *, undo: bool) -> Wish:
    """Undone, it is one like all others, whatever was asked before."""
    owner = own_pool(machine)
    _refuse_deleted(machine)
    marks = machine.annotations
    wanted = None if undo else NEVER
    if marks.get(labels.SCALE_IN) == wanted and labels.REMOVE_REQUEST not in marks:
        return NOTHING_TO_DO
    said = f"may be taken by pool {owner.name} again" if undo else f"is never taken by a scale-in of pool {owner.name}"
    return Wish(_annotated(machine, {labels.SCALE_IN: wanted, labels.REMOVE_REQUEST: None}), said)


def remove(machine: VirtualMachine, pool: VirtualMachinePool, members: Sequence[Member]) -> Wish:
    """The mark by which this machine, and no other, is the next one that is taken. `lowered` says with how many replicas."""
    own_pool(machine)
    _refuse_deleted(machine)
    member = next((one for one in members if one.uid == machine.uid), None)
    if member is None or member.number is None:
        raise Impossible(f"VirtualMachine {machine.name} is not named {pool.name}-<n>, so its pool never touches it")
    _refuse_whole_pause(pool, "it would stay")
    if member.standby:
        raise Impossible(
            f"VirtualMachine {machine.name} is a standby of pool {pool.name}, and none of its replicas; fewer of them are kept with"
            " fewer spec.standby.replicas"
        )
    if member.scale_in == NEVER:
        raise Impossible(
            f"VirtualMachine {machine.name} is protected; `herder pool protect --undo {machine.name}` lets it be taken again"
        )
    if not may_take(pool.spec.scale_in_strategy, member):
        raise Impossible(_not_taken(machine, pool))
    if not is_full(pool, members):
        raise Impossible(still_growing(pool, members))
    if member.remove_requested and member.scale_in == FIRST:
        return NOTHING_TO_DO
    return Wish(_annotated(machine, {labels.SCALE_IN: FIRST, labels.REMOVE_REQUEST: machine.uid}))


def _not_taken(machine: VirtualMachine, pool: VirtualMachinePool) -> str:
    strategy = pool.spec.scale_in_strategy
    if strategy is not None and strategy.opportunistic is not None:
        said = f"scaleInStrategy of pool {pool.name} is opportunistic, which takes no machine that runs"
        return f"{said}; `herder stop {machine.name}` first"
    said = f"scaleInStrategy of pool {pool.name} is unmanaged, so nothing is taken by itself"
    return f"{said}; lower replicas, and delete {machine.name} with kubectl"


def is_full(pool: VirtualMachinePool, members: Sequence[Member]) -> bool:
    return len(_staying(members)) >= pool.spec.replicas


def still_growing(pool: VirtualMachinePool, members: Sequence[Member]) -> str:
    """Why nothing can be removed: fewer replicas would only mean that fewer are made."""
    there = len(_staying(members))
    return (
        f"pool {pool.name} has {there} of {counted(pool.spec.replicas, 'machine')}, and would make another instead;"
        f" wait until all are there, or ask for {there} first: `kubectl scale vmpool {pool.name} --replicas={there}`"
    )


def lowered(pool: VirtualMachinePool, members: Sequence[Member]) -> int | None:
    """replicas with which all machines that people asked to remove go, and nobody else; None where they go as it is. It is a
    function of what there is, so that who asks twice, or together with others, removes nothing that was not asked for."""
    staying = _staying(members)
    asked = sum(one.remove_requested and may_take(pool.spec.scale_in_strategy, one) for one in staying)
    wanted = max(0, len(staying) - asked)
    return wanted if wanted < pool.spec.replicas else None


def _staying(members: Sequence[Member]) -> list[Member]:
    return [one for one in members if not one.deleting and one.number is not None and not one.standby]


def replace(machine: VirtualMachine, pool: VirtualMachinePool, member: Member, wanted: Revision) -> Wish:
    """This machine gets the template's revision before its turn; maxUnavailable holds all the same."""
    own_pool(machine)
    _refuse_deleted(machine)
    _refuse_whole_pause(pool, "it would not be updated")
    if member.number is None:
        raise Impossible(f"VirtualMachine {machine.name} is not named {pool.name}-<n>, so its pool never touches it")
    failed = pool.status.failed_revision if pool.status else None
    if failed == wanted.name:
        raise Impossible(f"the rollout of {failed} failed, so nobody else gets it; {after_failure(pool)}")
    if is_updated(member, wanted.name):
        return Wish(None, f"unchanged: it has revision {wanted.name} already")
    if member.paused:
        raise Impossible(f"the guest of {machine.name} is paused, and is left so; `herder unpause {machine.name}` first")
    if member.update_requested == wanted.name:
        return NOTHING_TO_DO
    return Wish(_annotated(machine, {labels.UPDATE_REQUEST: wanted.name}), f"gets revision {wanted.name} next")


# Of a pool.


def pause(pool: VirtualMachinePool, *, undo: bool) -> Wish:
    _refuse_unless_proactive(pool, "nothing is rolled out by itself", "`spec.paused` holds a pool with all that it does")
    if bool(proactive(pool).paused) != undo:
        return NOTHING_TO_DO
    said = "rollout goes on" if undo else "rollout stands still; scaling and healing go on"
    paused: Document = {"spec": {"updateStrategy": {"proactive": {"paused": None if undo else True}}}}
    return Wish({"metadata": {"uid": pool.uid}, **paused}, said)


def restart(pool: VirtualMachinePool, now: float) -> Wish:
    advice = "`herder restart VM` restarts one machine"
    _refuse_unless_proactive(pool, "nothing is restarted by itself", advice)
    _refuse_whole_pause(pool, "nothing would be restarted")
    if proactive(pool).paused:
        raise Impossible(f"the rollout of pool {pool.name} is paused; `herder pool rollout resume {pool.name}` first")
    annotations = {labels.RESTARTED_AT: text_of(moment(now))}
    inner = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    return Wish({"metadata": {"uid": pool.uid}, "spec": {"template": inner}}, "all its machines are restarted, a few at a time")


def undo(pool: VirtualMachinePool, written: Document, known: Sequence[Revision], number: int | None) -> Revision | None:
    """The revision to go back to; None where the template is that one already."""
    spec = part(written, "spec")
    now = content_of(part(spec, "template"), part(spec, "nameGeneration"))
    latest_first = sorted(known, key=lambda one: -one.number)
    others = [one for one in latest_first if content_of(one.template, one.name_generation) != now]
    if number is None:
        if not others:
            raise Impossible(f"pool {pool.name} has no other revision; `kubectl edit vmpool {pool.name}` changes its template")
        return others[0]
    chosen = next((one for one in latest_first if one.number == number), None)
    if chosen is None:
        numbers = ", ".join(str(one.number) for one in reversed(latest_first)) or "none"
        raise Impossible(f"--to-revision: pool {pool.name} has no revision {number}; there are: {numbers}")
    return chosen if chosen in others else None


def back_to(pool: VirtualMachinePool, written: Document, revision: Revision) -> JsonPatch:
    """The template as a whole, and only while the pool is as it was looked at."""
    patch: JsonPatch = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": pool.metadata.resource_version},
        {"op": "replace", "path": "/metadata/uid", "value": pool.uid},
        {"op": "replace", "path": "/spec/template", "value": revision.template},
    ]
    if revision.name_generation:
        patch.append({"op": "add", "path": "/spec/nameGeneration", "value": revision.name_generation})
    elif "nameGeneration" in part(written, "spec"):
        patch.append({"op": "remove", "path": "/spec/nameGeneration"})
    return patch


def _refuse_unless_proactive(pool: VirtualMachinePool, so: str, advice: str) -> None:
    strategy = strategy_of(pool)
    if strategy != "Proactive":
        raise Impossible(f"updateStrategy of pool {pool.name} is {strategy.lower()}, so {so}; {advice}")


def _refuse_whole_pause(pool: VirtualMachinePool, so: str) -> None:
    if pool.spec.paused:
        raise Impossible(f"spec.paused of pool {pool.name} is true, so {so}; set it to false first")


def _refuse_deleted(machine: VirtualMachine) -> None:
    if machine.being_deleted:
        raise Impossible(f"VirtualMachine {machine.name} is being deleted")


def _is_reference_to_pool(reference: Document) -> bool:
    return is_pool(msgspec.convert(reference, OwnerReference))


def _in_this_state(machine: VirtualMachine) -> Document:
    """A list is replaced as a whole: only where nobody has changed it meanwhile."""
    return {"uid": machine.uid, "resourceVersion": machine.metadata.resource_version}


def _annotated(machine: VirtualMachine, annotations: Document) -> Document:
    return {"metadata": {"uid": machine.uid, "annotations": annotations}}

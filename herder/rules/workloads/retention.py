"""Whose a claim of a StatefulSet is. It outlives its pod, and by default its set, too: then it is nobody's. Where it is to go, the
garbage collector takes it away, with the owner that it is given here:

| whenScaled | whenDeleted | of a pod that stays | of a pod that goes |
|---|---|---|---|
| Retain | Retain | | |
| Retain | Delete | the set | the set |
| Delete | Retain | | the pod |
| Delete | Delete | the set | the pod |
"""

from __future__ import annotations

import msgspec

from herder.api.core import PersistentVolumeClaim, StatefulSet
from herder.api.meta import OwnerReference
from herder.rules.plans import Document, plain
from herder.rules.workloads.claiming import controller_reference
from herder.rules.workloads.ordinals import ordinal_of, ordinals

RETAIN, DELETE = "Retain", "Delete"


class Member(msgspec.Struct, frozen=True):
    """A pod of a set; without uid, one that has yet to be made."""

    name: str
    uid: str = ""


def when_scaled(stateful_set: StatefulSet) -> str:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return (policy.when_scaled if policy is not None else "") or RETAIN


def when_deleted(stateful_set: StatefulSet) -> str:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return (policy.when_deleted if policy is not None else "") or RETAIN


def is_stale(stateful_set: StatefulSet, claim: PersistentVolumeClaim, pod: str) -> bool:
    """Whether it goes with an earlier pod of this name: a new one must not begin to use it."""
    return when_scaled(stateful_set) == DELETE and any(_names(one, "v1", "Pod", pod) for one in _owners(claim))


def owners_for(stateful_set: StatefulSet, member: Member) -> list[Document]:
    """Those that a claim of this pod is to have, as far as they are of us."""
    goes = ordinal_of(stateful_set.name, member.name) not in ordinals(stateful_set)
    if goes and when_scaled(stateful_set) == DELETE:
        pod = {"apiVersion": "v1", "kind": "Pod", "name": member.name, "uid": member.uid}
        return [{**pod, "controller": True, "blockOwnerDeletion": True}]
    if when_deleted(stateful_set) == DELETE:
        return [controller_reference(stateful_set, "apps/v1", "StatefulSet")]
    return []


def owners_to_write(stateful_set: StatefulSet, claim: PersistentVolumeClaim, member: Member) -> list[Document] | None:
    """All owners that the claim is to have; None where they stay as they are."""
    known = _owners(claim)
    ours = [one for one in known if _is_ours(one, stateful_set, member)]
    if any(one.uid not in (stateful_set.uid, member.uid) for one in ours):
        # Of an earlier set or pod of that name: what becomes of the claim is the garbage collector's to say.
        return None
    others = [one for one in known if one not in ours]
    kept = (when_scaled(stateful_set), when_deleted(stateful_set)) == (RETAIN, RETAIN)
    taken = not kept and any(one.controller for one in others)
    wanted = [] if taken else owners_for(stateful_set, member)
    if [(one.uid, bool(one.controller)) for one in ours] == [(one["uid"], True) for one in wanted]:
        return None
    return [*(plain(one) or {} for one in others), *wanted]


def _is_ours(owner: OwnerReference, stateful_set: StatefulSet, member: Member) -> bool:
    return _names(owner, "apps/v1", "StatefulSet", stateful_set.name) or _names(owner, "v1", "Pod", member.name)


def _names(owner: OwnerReference, api_version: str, kind: str, name: str) -> bool:
    return (owner.api_version, owner.kind, owner.name) == (api_version, kind, name)


def _owners(claim: PersistentVolumeClaim) -> tuple[OwnerReference, ...]:
    return claim.metadata.owner_references or ()

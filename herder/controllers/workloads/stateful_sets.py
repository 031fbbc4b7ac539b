"""Keeps StatefulSets: pods with lasting names, each with its own claims, made and updated one after the other."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet
from herder.controllers.hands import Hands, InTheWay
from herder.controllers.workloads.batches import all_of, in_batches
from herder.controllers.workloads.claims import Claims
from herder.controllers.workloads.refusals import is_ending, is_refusal
from herder.controllers.workloads.revision_keeper import REVISIONS, RevisionKeeper, Revisions
from herder.kube.cache import BY_NAMESPACE, BY_OWNER, Stored, owned
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import AlreadyExists, ApiStatusError, KubeError
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, Key, key_of, written
from herder.rules.plans import Delete, Document
from herder.rules.workloads.claiming import selects
from herder.rules.workloads.failing import FORGOTTEN, failed_soon
from herder.rules.workloads.ordinals import claim_name, claimants, ordinal_of, pod_name, split
from herder.rules.workloads.stateful_pods import revision_name, template_name
from herder.rules.workloads.stateful_set import (
    NewPod,
    Owners,
    StatefulSetPlan,
    StatefulSetSnapshot,
    created,
    created_claim,
    deleted,
    failed_create,
    ordinals_to_look_at,
    plan_stateful_set,
    pods_by_ordinal,
    stateful_set_status,
)

WORKERS = 16


class _Failures(msgspec.Struct):
    """Of one pod's name: how often in a row it failed at once, and when last."""

    row: int
    last: float


class _MadeOf(msgspec.Struct, frozen=True):
    """What pods and claims are made of."""

    revisions: Revisions
    claim_templates: tuple[Document, ...]


class StatefulSets:
    name = "stateful-sets"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._sets = kit.caches.of(STATEFUL_SETS)
        self._pods = kit.caches.of(PODS)
        self._volume_claims = kit.caches.of(CLAIMS)
        self._revisions = kit.caches.of(CONTROLLER_REVISIONS, REVISIONS)
        self._sets.add_index(BY_NAMESPACE)
        self._claims = Claims(kit.client, STATEFUL_SETS, self._pods, may_have=_is_named_for)
        self._keeper = RevisionKeeper(kit, self._hands)
        # By set, and by the name of a pod. Lost with the term: then it begins anew.
        self._failures: dict[Key, dict[str, _Failures]] = {}

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._sets, queue)
        enqueue(self._pods, queue, self._sets_of_pod)
        enqueue(self._revisions, queue, self._sets_of_revision)
        # One that a new pod waits for, as it has to be gone first; or that is missed.
        enqueue(self._volume_claims, queue, self._sets_of_claim)
        return kit.work(self, queue, WORKERS, of=self._sets)

    def _sets_of_pod(self, pod: Stored[Pod]) -> Iterable[Key]:
        """The one that manages it, and the one whose pod has its name: it may be in the way there, or be taken in."""
        found = split(pod.key.name)
        named = Key(pod.key.namespace, found[0]) if found is not None else None
        return [*controlled_by(STATEFUL_SETS)(pod), *([named] if named is not None and named in self._sets else [])]

    def _sets_of_revision(self, one: Stored[ControllerRevision]) -> Iterable[Key]:
        """The one that manages it, or all that would take it in."""
        if one.controller is not None:
            return controlled_by(STATEFUL_SETS)(one)
        return [key for key in self._sets.keys_by(BY_NAMESPACE, one.key.namespace) if self._would_take(key, one)]

    def _would_take(self, key: Key, one: Stored[ControllerRevision]) -> bool:
        found = self._sets.get(key)
        return found is not None and selects(found.spec.selector, dict(one.labels))

    def _sets_of_claim(self, claim: Stored[PersistentVolumeClaim]) -> Iterable[Key]:
        for template, name in claimants(claim.key.name):
            found = self._sets.get(Key(claim.key.namespace, name))
            if found is not None and any(one.metadata.name == template for one in found.spec.volume_claim_templates):
                yield Key(claim.key.namespace, name)

    async def reconcile(self, key: Key) -> Result:
        stored = self._sets.stored(key)
        if stored is None:
            self._failures.pop(key, None)
            return DONE
        await self._claims.of(stored.view)
        spec: Document = msgspec.json.decode(stored.raw)["spec"]
        revisions = await self._keeper.of(stored.view, spec["template"])
        if revisions is None:
            return DONE
        made_of = _MadeOf(revisions, tuple(spec.get("volumeClaimTemplates") or ()))
        failure, next_look = await self._carry_out(stored, made_of)
        # As the pods are now.
        after = self._snapshot(stored, made_of)
        status, wait = stateful_set_status(after, revisions.collisions, self._world.now())
        await self._hands.show(self._sets, stored, status)
        await self._keeper.forget(stored.view, revisions, {revision_name(pod) for pod in after.pods.values()})
        if failure is not None:
            raise failure
        looks = [seconds for seconds in (wait, next_look) if seconds is not None]
        return Later(min(looks)) if looks else DONE

    async def _carry_out(self, stored: Stored[StatefulSet], made_of: _MadeOf) -> tuple[KubeError | None, float | None]:
        """What kept us from it, where somebody has to do something about it; and in how many seconds there is more to do."""
        plan = plan_stateful_set(self._snapshot(stored, made_of), self._world.now())
        self._hands.tell(stored.view, plan.events)
        try:
            await self._steps(stored.view, plan)
        except InTheWay as error:
            return error, plan.next_look
        except ApiStatusError as error:
            if is_refusal(error):
                return error, plan.next_look
            if not is_ending(error):
                raise
        return None, plan.next_look

    async def _steps(self, one: StatefulSet, plan: StatefulSetPlan) -> None:
        await all_of(self._replace(one, finished) for finished in plan.replace)
        for missing in plan.claims:
            await self._create_claim(one, missing.pod, missing.document)
        await in_batches(plan.create, lambda pod: self._create(one, pod))
        for labels in plan.labels:
            pod = self._pods.stored(Key(one.namespace, labels.pod))
            if pod is not None:
                await self._hands.patch(self._pods, pod, {"metadata": {"labels": labels.labels}})
        for owners in plan.owners:
            await self._give(one.namespace, owners)
        await all_of(self._delete(one, pod) for pod in plan.delete)

    async def _create(self, one: StatefulSet, pod: NewPod) -> None:
        try:
            for document in pod.claims:
                await self._create_claim(one, pod.name, document)
            await self._hands.create(self._pods, pod.document, one.uid)
        except KubeError as error:
            if isinstance(error, InTheWay) or is_refusal(error):
                self._hands.tell(one, (failed_create(one, pod.name, str(error)),))
            raise
        self._hands.tell(one, (created(one, pod.name),))

    async def _create_claim(self, one: StatefulSet, pod: str, document: Document) -> None:
        """One that is there already is taken as it is, whoever made it: so it is found again after a scale-in."""
        name = document["metadata"]["name"]
        try:
            made = await self._client.create(written(CLAIMS), document)
            self._hands.tell(one, (created_claim(one, pod, name),))
        except AlreadyExists:
            made = await self._client.get(written(CLAIMS), Key(one.namespace, name))
        await self._volume_claims.wait_seen(made.metadata.resource_version or "")

    async def _give(self, namespace: str, owners: Owners) -> None:
        claim = self._volume_claims.stored(Key(namespace, owners.claim))
        if claim is not None:
            metadata = {"ownerReferences": owners.references, "resourceVersion": owners.resource_version}
            await self._hands.patch(self._volume_claims, claim, {"metadata": metadata})

    async def _replace(self, one: StatefulSet, finished: Delete) -> None:
        pod = self._pods.get(Key(one.namespace, finished.name))
        await self._delete(one, finished)
        if pod is not None and failed_soon(pod):
            key = key_of(one)
            failures = _Failures(self._rows(key).get(pod.name, 0) + 1, self._world.now())
            self._failures.setdefault(key, {})[pod.name] = failures

    def _rows(self, key: Key) -> dict[str, int]:
        """By pod: how often in a row it failed at once. What lies further back has nothing to do with it."""
        since = self._world.now() - FORGOTTEN
        return {name: one.row for name, one in self._failures.get(key, {}).items() if one.last >= since}

    async def _delete(self, one: StatefulSet, wanted: Delete) -> None:
        await self._hands.delete(self._pods, one.namespace, wanted)
        self._hands.tell(one, (deleted(one, wanted.name),))

    def _snapshot(self, stored: Stored[StatefulSet], made_of: _MadeOf) -> StatefulSetSnapshot:
        one, templates = stored.view, made_of.claim_templates
        owned_pods = self._pods.by(BY_OWNER, owned(one.namespace, one.uid))
        pods = pods_by_ordinal(one, [pod for pod in owned_pods if pod.controller_uid == one.uid])
        looked_at = ordinals_to_look_at(one, pods)
        names = [claim_name(template_name(template), one.name, ordinal) for template in templates for ordinal in looked_at]
        found = {name: self._volume_claims.get(Key(one.namespace, name)) for name in names}
        missing = (pod_name(one.name, ordinal) for ordinal in looked_at if ordinal not in pods)
        others = {name: self._pods.stored(Key(one.namespace, name)) for name in missing}
        return StatefulSetSnapshot(
            stateful_set=one,
            current=made_of.revisions.current,
            update=made_of.revisions.update,
            claim_templates=templates,
            pods=pods,
            claims={name: claim for name, claim in found.items() if claim is not None},
            taken={name: _whose(pod, one.name) for name, pod in others.items() if pod is not None},
            failures=self._rows(stored.key),
        )


def _whose(pod: Stored[Pod], namesake: str) -> str:
    """`namesake`: who asks. Another one of that name was there before."""
    if pod.controller is None:
        return "nobody"
    owner = f"{pod.controller.kind} {pod.controller.name}"
    return f"an earlier {owner}" if owner == f"StatefulSet {namesake}" else owner


def _is_named_for(owner: StatefulSet, pod: Pod) -> bool:
    return ordinal_of(owner.name, pod.name) is not None

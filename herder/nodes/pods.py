"""Keeps the pods of one or many nodes: starts, ends and reports what is bound to them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import structlog

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import ENDED, order_of
from herder.api.world import World
from herder.kube.cache import BY_NODE, Cache
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.controller import DONE, Later, Result
from herder.kube.errors import Conflict, NotFound
from herder.kube.failures import is_ordinary
from herder.kube.queue import Queue
from herder.kube.resources import PODS, Key, key_of, written
from herder.nodes.attempts import Attempts, TakesLong
from herder.nodes.booked import Booked
from herder.nodes.guests import from_memory, resumes
from herder.nodes.health import HEALTHY, Health
from herder.nodes.imports.underway import saves
from herder.nodes.leaving import Ending
from herder.nodes.moving.mover import told_of
from herder.nodes.moving.moving import STAYS, Moving
from herder.nodes.orphans import Orphan, Orphans
from herder.nodes.plan import Action, PodPlan, plan_pod
from herder.nodes.pod_status import differs, patch_of, pod_status, waiting_status
from herder.nodes.probes import Probes
from herder.nodes.readiness import plain_health
from herder.nodes.runtimes.base import GuestStatus, Refused
from herder.nodes.work import GuestWork, NotYet, Work
from herder.rules.matching.resources import Amounts, lacking, pod_requests, used_by

log = structlog.get_logger()
LOOK_AGAIN = 2.0
# Most guests run before anybody could read that they are being prepared.
SAID_AFTER = 2.0
# For what the pod says of a move, where the pod ends anyway.
ENDING_LOOK = 5.0
FINISHED = ("Succeeded", "Failed")
LOST = GuestStatus("Failed", reasons.GUEST_LOST, "its node was deleted while it ran, so it was ended")
Document = dict[str, Any]


class Site(msgspec.Struct, frozen=True):
    """One node, as far as its pods are concerned."""

    name: str
    address: str
    allocatable: Amounts
    # What runs a guest, an import, a plain pod; what is not there cannot be run here.
    guests: GuestWork | None = None
    imports: Work | None = None
    plain: Work | None = None

    def works(self) -> list[Work]:
        return [work for work in (self.guests, self.imports, self.plain) if work is not None]

    def work_for(self, pod: Pod) -> Work | None:
        if labels.GUEST in pod.annotations:
            return self.guests
        return self.imports if labels.IMPORT in pod.annotations else self.plain


class Outcome(msgspec.Struct, frozen=True):
    """Of one look at a pod and of what was done after it."""

    plan: PodPlan
    health: Health = HEALTHY
    moving: Moving = STAYS


class NodeTenants:
    """What runs on one of the keeper's nodes."""

    def __init__(self, keeper: PodKeeper, node: str) -> None:
        self._keeper = keeper
        self._node = node

    async def end_all(self, *, polite: bool) -> None:
        await self._keeper.end_all(self._node, polite=polite)

    def admit(self) -> None:
        self._keeper.admit(self._node)


class PodKeeper:
    """A controller whose objects are the pods of its sites. Where it runs, no other runs the same node's pods."""

    name = "pods"

    def __init__(
        self,
        client: Client,
        cache: Cache[Pod],
        queue: Queue,
        world: World,
        sites: Mapping[str, Site],
    ) -> None:
        self._client = client
        self._cache = cache
        cache.add_index(BY_NODE)
        self._queue = queue
        self._world = world
        self._sites = sites
        self._booked = Booked(cache)
        self._probes = Probes(world, self.changed)
        self._attempts: Attempts[Outcome] = Attempts(self.changed)
        # Names come again with other pods behind them; work belongs to a pod.
        self._uids: dict[Key, str] = {}
        self._placed: dict[str, tuple[Key, Site]] = {}
        # What was said last, and the version that it gave the pod: until the cache has seen that, it is what is known.
        self._said: dict[str, tuple[str, Document]] = {}
        # When the start of a pod's work was seen first.
        self._began: dict[str, float] = {}
        # How work ended that was ended here: until that is written nothing else tells it, and nobody may take it for running.
        self._ended: dict[str, GuestStatus] = {}
        # Gone while something was done for them: what that has begun may still come about.
        self._cut_short: set[str] = set()
        self._orphans = Orphans()
        self._ending = Ending(self.changed)
        self._lost = self._ending.lost

    def changed(self, uid: str) -> None:
        """For runtimes and probes: something about this pod's work is different now."""
        self._ending.told(uid)
        if placed := self._placed.get(uid):
            self._queue.add(placed[0])

    async def remove_orphans(self) -> None:
        """What runs for pods that are gone: nobody will ever ask for it again. Only once the cache knows all pods."""
        known = {pod.uid for pod in self._cache.list()}
        works = [work for site in self._sites.values() for work in site.works()]
        await self._orphans.remove([Orphan(work, uid) for work in works for uid in work.uids() if uid not in known])

    def close(self) -> None:
        """Nobody is asked anything any more."""
        self._orphans.close()
        self._probes.close()
        self._attempts.close()

    def leave(self, node: str) -> None:
        """The node is gone, with all that ran there. Of its pods nothing is left to be kept."""
        self._ending.admit(node)
        for uid, (key, site) in tuple(self._placed.items()):
            if site.name == node:
                del self._placed[uid]
                self._said.pop(uid, None)
                self._began.pop(uid, None)
                self._ended.pop(uid, None)
                self._lost.discard(uid)
                self._probes.forget(uid)
                self._attempts.forget(uid)
                if self._uids.get(key) == uid:
                    del self._uids[key]

    def hold(self, node: str) -> None:
        """Nothing is started there before it is admitted."""
        self._ending.close(node)

    def tenants(self, node: str) -> NodeTenants:
        return NodeTenants(self, node)

    async def end_all(self, node: str, *, polite: bool) -> None:
        """The node is no longer there for the cluster, which may run its pods elsewhere: nothing of them may run on here."""
        site = self._sites.get(node)
        await self._ending.end(node, site.works() if site is not None else [], polite=polite)
        # Those that never began, too: the cluster may have given them up with their node, and started them elsewhere.
        self._lost.update(pod.uid for pod in self._cache.by(BY_NODE, node) if labels.GUEST in pod.annotations)

    def admit(self, node: str) -> None:
        if self._ending.admit(node):
            self._lost.intersection_update(pod.uid for pod in self._cache.list())
            for key in self.keys_on(node):
                self._queue.add(key)

    def keys_on(self, node: str) -> tuple[Key, ...]:
        return self._cache.keys_by(BY_NODE, node)

    def find(self, namespace: str, name: str) -> tuple[Pod, Work | None] | None:
        """A pod of one of our nodes, and what runs it, if anything does: for those who look in."""
        pod = self._cache.get(Key(namespace, name))
        site = self._sites.get(pod.spec.node_name) if pod is not None else None
        return (pod, site.work_for(pod)) if pod is not None and site is not None else None

    def nodes(self) -> Collection[str]:
        return self._sites.keys()

    def pods_on(self, node: str) -> list[tuple[Pod, Work]]:
        """Those that something runs, or would run."""
        site = self._sites.get(node)
        pods = (self._cache.get(key) for key in self.keys_on(node)) if site is not None else ()
        return [(pod, work) for pod in pods if pod is not None and site is not None and (work := site.work_for(pod)) is not None]

    async def reconcile(self, key: Key) -> Result:
        pod = self._cache.get(key)
        before = self._uids.get(key)
        if before is not None and (pod is None or pod.uid != before):
            try:
                await self._forget(before)
            except Exception as error:
                return Later(self._attempts.failed(before, error).wait)
        if pod is None:
            return DONE
        site = self._sites.get(pod.spec.node_name)
        if site is None:
            return DONE
        self._uids[key] = pod.uid
        self._placed[pod.uid] = (key, site)
        work = site.work_for(pod)
        if self._ending.holds(site.name, pod, work):
            return Later(LOOK_AGAIN)
        if work is None:
            return await self._refuse(pod, site)
        return await self._carry_out(pod, site, work)

    async def _carry_out(self, pod: Pod, site: Site, work: Work) -> Result:
        """The one place where it shows on the pod what goes wrong with its work, whatever that is; the end of a pod goes on all the
        same."""
        starts = not pod.being_deleted and work.status(pod.uid) is None
        if starts and (wait := self._attempts.too_soon(pod.uid)) > 0:
            return Later(wait)
        try:
            outcome = await self._attempts.run(pod.uid, lambda: self._attempt(pod, site, work), ending=pod.being_deleted)
        except TakesLong as late:
            return await self._show_late(pod, site, work, late)
        except NotYet as waits:
            await self._write(pod, waiting_status(pod, waits.reason, str(waits), site.address, self._world.now()))
            return Later(LOOK_AGAIN)
        except Refused as refusal:
            if pod.being_deleted:
                return await self._show_failure(pod, site, work, refusal)
            refused = GuestStatus("Failed", refusal.reason, str(refusal))
            await self._write(pod, pod_status(pod, refused, site.address, self._world.now()))
            return DONE
        except Exception as error:
            if is_ordinary(error):
                # The API server's matter, and it passes: nothing could be written now, either.
                raise
            return await self._show_failure(pod, site, work, error)
        self._attempts.went_well(pod.uid)
        return await self._show(outcome, pod, site, work)

    async def _attempt(self, pod: Pod, site: Site, work: Work) -> Outcome:
        """One look, and what is to be done after it. A node that is left waits for its end, however long that takes."""
        with self._ending.working(site.name):
            if self._ending.holds(site.name, pod, work):
                # Closed in the moment between the decision to look and the look.
                return Outcome(PodPlan(next_look=LOOK_AGAIN))
            if pod.being_deleted:
                await self._look_at_ending(pod, site, work)
            else:
                await self._look(pod, site, work)
            status = LOST if pod.uid in self._lost else work.status(pod.uid) or self._ended.get(pod.uid)
            moving = self._moving(pod, site)
            health = self._health(pod, status, moving, site)
            no_room = self._no_room(pod, site) if status is None else ""
            plan = plan_pod(pod, status, self._world.now(), health, no_room, moving)
            if "start" in plan.actions:
                await self._say_that_it_resumes(pod, site)
            for action in plan.actions:
                await self._act(action, pod, work)
            if "remove" in plan.actions and plan.shown is not None:
                self._ended[pod.uid] = plan.shown
        return Outcome(plan, health, moving)

    async def _look(self, pod: Pod, site: Site, work: Work) -> None:
        if pod.uid in self._lost:
            return
        if work.status(pod.uid) is None and pod.uid not in self._ended and _says_it_runs(pod):
            await work.adopt(pod, taken_over=self._was_taken_over(pod))
        if site.guests is not None and work is site.guests:
            await site.guests.look(pod)
            status = work.status(pod.uid)
            if status is not None and status.reason == reasons.SAVING_MEMORY and not self._is_saved(pod, site):
                await site.guests.go_on(pod.uid)

    def _is_saved(self, pod: Pod, site: Site) -> bool:
        """Whether there is a pod that saves the memory of this one's guest, or goes on to once it is looked at."""
        others = (one for one in self._cache.by(BY_NODE, site.name) if labels.IMPORT in one.annotations)
        return any(saves(one, pod.uid) for one in others if one.status.phase not in FINISHED and not one.being_deleted)

    async def _say_that_it_resumes(self, pod: Pod, site: Site) -> None:
        """Durable before it is done: saved memory is used once, and who has begun to use it may be forgotten."""
        if from_memory(pod) and not resumes(pod) and site.guests is not None:
            site.guests.begins_to_resume(pod.uid)
            said = GuestStatus("Preparing", reasons.RESUMING, "it goes on from the memory that was saved")
            await self._write(pod, pod_status(pod, said, site.address, self._world.now()))

    async def _look_at_ending(self, pod: Pod, site: Site, work: Work) -> None:
        """It may be on its way to another node. What cannot be found out does not keep it from ending."""
        try:
            async with asyncio.timeout(ENDING_LOOK):
                await self._look(pod, site, work)
        except Exception as error:
            log.warning("a pod ends unlooked at", pod=str(key_of(pod)), error=f"{type(error).__name__}: {error}")

    async def _show(self, outcome: Outcome, pod: Pod, site: Site, work: Work) -> Result:
        plan = outcome.plan
        shown, moving = self._shown(outcome, pod, site, work)
        if shown is not None and self._soon_runs(pod, shown):
            return Later(SAID_AFTER)
        if shown is not None:
            await self._write(pod, pod_status(pod, shown, site.address, self._world.now(), outcome.health, moving.report))
        if "finish" in plan.actions:
            await self._finish(pod)
        looks = [one for one in (plan.next_look, outcome.health.next_look) if one is not None]
        return Later(min(looks)) if looks else DONE

    async def _show_late(self, pod: Pod, site: Site, work: Work, late: TakesLong) -> Result:
        """Its end is told by who is at it."""
        status = work.status(pod.uid)
        if late.word or status is None:
            reason = _trouble(pod, status, starting=reasons.GUEST_STARTING) if late.word else ""
            await self._write(pod, self._with_trouble(pod, site, work, reason, late.word))
        return DONE if late.next_word is None else Later(late.next_word)

    async def _show_failure(self, pod: Pod, site: Site, work: Work, error: Exception) -> Result:
        failures = self._attempts.failed(pod.uid, error)
        reason = _trouble(pod, work.status(pod.uid), starting=reasons.START_FAILED)
        await self._write(pod, self._with_trouble(pod, site, work, reason, f"{failures.text}; it is tried again"))
        return Later(failures.wait)

    def _with_trouble(self, pod: Pod, site: Site, work: Work, reason: str, message: str) -> Document:
        """The pod as it is, and what is wrong. How something has ended is told by what it ended with."""
        status, now = work.status(pod.uid), self._world.now()
        if status is None and pod.status.phase in ("", "Pending"):
            return waiting_status(pod, reason, message, site.address, now)
        if status is None:
            # Nothing of it is left, so it has ended; or it is not found again, and may yet be.
            ended = GuestStatus("Failed", reason, message)
            return pod_status(pod, ended, site.address, now) if pod.being_deleted and pod.status.phase == "Running" else {}
        if reason and status.state not in ENDED:
            status = msgspec.structs.replace(status, reason=reason, message=message)
        moving = self._moving(pod, site)
        return pod_status(pod, status, site.address, now, self._health(pod, status, moving, site), moving.report)

    def _soon_runs(self, pod: Pod, shown: GuestStatus) -> bool:
        """It was started just now, and there is nothing to say but that."""
        if shown.state != "Preparing" or shown.reason or pod.status.host_ip or pod.being_deleted:
            return False
        began = self._began.setdefault(pod.uid, self._world.now())
        return 0 <= self._world.now() - began < SAID_AFTER

    def _shown(self, outcome: Outcome, pod: Pod, site: Site, work: Work) -> tuple[GuestStatus | None, Moving]:
        """What it became by what was done; where it is gone by then, what was planned to be told. Both of one moment: a guest that
        was taken over since, with the state from before, would be one that its migration has done with and that never ran."""
        plan = outcome.plan
        if plan.shown is not None and not plan.actions:
            return plan.shown, outcome.moving
        ended = plan.shown if "remove" in plan.actions else None
        return ended or work.status(pod.uid) or plan.shown, self._moving(pod, site)

    def _health(self, pod: Pod, status: GuestStatus | None, moving: Moving, site: Site) -> Health:
        work = site.work_for(pod)
        if site.plain is not None and work is site.plain:
            return plain_health(pod, status, self._world.now())
        if site.guests is None or work is not site.guests:
            return HEALTHY
        # A guest on its way out is slowed down, paused and stopped by us: what it answers then says nothing about it.
        asked = None if moving.under_way or moving.held else status
        return self._probes.look(pod, asked, site.guests.probe)

    def _moving(self, pod: Pod, site: Site) -> Moving:
        return site.guests.moving(pod.uid) if site.guests is not None and site.work_for(pod) is site.guests else STAYS

    def _was_taken_over(self, pod: Pod) -> bool:
        """Where both nodes are ours, the target's pod tells what became of the guest."""
        order = order_of(pod)
        if order is None or not order.target_pod:
            return False
        target = next((one for one in self._cache.by(BY_NODE, order.target_node) if one.uid == order.target_pod), None)
        told = told_of(target) if target is not None else None
        return told is not None and told.migration == order.migration and told.taken_over

    async def _act(self, action: Action, pod: Pod, work: Work) -> None:
        log.debug("acting on a pod", action=action)
        if action == "start":
            await work.start(pod)
        elif action == "shut_down":
            await work.shut_down(pod.uid)
        elif action == "remove":
            await work.remove(pod.uid)
        elif action == "pause":
            await work.pause(pod.uid)
        elif action == "resume":
            await work.resume(pod.uid)

    async def _refuse(self, pod: Pod, site: Site) -> Result:
        if pod.being_deleted:
            await self._finish(pod)
        elif pod.status.phase not in ("Succeeded", "Failed"):
            message = "this node runs virtual machines, and no containers"
            await self._write(pod, pod_status(pod, GuestStatus("Failed", "Unsupported", message), site.address, self._world.now()))
        return DONE

    def _no_room(self, pod: Pod, site: Site) -> str:
        """Looked at again here, because two schedulers may not have known of each other. Who came first may stay."""
        if not lacking(self._booked.on(site.name), {}, site.allocatable):
            return ""  # for all that are bound to it, this one among them
        others = [one for one in self._cache.by(BY_NODE, site.name) if self._holds_room(one, pod, site)]
        lack = lacking(pod_requests(pod), used_by(others), site.allocatable)
        if not lack:
            return ""
        return f"{reasons.OUT_OF}{lack[0]} node {site.name} has too little {', '.join(lack)} left for this pod"

    def _holds_room(self, other: Pod, pod: Pod, site: Site) -> bool:
        if other.uid == pod.uid or other.status.phase in ("Succeeded", "Failed"):
            return False
        work = site.work_for(other)
        return bool(other.status.host_ip) or (work is not None and work.status(other.uid) is not None)

    async def _write(self, pod: Pod, wanted: Document) -> None:
        known = self._known(pod)
        if not differs(known, wanted):
            return
        patch = {"metadata": {"uid": pod.uid}, "status": patch_of(known, wanted)}
        self._said.pop(pod.uid, None)
        try:
            made = await self._client.patch(written(PODS), key_of(pod), patch, subresource="status", content_type=STRATEGIC_PATCH)
        except NotFound:
            log.info("a pod is gone before its status was written", pod=str(key_of(pod)))
        else:
            if pod.uid in self._placed:  # and not forgotten meanwhile
                self._said[pod.uid] = (made.metadata.resource_version or "", wanted)

    def _known(self, pod: Pod) -> Document:
        """Its status, as far as it is known: the answer to a write may be here before the cache has heard of it."""
        version, said = self._said.get(pod.uid, ("", {}))
        if version and not self._cache.has_seen(version):
            return said
        raw = self._cache.raw(key_of(pod))
        return msgspec.json.decode(raw).get("status", {}) if raw else {}

    async def _finish(self, pod: Pod) -> None:
        """The node has nothing of it any more, so the pod may go for good."""
        # Gone already, or another one of that name by now: both are fine.
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(PODS, key_of(pod), uid=pod.uid, grace_period_seconds=0)
        await self._forget(pod.uid)

    async def _forget(self, uid: str) -> None:
        """Once nothing of it is left here: until then it is known, so that its end can be tried again."""
        if self._attempts.cancel(uid):
            self._cut_short.add(uid)
        key, site = self._placed.get(uid, (None, None))
        if site is not None:
            await self._remove(uid, site)
        self._cut_short.discard(uid)
        self._placed.pop(uid, None)
        self._attempts.forget(uid)
        self._probes.forget(uid)
        self._said.pop(uid, None)
        self._began.pop(uid, None)
        self._ended.pop(uid, None)
        self._lost.discard(uid)
        if key is not None and self._uids.get(key) == uid:
            del self._uids[key]

    async def _remove(self, uid: str, site: Site) -> None:
        with self._ending.working(site.name):
            for work in site.works():
                if uid in self._cut_short or work.status(uid) is not None:
                    await work.remove(uid)


def _trouble(pod: Pod, status: GuestStatus | None, starting: str) -> str:
    """In one word, by what the node was about to do."""
    if pod.being_deleted:
        return reasons.ENDING_FAILED
    return starting if status is None or status.state in ("Preparing", "Incoming") else reasons.NODE_ERROR


def _says_it_runs(pod: Pod) -> bool:
    running = any(one.state.running is not None for one in pod.status.container_statuses)
    return running and pod.status.phase == "Running"

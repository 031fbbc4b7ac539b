"""Places pods that ask for us: asks the rules about all nodes, assumes the choice, and binds while the next is decided.

One decision stands on the one before, so they are taken one at a time; writes go out beside them. Between asking the rules and
assuming or parking nothing is waited for: no event can come in between and be missed. Reservations are placed in the same line
(reservations.py); their keys have no namespace.
"""

from __future__ import annotations

import asyncio

import structlog

from herder.api import reasons
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.api.storage import SELECTED_NODE
from herder.kube.cache import Change, Stored, view_of
from herder.kube.enqueue import controlled_by
from herder.kube.errors import KubeError
from herder.kube.failures import is_ordinary, said
from herder.kube.kit import Kit
from herder.kube.resources import INSTANCES, PODS, Key
from herder.rules.placement import OF_THE_NODE, RULES, Event, Needs, Rule, What, decide, message, needs_of, still_fits
from herder.rules.placement.storage import is_bound
from herder.rules.reservations import matches, waiting_keys
from herder.scheduler.attempts import Attempts, Rank, report
from herder.scheduler.hands import Hands
from herder.scheduler.reservations import ReservationPlacer
from herder.scheduler.view import FINISHED, View
from herder.scheduler.waiting import Waiter

log = structlog.get_logger()
# Decisions after which others get their turn, when nothing has to be waited for.
IN_A_ROW = 4


class Scheduler:
    name = "scheduler"

    def __init__(self, kit: Kit, names: tuple[str, ...], rules: tuple[Rule, ...] = RULES) -> None:
        self._names = names
        self._rules = rules
        self._hands = Hands(kit)
        self._attempts = Attempts(kit, self._rank_of, self._undo)
        # Pods that hold their room until their volumes are made, and where.
        self._reserved: dict[Key, str] = {}
        self._pods = kit.caches.of(PODS)
        self._instances = kit.caches.of(INSTANCES)
        # Before the other subscriptions: when we hear of a pod or a reservation, the snapshot shows it.
        self.view = View(kit.caches, self._happened, self._opened)
        self._reservations = ReservationPlacer(kit, names, rules, self.view, self._attempts)
        self._pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        try:
            number = 0
            while True:
                key = await self._attempts.next()
                if key.namespace:
                    self._try(key)
                else:
                    self._reservations.attempt(key)
                number += 1
                if number % IN_A_ROW == 0:
                    await asyncio.sleep(0)
        finally:
            self._attempts.end()

    # What comes in.

    def _pod_changed(self, change: Change[Pod]) -> None:
        key, pod = change.key, view_of(change.new)
        line, waiting = self._attempts.line, self._attempts.waiting
        if pod is None or not self._is_ours(pod):
            self._attempts.forget(key)
            self._reserved.pop(key, None)
        elif key in self.view.assumed and key not in waiting:
            return
        elif (waiter := waiting.get(key)) is None:
            if key not in line:
                line.add_later(key, *_rank(pod))
        elif needs_of(pod) != waiter.needs:
            waiting.remove(key)
            line.add(key, *_rank(pod))

    def _happened(self, event: Event) -> None:
        waiting = self._attempts.waiting
        if not len(waiting):
            return
        woken = waiting.woken_by(event, self.view.snapshot)
        if event.what is What.NODE_WENT:
            # No volume will be made there any more.
            lost = [key for key, node in self._reserved.items() if node == event.node]
            woken += [waiter for key in lost if (waiter := waiting.remove(key)) is not None]
        self._attempts.wake(woken)

    def _opened(self, name: str) -> None:
        """Those that wait and may take this reservation are looked at again, at once: it was opened for them."""
        reservation, waiting = self.view.ledger.get(name), self._attempts.waiting
        if reservation is None or not len(waiting):
            return
        found = waiting.for_owners(self.view.ledger.keys_of(name))
        meant = [one for one in found if (pod := view_of(self._pods.stored(one.key))) is not None and matches(reservation, pod)]
        self._attempts.wake([woken for one in meant if (woken := waiting.remove(one.key)) is not None], at_once=True)

    def _rank_of(self, key: Key) -> Rank | None:
        if not key.namespace:
            return self._reservations.rank_of(key)
        pod = view_of(self._pods.stored(key))
        return _rank(pod) if pod is not None and self._is_ours(pod) else None

    def _undo(self, key: Key) -> None:
        if key.namespace:
            self.view.undo(key)
        else:
            self.view.undo_reservation(key.name)

    def _is_ours(self, pod: Pod) -> bool:
        spec = pod.spec
        waits = not spec.node_name and not spec.scheduling_gates and not pod.being_deleted and pod.status.phase not in FINISHED
        return waits and spec.scheduler_name in self._names

    def _is_wanted(self, stored: Stored[Pod]) -> bool:
        """A guest's pod whose instance is gone must not run: there may be another instance by now. It is about to be removed."""
        owner = stored.controller
        key = next(iter(controlled_by(INSTANCES)(stored)), None)
        if key is None or owner is None:
            return True
        instance = self._instances.stored(key)
        return instance is not None and instance.uid == owner.uid and not instance.deleting

    # One pod.

    def _try(self, key: Key) -> None:
        """Takes the slot of a write, and gives it back when there is nothing to write."""
        stored = self._pods.stored(key)
        pod = view_of(stored)
        if stored is None or pod is None or not self._is_ours(pod):
            self._attempts.release()
            return
        if not self._is_wanted(stored):
            # Made by a request that was late; or we know of the pod before we know of its instance.
            self._attempts.again(key, "error")
            self._attempts.release()
            return
        try:
            self._place(stored, pod, needs_of(pod))
        except Exception as error:
            # A mistake of ours must not keep all other pods from their nodes.
            log.error("a pod could not be placed, will be tried again", key=str(key), exc_info=error)
            self._attempts.again(key, "error")
            self._attempts.write(self._hands.say_why(stored, said(error)[1], reasons.SCHEDULER_ERROR))

    def _place(self, stored: Stored[Pod], pod: Pod, needs: Needs) -> None:
        self.view.undo(stored.key)
        self._reserved.pop(stored.key, None)
        with self._attempts.metrics.deciding.time():
            # Before any other node is considered.
            take = self._reservations.take(pod, needs)
            decision = decide(needs, self.view.snapshot, self._rules) if take is None else None
        if take is not None and take.sentence:
            self._park(stored, needs, take.waits_for, take.sentence)
        elif take is not None:
            self._go(stored, pod, needs, take.node, take.reservation)
        elif decision is not None and decision.node:
            self._go(stored, pod, needs, decision.node)
        elif decision is not None:
            self._park(stored, needs, decision.rules(), message(needs, decision, self.view.snapshot))

    def _go(self, stored: Stored[Pod], pod: Pod, needs: Needs, node: str, reservation: ReservationView | None = None) -> None:
        self.view.assume(pod, needs, node, reservation)
        if self._unbound_claims(needs):
            self._wait_for_volumes(stored, needs, node)
        else:
            self._attempts.write(self._bind(stored, needs, node, reservation))

    def _park(self, stored: Stored[Pod], needs: Needs, rules: tuple[Rule, ...], why: str) -> None:
        self._attempts.metrics.attempts["unschedulable"].inc()
        self._attempts.line.failed(stored.key)
        self._attempts.wait(Waiter(stored.key, needs, rules, waiting_keys(stored.view)), self._hands.say_why(stored, why))

    def _wait_for_volumes(self, stored: Stored[Pod], needs: Needs, node: str) -> None:
        """They are made where it goes: it holds its room there until they are."""
        self._reserved[stored.key] = node
        waiter = Waiter(stored.key, needs, tuple(rule for rule in self._rules if rule.name == "volumes"))
        self._attempts.wait(waiter, self._choose(needs, node))

    async def _choose(self, needs: Needs, node: str) -> None:
        for name in self._unbound_claims(needs):
            claim = self.view.snapshot.storage.claims.get((needs.namespace, name))
            if claim is not None and claim.annotations.get(SELECTED_NODE) != node:
                await self._hands.choose_node(Key(needs.namespace, name), claim.uid, node)

    def _unbound_claims(self, needs: Needs) -> list[str]:
        claims = ((one.name, self.view.snapshot.storage.claims.get((needs.namespace, one.name))) for one in needs.claims)
        return [name for name, claim in claims if claim is not None and not is_bound(claim)]

    async def _bind(self, stored: Stored[Pod], needs: Needs, node: str, reservation: ReservationView | None) -> None:
        key = stored.key
        bound = False
        refused: KubeError | None = None
        try:
            if still_fits(needs, node, self.view.snapshot, OF_THE_NODE):
                bound = await self._hands.bind(stored, node, reservation)
        except Exception as error:
            refused = error if isinstance(error, KubeError) else None
            report("a pod could not be bound, will be tried again", key, error)
        finally:
            if not bound and self.view.assumed.get(key) is needs:
                self.view.undo(key)
        if bound:
            self._attempts.metrics.attempts["scheduled"].inc()
            self._attempts.line.forget(key)
        else:
            self._attempts.again(key, "error")
        if refused is not None and not is_ordinary(refused):
            await self._hands.say_why(stored, f"binding to node {node}: {said(refused)[1]}", reasons.SCHEDULER_ERROR)


def _rank(pod: Pod) -> Rank:
    created = pod.metadata.creation_timestamp
    return (pod.spec.priority or 0, created.timestamp() if created is not None else 0.0)

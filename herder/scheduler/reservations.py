"""Places reservations like pods of their templates, and finds those that a pod may take (seed 004)."""

from __future__ import annotations

import structlog

from herder.api import reasons
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.kube.cache import Change, Stored, view_of
from herder.kube.failures import said
from herder.kube.kit import Kit
from herder.kube.resources import JOBS, PRIORITY_CLASSES, RESERVATIONS, Key
from herder.rules.placement import OF_THE_NODE, Needs, Rule, message, still_fits
from herder.rules.placement.snapshot import PodKey
from herder.rules.plans import Document
from herder.rules.reservations import (
    Candidate,
    Take,
    is_expired,
    is_finished,
    job_that_made,
    place_reservation,
    placed_status,
    take_reservation,
    unplaced_status,
)
from herder.scheduler.attempts import Attempts, Rank, report
from herder.scheduler.hands import Hands
from herder.scheduler.view import View
from herder.scheduler.waiting import Waiter

log = structlog.get_logger()


class ReservationPlacer:
    def __init__(self, kit: Kit, names: tuple[str, ...], rules: tuple[Rule, ...], view: View, attempts: Attempts) -> None:
        # One that names nobody is ours, on every engine: nobody else knows what it is.
        self._names = ("", *names)
        self._rules = rules
        self._view = view
        self._attempts = attempts
        self._world = kit.world
        self._hands = Hands(kit)
        self._recorder = kit.recorder
        self._jobs = kit.caches.of(JOBS)
        self._classes = kit.caches.of(PRIORITY_CLASSES)
        self._reservations = kit.caches.of(RESERVATIONS)
        self._reservations.subscribe(self._changed)

    # What a pod takes.

    def take(self, pod: Pod, needs: Needs) -> Take | None:
        found = self._view.ledger.open_for(pod, self._world.now())
        candidates = (Candidate(one, self._on_its_way_out(one)) for one in found)
        return take_reservation(needs, candidates, self._view.snapshot, self._rules)

    def _on_its_way_out(self, reservation: ReservationView) -> PodKey | None:
        key = self._pod_of_job(reservation)
        placed = self._view.snapshot.placed(key) if key is not None else None
        return key if placed is not None and placed.needs.deleting else None

    def _pod_of_job(self, reservation: ReservationView) -> PodKey | None:
        """The pod that is to move, where a job made the reservation."""
        owner = job_that_made(reservation)
        if owner is None:
            return None
        job = view_of(self._jobs.stored(Key("", owner.name)))
        if job is None or job.uid != owner.uid:
            return None
        reference = job.spec.pod_ref
        placed = self._view.snapshot.placed((reference.namespace, reference.name))
        same = placed is not None and reference.uid in (None, "", placed.needs.uid)
        return (reference.namespace, reference.name) if same else None

    # Which are to be placed.

    def rank_of(self, key: Key) -> Rank | None:
        reservation = view_of(self._reservations.stored(key))
        if reservation is None or not self._is_ours(reservation):
            return None
        created = reservation.metadata.creation_timestamp
        return (self._priority_of(reservation), created.timestamp() if created is not None else 0.0)

    def _priority_of(self, reservation: ReservationView) -> int:
        """Pods get the value of their class when they are made; a template has only its name."""
        spec = reservation.spec.template.spec
        if spec.priority is not None or not spec.priority_class_name:
            return spec.priority or 0
        found = view_of(self._classes.stored(Key("", spec.priority_class_name)))
        return found.value if found is not None else 0

    def _is_ours(self, reservation: ReservationView) -> bool:
        status = reservation.status
        waits = not status.node_name and not is_finished(reservation) and not reservation.being_deleted
        return waits and reservation.spec.template.spec.scheduler_name in self._names

    def _changed(self, change: Change[ReservationView]) -> None:
        key, rank = change.key, self.rank_of(change.key)
        if rank is None:
            self._attempts.forget(key)
        elif not self._view.ledger.is_assumed(key.name) and key not in self._attempts.waiting and key not in self._attempts.line:
            self._attempts.line.add_later(key, *rank)

    # One reservation.

    def attempt(self, key: Key) -> None:
        """Takes the slot of a write, and gives it back when there is nothing to write."""
        stored = self._reservations.stored(key)
        reservation, needs = view_of(stored), self._view.ledger.needs(key.name)
        wanted = reservation is not None and self._is_ours(reservation) and not is_expired(reservation, self._world.now())
        if stored is None or reservation is None or needs is None or not wanted:
            self._attempts.release()
            return
        try:
            self._place(stored, reservation, needs)
        except Exception as error:
            # A mistake of ours must not keep all others from their nodes.
            log.error("a reservation could not be placed, will be tried again", key=str(key), exc_info=error)
            self._attempts.again(key, "error")
            why = unplaced_status(reservation, said(error)[1], self._world.now(), reasons.SCHEDULER_ERROR)
            self._attempts.write(self._say(stored, why))

    def _place(self, stored: Stored[ReservationView], reservation: ReservationView, needs: Needs) -> None:
        self._view.undo_reservation(stored.key.name)
        with self._attempts.metrics.deciding.time():
            decision = place_reservation(needs, self._view.snapshot, self._rules, self._pod_of_job(reservation))
        if decision.node:
            self._view.assume_reservation(stored.key.name, decision.node)
            self._attempts.write(self._hold(stored, reservation, needs, decision.node))
            return
        self._attempts.metrics.attempts["unschedulable"].inc()
        self._attempts.line.failed(stored.key)
        text = message(needs, decision, self._view.snapshot)
        waiter = Waiter(stored.key, needs, decision.rules())
        self._attempts.wait(waiter, self._say(stored, unplaced_status(reservation, text, self._world.now())))

    async def _say(self, stored: Stored[ReservationView], status: Document) -> None:
        """Written only where it says something new."""
        shown = stored.view.status
        if (shown.phase, shown.reason, shown.message) == tuple(status.get(name) for name in ("phase", "reason", "message")):
            return
        self._recorder.warning(stored.view, "FailedScheduling", status["message"], action="Scheduling")
        if not await self._hands.show(stored, status):
            # Somebody else wrote it meanwhile: it is looked at again, as it is now.
            waiter = self._attempts.waiting.remove(stored.key)
            if waiter is not None:
                self._attempts.wake([waiter])

    async def _hold(self, stored: Stored[ReservationView], reservation: ReservationView, needs: Needs, node: str) -> None:
        name, held = stored.key.name, False
        try:
            if still_fits(needs, node, self._view.snapshot, OF_THE_NODE):
                held = await self._hands.show(stored, placed_status(reservation, needs, node, self._world.now()))
        except Exception as error:
            report("a reservation could not be placed, will be tried again", stored.key, error)
        finally:
            if not held:
                self._view.undo_reservation(name)
        if held:
            self._attempts.metrics.attempts["scheduled"].inc()
            self._attempts.line.forget(stored.key)
            self._recorder.normal(reservation, "Scheduled", f"holds room on node {node}", action="Binding")
        else:
            self._attempts.again(stored.key, "error")

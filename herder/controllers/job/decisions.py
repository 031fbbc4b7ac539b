"""Writes down what a pass has decided about a job. Each write is only for the very state of the job that was looked at: an edit, a
pause, an abort or a deletion in between comes first, and the pass looks again.

What was admitted counts as migrating until the cache shows what became of it. Where the answer to the write is lost nobody knows:
the job is then read from the server before anything else is decided about it.
"""

from __future__ import annotations

import asyncio

from herder.api import reasons
from herder.api.kinds import PodMigrationJob
from herder.api.problems import shortened
from herder.controllers.configuration import HerderConfig
from herder.controllers.hands import Hands
from herder.controllers.job.candidates import Candidates
from herder.controllers.job.looks import Looked
from herder.controllers.job.metrics import ArbitrationMetrics
from herder.kube.cache import Change, Stored, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.kit import Kit
from herder.kube.resources import JOBS, Key
from herder.rules.jobs.arbitration import Refused, Wait
from herder.rules.jobs.arbitration.candidate import is_aborted
from herder.rules.jobs.execution.status import admitted_status, finished_status, phase_of, status_of, waiting_status
from herder.rules.plans import Document, Event

# At once, of a pass that admits or holds thousands.
WORKERS = 8
# How often a sentence is rewritten whose reason is the same: mostly only its numbers are others.
REWORDED = 30.0
LONGEST_MESSAGE = 1024

Decision = Looked | Wait | Refused


class DecisionWriter:
    name = "job-arbitration-status"

    def __init__(self, kit: Kit, candidates: Candidates, config: HerderConfig, metrics: ArbitrationMetrics) -> None:
        self._world, self._client, self._clock = kit.world, kit.client, asyncio.get_running_loop().time
        self._hands = Hands(kit.client, kit.recorder)
        self._candidates, self._config, self._metrics = candidates, config, metrics
        self._jobs = kit.caches.of(JOBS)
        self._queue = kit.queue(self.name)
        self._decisions: dict[str, Decision] = {}
        # Writes whose answer was lost, or that came too late.
        self._unsure: set[str] = set()
        # When a sentence was last written; those from before this term are as old as the term.
        self._worded: dict[str, float] = {}
        self._began = self._clock()
        self.work: Work = kit.work(self, self._queue, WORKERS)
        self._jobs.subscribe(self._job_changed)

    def put(self, name: str, decision: Decision) -> None:
        """In place of what was decided about it before."""
        self._decisions[name] = decision
        key = Key("", name)
        if not isinstance(decision, Wait):
            self._queue.add_ahead(key)
        elif not self._says(view_of(self._jobs.stored(key)), decision):
            self._queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._jobs.stored(key)
        job, decision = view_of(stored), self._decisions.get(key.name)
        if stored is None or job is None or decision is None or phase_of(job) != "Pending" or is_aborted(job):
            self._forget(key.name)
            return DONE
        if isinstance(decision, Wait):
            return await self._hold(stored, job, decision)
        if isinstance(decision, Refused):
            await self._refuse(stored, job, decision)
        else:
            await self._admit(stored, job, decision)
        if self._decisions.get(key.name) is decision:
            self._forget(key.name)
        return DONE

    # --- the three outcomes ------------------------------------------------------------------------------------------------------

    async def _admit(self, stored: Stored[PodMigrationJob], job: PodMigrationJob, looked: Looked) -> None:
        admitted = self._candidates.admitted.get(job.name)
        if admitted is None or admitted.version != stored.version:
            return  # it has changed since, and the pass looks again
        if job.name in self._unsure and not await self._is_unchanged(stored):
            return
        status = self._admitted_status(job, looked)
        if status is None:
            self._candidates.look_again_at(job.name)
            return
        await self._show(stored, status)
        reference = job.spec.pod_ref
        why = f"; {looked.why_no_surge}" if looked.why_no_surge and status["strategy"] == "Reservation" else ""
        message = f"pod {reference.namespace}/{reference.name} is moved ({status['strategy']}){why}"
        self._hands.tell(job, (Event("Normal", reasons.ADMITTED, message),))
        self._metrics.decided("admitted", "")

    async def _refuse(self, stored: Stored[PodMigrationJob], job: PodMigrationJob, refused: Refused) -> None:
        status = finished_status(job, "Failed", refused.reason, _short(refused), self._world.now())
        await self._show(stored, status)
        self._hands.tell(job, (Event("Warning", refused.reason, refused.message),))
        self._metrics.decided("refused", refused.reason)

    async def _hold(self, stored: Stored[PodMigrationJob], job: PodMigrationJob, wait: Wait) -> Result:
        now, rest = self._clock(), self._worded.get(job.name, self._began) + REWORDED - self._clock()
        if self._says(job, wait):
            return DONE
        if rest > 0 and self._says(job, wait, reworded=True):
            return Later(rest)
        await self._show(stored, waiting_status(job, wait.reason, _short(wait), self._world.now(), pod_uid=self._seen(job)))
        self._worded[job.name] = now
        return DONE

    def _seen(self, job: PodMigrationJob) -> str:
        """The uid of the pod that the pass has looked at."""
        looked = self._candidates.looked.get(job.name)
        return looked.pod.uid if looked is not None and looked.pod is not None else ""

    def _says(self, job: PodMigrationJob | None, wait: Wait, *, reworded: bool = False) -> bool:
        """Whether the job says already what holds it; `reworded`: maybe in other words."""
        if job is None or phase_of(job) != "Pending":
            return False
        status = status_of(job)
        same = status.reason == wait.reason and status.observed_generation == job.metadata.generation
        return same and (reworded or status.message == _short(wait))

    # --- writing -----------------------------------------------------------------------------------------------------------------

    async def _show(self, stored: Stored[PodMigrationJob], status: Document) -> None:
        try:
            await self._hands.show(self._jobs, stored, status, unchanged=True)
        except Exception:
            self._unsure.add(stored.key.name)
            raise

    async def _is_unchanged(self, stored: Stored[PodMigrationJob]) -> bool:
        """Whether the server still has what the cache shows. If not, the cache is waited for: it shows then what became of it."""
        live = await self._client.find(JOBS, stored.key)
        version = (live.metadata.resource_version or "") if live is not None else ""
        if live is not None and version == str(stored.version):
            return True
        if live is None:
            await self._jobs.wait_gone(stored.key, stored.uid)
        else:
            await self._jobs.wait_seen(version)
        return False

    def _admitted_status(self, job: PodMigrationJob, looked: Looked) -> Document | None:
        """None where the pod has gone meanwhile."""
        pod, seen = self._candidates.looks.pod_of(job), looked.candidate.pod
        view = view_of(pod)
        if view is None or seen is None or view.uid != seen.uid:
            return None
        config, now = self._config.jobs(), self._world.now()
        return admitted_status(job, view, looked.workload, config, now, machine=seen.machine, surges=looked.surges)

    # --- what is left ------------------------------------------------------------------------------------------------------------

    def _job_changed(self, change: Change[PodMigrationJob]) -> None:
        name = change.key.name
        if change.new is None:
            self._forget(name)
            self._worded.pop(name, None)
            return
        decision = self._decisions.get(name)
        if isinstance(decision, Wait):
            # Whoever has written something else over it: it still holds.
            self.put(name, decision)

    def _forget(self, name: str) -> None:
        self._decisions.pop(name, None)
        self._unsure.discard(name)


def _short(decision: Wait | Refused) -> str:
    """What a server of somebody else's answered may be part of it."""
    return shortened(decision.message, LONGEST_MESSAGE)

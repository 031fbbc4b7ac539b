"""Which jobs may begin: one pass over all that wait (seed 004), whenever something that decides has changed; and a second look at
one of them right before its pod is disturbed.

A pass is one key of one queue, and waits for nobody while it decides: what it admits counts from then on, before it is written.
"""

from __future__ import annotations

import asyncio
from typing import Final

from herder.api import reasons
from herder.api.kinds import PodMigrationJob
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.candidates import Candidates
from herder.controllers.job.decisions import DecisionWriter
from herder.controllers.job.metrics import ArbitrationMetrics
from herder.controllers.job.second_look import SecondLook
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Stored
from herder.kube.controller import DONE, Later, Result
from herder.kube.kit import Kit, Runs, Together
from herder.kube.resources import Key
from herder.rules.jobs.arbitration import Arbitration, Refused, Wait

THE_PASS: Final = Key("", "all")
# Changes come in swarms: one pass is enough for all that come within this time.
GATHERED = 0.02
# After one that took long, so many times as long, up to a second: where all jobs are about one workload, each change of it is about
# all of them, and there is other work to do.
REST, LONGEST_REST = 4.0, 1.0
# So many jobs are looked at before others have their turn: a new leader has all of them to look at.
AT_ONCE = 200
# Of what nobody tells of, such as the scale of a controller of somebody else's.
ASKED_AGAIN = 15.0
# Whether there are PodUnavailableBudgets, and whether jobs are judged, is waited for: else each job would be told for a moment that
# it waits for that.
PATIENCE = 10.0


class Arbitrator:
    name = "job-arbitration"

    def __init__(self, kit: Kit, workloads: Workloads, budgets: Budgets, config: HerderConfig, guard: WebhookGuard) -> None:
        self._clock = asyncio.get_running_loop().time
        self._first_looks = (budgets.looked, guard.looked)
        self._queue = kit.queue(self.name)
        self._asked = self._clock()
        # What the last pass took of everybody's time.
        self._spent = 0.0
        self._candidates = Candidates(kit, workloads, budgets, config, guard, self._wake)
        self._metrics = ArbitrationMetrics(kit, self._candidates)
        self._writer = DecisionWriter(kit, self._candidates, config, self._metrics)
        self._second_look = SecondLook(kit, self._candidates, workloads, budgets, config)
        self.work: Runs = Together(kit.work(self, self._queue), self._writer.work)

    async def look_again(self, job: Stored[PodMigrationJob]) -> Wait | Refused | None:
        """Whether the pod of a job that runs may be disturbed now; None where nothing speaks against it."""
        return await self._second_look.look(job)

    async def reconcile(self, key: Key) -> Result:
        await self._first_looked()
        now = self._clock()
        if now - self._asked >= ASKED_AGAIN:
            self._asked = now
            self._candidates.ask_again()
        self._spent = 0.0
        await self._refresh()
        # Nothing is waited for from here on: it decides about what there is.
        self._decide()
        return Later(max(0.0, self._asked + ASKED_AGAIN - now)) if self._candidates.asks else DONE

    async def _refresh(self) -> None:
        more = True
        while more:
            began = self._clock()
            more = self._candidates.refresh(AT_ONCE)
            self._spent += self._clock() - began
            if more:
                await asyncio.sleep(0)

    def _decide(self) -> None:
        began = self._clock()
        decided = self._candidates.standing.decide()
        self._metrics.passed(self._clock() - began)
        self._hand_on(decided)
        self._spent += self._clock() - began

    def _hand_on(self, decided: Arbitration) -> None:
        looked = self._candidates.looked
        for name in decided.admitted:
            self._candidates.admitted[name] = looked[name].job
            self._writer.put(name, looked[name])
        for name, refused in decided.refused.items():
            self._writer.put(name, refused)
        for name, wait in decided.waiting.items():
            # Whether a pod is really gone finds out, and says, the controller of the job.
            if wait.reason != reasons.WAITING_FOR_POD or not looked[name].is_left_alone:
                self._writer.put(name, wait)

    def _wake(self) -> None:
        self._queue.add_after(THE_PASS, rest_after(self._spent))

    async def _first_looked(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                for looked in self._first_looks:
                    await looked.wait()
        except TimeoutError:
            return


def rest_after(spent: float) -> float:
    """Seconds until the next pass, where the last one took so many."""
    return max(GATHERED, min(REST * spent, LONGEST_REST))

"""The look right before a pod is disturbed: the same filters and limits as those of the pass, on what is so now.

Other jobs count that were admitted before this one, or that disturb their pods already. So of several that are too many, because a
limit was lowered or a replica was lost meanwhile, the first ones go on and not none of them.
"""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.kinds import PodMigrationJob
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.candidates import Candidates
from herder.controllers.job.looks import Looked
from herder.controllers.job.workloads import CACHED, Workloads
from herder.kube.cache import Stored, view_of
from herder.kube.errors import KubeError
from herder.kube.kit import Kit
from herder.kube.resources import Key
from herder.rules.jobs.arbitration import ArbitrationSnapshot, Refused, Wait, WorkloadState, arbitrate
from herder.rules.jobs.arbitration.candidate import admitted_at, is_disrupting, meant_uid
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.execution.eviction import policy_of
from herder.rules.jobs.workload import KNOWN, WITHOUT_SCALE, Controller, NoScale, Scale, Workload, foreign


class SecondLook:
    def __init__(self, kit: Kit, candidates: Candidates, workloads: Workloads, budgets: Budgets, config: HerderConfig) -> None:
        self._client = kit.client
        self._candidates, self._workloads, self._budgets, self._config = candidates, workloads, budgets, config

    async def look(self, stored: Stored[PodMigrationJob]) -> Wait | Refused | None:
        job = stored.view
        workload = self._candidates.looks.look(stored, job).workload
        answer = await self._ask(workload) if workload is not None else None
        if isinstance(answer, Wait | Refused):
            return answer
        # Nothing is waited for from here on. What was asked about may be another one by now: then nothing is known of it.
        looked = self._candidates.looks.look(stored, job)
        if (looked.workload.id if looked.workload is not None else None) != (workload.id if workload is not None else None):
            return Wait(reasons.WAITING_FOR_WORKLOAD_LIMIT, "the pod's workload has become another one")
        return self._decide(job, looked, _asked(looked.state, answer) if looked.state is not None else None)

    def _decide(self, job: PodMigrationJob, looked: Looked, state: WorkloadState | None) -> Wait | Refused | None:
        others = [self._candidates.looks.as_migrating(one) for one in self._before(job)]
        snapshot = ArbitrationSnapshot(
            # Where no more are to begin, those that run still end.
            config=msgspec.structs.replace(self._config.jobs(), enabled=True),
            pending=(looked.candidate,),
            migrating=tuple(one for one, _ in others),
            workloads={state.workload.id: state} if state is not None else {},
            budgets={**{one.uid: budgets for one, budgets in others}, meant_uid(job): self._budgets_of(looked)},
        )
        decided = arbitrate(snapshot)
        return decided.waiting.get(job.name) or decided.refused.get(job.name)

    def _budgets_of(self, looked: Looked) -> PodBudgets:
        """A pod that is deleted, and not evicted, is counted by nobody until the budget's status is made anew."""
        pod = view_of(looked.pod)
        deletes = pod is not None and policy_of(pod, self._config.jobs()) == "Delete"
        return self._budgets.recounted(looked.budgets) if deletes else looked.budgets

    def _before(self, job: PodMigrationJob) -> list[PodMigrationJob]:
        since = admitted_at(job)
        running = (one for one in self._candidates.running() if one.name != job.name)
        return [one for one in running if admitted_at(one) < since or is_disrupting(one)]

    # --- what caches cannot tell -------------------------------------------------------------------------------------------------

    async def _ask(self, workload: Workload) -> Scale | NoScale | Wait | Refused | None:
        """Of a controller of somebody else's, how many it wants; of one that seems to be gone, whether it is. None: caches know."""
        itself = Controller(workload.api_version, workload.kind, workload.name, workload.uid)
        if workload.group_kind in KNOWN:
            return await self._ask_for(workload) if workload.missing else None
        if workload.group_kind in WITHOUT_SCALE:
            return None
        answer = await self._workloads.scales.read(workload.namespace, itself)
        asked = foreign(msgspec.structs.replace(workload, replicas=None, missing=False, problem=""), answer, 0)
        return _no_replacement(asked.problem) if asked.missing else answer

    async def _ask_for(self, workload: Workload) -> Wait | Refused:
        told = f"{workload.kind} {workload.namespace}/{workload.name}"
        try:
            live = await self._client.find(CACHED[workload.group_kind], Key(workload.namespace, workload.name))
        except KubeError as error:
            return Wait(reasons.WAITING_FOR_WORKLOAD_LIMIT, f"whether {told} is there cannot be found out: {error}")
        if live is None or live.uid != workload.uid:
            return _no_replacement(workload.problem)
        return Wait(reasons.WAITING_FOR_WORKLOAD_LIMIT, f"{told} has not been seen yet")


def _no_replacement(problem: str) -> Refused:
    return Refused(reasons.NO_REPLACEMENT, f"nobody would make another pod in its place: {problem}")


def _asked(state: WorkloadState, answer: Scale | NoScale | None) -> WorkloadState:
    """With the number that was just read in place of one that is some seconds old."""
    if answer is None:
        return state
    replicas = state.replicas
    asked = foreign(msgspec.structs.replace(state.workload, replicas=None, missing=False, problem=""), answer, replicas.pods)
    there = len(replicas.available) + len(replicas.unready)
    wanted = asked.replicas if asked.replicas is not None else there
    return WorkloadState(asked, msgspec.structs.replace(replicas, missing=max(0, wanted - there)))

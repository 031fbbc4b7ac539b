"""Follows jobs until all are over: a row for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobPhase
from herder.cli.asking import Refusal
from herder.cli.following import PASSING, Away
from herder.cli.job.reading import read_jobs
from herder.cli.progress import Display, Row, State, display, reminding
from herder.cli.timeouts import within
from herder.kube.client import Client
from herder.rules.jobs.execution.status import is_over, phase_of, status_of
from herder.rules.jobs.shown import pod_text, waits_for

LOOK_EVERY = 1.0
MOST_NAMED = 5
STATES: dict[JobPhase, State] = {"Pending": "waits", "Running": "moves", "Succeed": "done", "Failed": "stays", "Aborted": "stays"}


async def follow(client: Client, jobs: Sequence[PodMigrationJob], timeout: float | None) -> None:
    """Raises what a person is to be told where one of them failed."""

    def not_yet() -> str:
        left = follower.left
        said = "; ".join(f"{job.name}: {waits_for(job)[0]}" for job in left[:MOST_NAMED])
        more = f"; and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        ways = "`herder job list` shows them, `herder job abort` ends one"
        return f"{_counted(len(left))} not over yet: {said}{more}. They go on: {ways}"

    with display() as shown:
        follower = JobsFollower(client, jobs, shown)
        async with within(timeout, not_yet):
            await follower.until_over()
    failed = [job for job in follower.jobs if phase_of(job) != "Succeed"]
    if failed:
        named = ", ".join(f"{job.name} ({_how(job)})" for job in failed[:MOST_NAMED])
        more = f" and {len(failed) - MOST_NAMED} more" if len(failed) > MOST_NAMED else ""
        raise Refusal(f"{len(failed)} of {len(follower.jobs)} jobs did not move their pods: {named}{more}")


class JobsFollower:
    def __init__(self, client: Client, jobs: Sequence[PodMigrationJob], shown: Display) -> None:
        self._client = client
        self._shown = shown
        self._away = Away()
        self._jobs = {job.uid: job for job in jobs}
        self._gone: dict[str, None] = {}

    @property
    def jobs(self) -> list[PodMigrationJob]:
        return list(self._jobs.values())

    @property
    def left(self) -> list[PodMigrationJob]:
        return [job for uid, job in self._jobs.items() if not is_over(job) and uid not in self._gone]

    async def until_over(self) -> None:
        async with reminding(self._shown, self._why):
            while True:
                try:
                    await self._look()
                    self._away.answered()
                except PASSING as error:
                    self._away.silent(error)
                if not self.left:
                    return
                await asyncio.sleep(LOOK_EVERY)

    async def _look(self) -> None:
        """At all jobs there are: one request, however many are followed."""
        found = {job.uid: job for job in await read_jobs(self._client) if job.uid in self._jobs}
        self._gone |= {job.uid: None for job in self.left if job.uid not in found}
        self._jobs |= found
        self._shown.show([self._row(job) for job in self.jobs])

    def _row(self, job: PodMigrationJob) -> Row:
        status = status_of(job)
        if job.uid in self._gone:
            return Row(pod_text(job), "stays", f"job {job.name} was deleted, which aborts it")
        if is_over(job):
            return Row(
                pod_text(job), STATES[phase_of(job)], f"{phase_of(job)}: {status.message or status.reason or ''}".rstrip(": ")
            )
        if status.phase is None:
            # Whether anybody looks at it is said once that takes long.
            return Row(pod_text(job), "waits", f"job {job.name} is filed")
        # A sentence that counts others may change all the time: what is news is its reason.
        step = f"{phase_of(job)} {status.reason or ''} {status.status or ''}"
        return Row(pod_text(job), STATES[phase_of(job)], f"{phase_of(job)}: {waits_for(job)[0]}", step=step)

    async def _why(self) -> str:
        if self._away.told:
            return self._away.told
        left = self.left
        named = "; ".join(f"{pod_text(job)}: {waits_for(job)[0]}" for job in left[:MOST_NAMED])
        more = f"; and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        return f"{_counted(len(left))} of {len(self._jobs)} not over: {named}{more}"


def _how(job: PodMigrationJob) -> str:
    return status_of(job).reason or (phase_of(job) if is_over(job) else "deleted")


def _counted(jobs: int) -> str:
    return "1 job is" if jobs == 1 else f"{jobs} jobs are"

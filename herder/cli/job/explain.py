"""`herder explain job`: asks for the cluster as it is, and shows what arbitration would decide of the job and why."""

from __future__ import annotations

from herder.cli.job.cluster import read_cluster
from herder.cli.job.reading import pod_named_by, read_job, read_jobs
from herder.cli.tables import Part, Table, age
from herder.kube.client import Client
from herder.rules.jobs.execution.status import phase_of
from herder.rules.jobs.explain import JobExplanation, explain_job
from herder.rules.jobs.gather import arbitration_snapshot

MOST_ROWS = 20


async def explain_job_now(client: Client, name: str) -> JobExplanation:
    job = await read_job(client, name)
    pod = await pod_named_by(client, job)
    if phase_of(job) != "Pending":
        return explain_job(job, pod, None)
    seen = await read_cluster(client, await read_jobs(client))
    snapshot = arbitration_snapshot(seen.cluster, seen.config) if seen.limits_known else None
    return explain_job(job, pod, snapshot, seen.unknown)


def explanation_text(found: JobExplanation) -> list[Part]:
    reason = f"{found.reason}: " if found.reason else ""
    return [
        f"job {found.name} of pod {found.namespace}/{found.pod}: {found.phase}{_since(found)}",
        f"{reason}{found.message}",
        *_place(found),
        *_ahead(found),
        *_holders(found),
        *(["", "What would change it:"] if found.changes else []),
        *(f"  {one}" for one in found.changes),
        *found.unknown,
    ]


def _since(found: JobExplanation) -> str:
    if not found.since:
        return ""
    return f", {age(found.since)} ago" if found.phase in ("Succeed", "Failed", "Aborted") else f", waits for {age(found.since)}"


def _place(found: JobExplanation) -> list[Part]:
    return [f"It is number {found.place} of {found.of} that wait for their turn."] if found.place else []


def _ahead(found: JobExplanation) -> list[Part]:
    rows = [(row.job, row.pod, row.why, row.waits or "begins now") for row in found.ahead[:MOST_ROWS]]
    others = found.others_ahead + len(found.ahead) - len(rows)
    more: list[Part] = [f"({others} more are ahead{', for something else' if rows else ''})"] if others else []
    return ["", "Ahead of it:", Table(("JOB", "POD", "BECAUSE", "IT"), rows), *more] if rows else more


def _holders(found: JobExplanation) -> list[Part]:
    rows = [(row.job, row.pod, row.node, "yes" if row.evicted else "no") for row in found.holders[:MOST_ROWS]]
    left = len(found.holders) - len(rows)
    more: list[Part] = [f"(and {left} more)"] if left else []
    return ["", "These run, and use it up:", Table(("JOB", "POD", "FROM", "EVICTED"), rows), *more] if rows else []

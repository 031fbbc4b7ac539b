"""`herder job status JOB`: how far it is, what it waits for and since when, and what one can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from herder.cli.asking import Where, asks_a_cluster, connected
from herder.cli.job.group import job, job_argument
from herder.cli.output import output_option, show

if TYPE_CHECKING:
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.rules.jobs.shown import JobReport, ReservationRow


@job.command()
@job_argument
@output_option
@asks_a_cluster
async def status(where: Where, name: str, output: Format | None) -> None:
    """Show how far JOB is: its phase and strategy, what it waits for and since when, each condition with its time, the room that
    is held, and the replacement. Below, what one can do."""
    from herder.api.world import RealWorld
    from herder.cli.job.reading import pod_named_by, read_job, reservation_used_by
    from herder.rules.jobs.shown import job_report

    async with connected(where) as (client, _):
        found = await read_job(client, name)
        reservation, why_none = await reservation_used_by(client, found)
        pod = await pod_named_by(client, found)
        show(job_report(found, pod, reservation, RealWorld().now(), why_none), report_text, output)


def report_text(report: JobReport) -> list[Part]:
    from herder.cli.tables import Table, age

    rows = [(one.type, one.status, one.reason, age(one.since), one.message) for one in report.conditions]
    return [
        f"job {report.name}: {_phase(report)}",
        _pod(report),
        *_waits(report),
        *([_reservation(report.reservation)] if report.reservation is not None else []),
        *([f"live migration: {report.migration}"] if report.migration else []),
        *([f"replacement: {report.replacement}{_on(report.target_node)}"] if report.replacement else []),
        *([Table(("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"), rows)] if rows else []),
        "You can:",
        *(f"  {one}" for one in report.can),
    ]


def _phase(report: JobReport) -> str:
    from herder.api.ages import human_duration
    from herder.cli.tables import age

    how = f" by {report.strategy}" if report.strategy else ""
    if report.completed:
        took = f" after {human_duration(report.running_seconds)}" if report.started else ""
        why = ": ".join(part for part in (report.reason, report.message) if part)
        return f"{report.phase}{how}{took}, {age(report.completed)} ago" + (f": {why}" if why else "")
    if report.phase == "Running":
        of = f" of {report.ttl}" if report.ttl and report.ttl not in ("0", "0s") else ""
        return f"Running{how} for {human_duration(report.running_seconds)}{of}"
    return f"{report.phase}{', paused' if report.paused else ''} for {age(report.created)}"


def _pod(report: JobReport) -> str:
    of = f", of {report.workload}" if report.workload else ""
    verb = "left" if report.phase == "Succeed" else "was to leave" if report.completed else "leaves"
    leaves = f" {verb} {report.source_node}" if report.source_node else ""
    return f"pod {report.namespace}/{report.pod}{leaves}{of}"


def _waits(report: JobReport) -> list[Part]:
    from herder.cli.tables import age

    if not report.waits_for:
        return []
    word = f"{report.reason}: " if report.reason and report.phase == "Pending" else ""
    since = f" (for {age(report.since)})" if report.since else ""
    return [f"waits: {word}{report.waits_for}{since}"]


def _reservation(found: ReservationRow) -> str:
    opened = (", open" if found.open else ", closed until the pod is evicted") if found.phase == "Available" else ""
    state = f"{found.phase}{_on(found.node)}{opened}" if found.phase else found.message
    said = f": {found.message}" if found.phase == "Pending" and found.message else ""
    return f"reservation {found.name}: {state}{said}"


def _on(node: str) -> str:
    return f" on {node}" if node else ""

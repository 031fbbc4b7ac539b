"""What people ask of a job, as the patch that says so. kubectl can patch the same. `pod` is the very pod that is moved, while it is
there: how far a job is follows from both."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.execution.status import is_over, phase_of
from herder.rules.jobs.shown import has_let_go, pod_text
from herder.rules.machines.wishes import Impossible
from herder.rules.plans import Document
from herder.rules.pools.wishes import NOTHING_TO_DO, Wish


def pause(job: PodMigrationJob, pod: Pod | None) -> Wish:
    """Raises `Impossible` where it would have no effect."""
    _refuse_what_is_over(job, "pause")
    if job.spec.paused:
        return NOTHING_TO_DO
    if has_let_go(job, pod):
        raise Impossible(
            f"pod {pod_text(job)} has left its node already: the job goes on until another has its place, and cannot be paused"
        )
    runs = phase_of(job) == "Running"
    what = "it goes back to Pending and gives up its room" if runs else "it waits, and uses up no limit"
    return Wish(_patch(job, spec={"paused": True}), f"is paused: {what}; `herder job resume {job.name}` lets it go on")


def resume(job: PodMigrationJob, pod: Pod | None) -> Wish:
    _refuse_what_is_over(job, "resume")
    if not job.spec.paused:
        return NOTHING_TO_DO
    return Wish(_patch(job, spec={"paused": False}), "goes on, as soon as no limit holds it")


def abort(job: PodMigrationJob, pod: Pod | None) -> Wish:
    _refuse_what_is_over(job, "abort")
    if job.annotations.get(labels.ABORT) == "true":
        return Wish(None, "unchanged: it is being aborted already")
    if has_let_go(job, pod):
        what = f"pod {pod_text(job)} has left its node already, so its replacement keeps its room; only the job ends"
    else:
        what = f"pod {pod_text(job)} stays where it is, and what was reserved for it is given back"
    return Wish(_patch(job, annotations={labels.ABORT: "true"}), f"is being aborted: {what}")


def _refuse_what_is_over(job: PodMigrationJob, verb: str) -> None:
    if is_over(job):
        kept = f"`herder job status {job.name}` says how it ended"
        raise Impossible(f"PodMigrationJob {job.name} is over ({phase_of(job)}): there is nothing to {verb}; {kept}")


def _patch(job: PodMigrationJob, *, spec: Document | None = None, annotations: Document | None = None) -> Document:
    """Of this very job, and not of another one of its name."""
    metadata = {"uid": job.uid, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, **({"spec": spec} if spec else {})}

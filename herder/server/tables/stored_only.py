"""The tables of workloads that are stored, and that nobody runs here: daemon sets, jobs and cron jobs."""

from __future__ import annotations

from typing import Any

from herder.api.ages import human_duration
from herder.server.tables.ages import age, seconds_of
from herder.server.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    Printer,
    boolean,
    created,
    integer,
    name_of,
    part,
    text,
)
from herder.server.tables.selectors import NONE, labels_text, selector_text
from herder.server.tables.workloads import containers_of

# In the order in which they decide what a job is said to be; one that is being deleted comes between them.
JOB_ENDS = ("Complete", "Failed")
JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
_COUNTS = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")


def print_daemon_set(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        *(status.get(name, 0) for name in _COUNTS),
        labels_text(part(spec, "template", "spec").get("nodeSelector")),
        age(created(obj), now),
        *containers_of(spec),
        selector_text(spec.get("selector")) or NONE,
    ]


def print_job(obj: dict[str, Any], now: float) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        _state(obj),
        _completions(spec, part(obj, "status").get("succeeded", 0)),
        _duration(part(obj, "status"), now),
        age(created(obj), now),
        *containers_of(spec),
        selector_text(spec.get("selector")) or NONE,
    ]


def print_cron_job(obj: dict[str, Any], now: float) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    job = part(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        str(spec.get("suspend", False)),
        len(status.get("active") or ()),
        age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE,
        age(created(obj), now),
        *containers_of(job),
        selector_text(job.get("selector")) or NONE,
    ]


def _state(obj: dict[str, Any]) -> str:
    holds = {one.get("type") for one in part(obj, "status").get("conditions") or () if one.get("status") == "True"}
    ended = next((name for name in JOB_ENDS if name in holds), "")
    going = "Terminating" if obj["metadata"].get("deletionTimestamp") else ""
    return ended or going or next((name for name in JOB_STATES if name in holds), "Running")


def _completions(spec: dict[str, Any], succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    several = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {several}" if several > 1 else f"{succeeded}/1"


def _duration(status: dict[str, Any], now: float) -> str:
    if not status.get("startTime"):
        return ""
    ended = seconds_of(status["completionTime"]) if status.get("completionTime") else now
    return human_duration(ended - seconds_of(status["startTime"]))


_TEMPLATE = (CONTAINERS, IMAGES, SELECTOR)
DAEMON_SETS = Printer(
    (
        NAME,
        integer("Desired", "Nodes that should run one."),
        integer("Current", "Nodes that run one, and should."),
        integer("Ready", "Nodes whose one is ready."),
        integer("Up-to-date", "Nodes that run the current template."),
        integer("Available", "Nodes whose one has been ready for long enough."),
        text("Node Selector", "Labels of the nodes that should run one."),
        AGE,
        *_TEMPLATE,
    ),
    print_daemon_set,
)
JOBS = Printer(
    (
        NAME,
        text("Status", "Where the job is in its life."),
        text("Completions", "Pods that have succeeded, of those wanted."),
        text("Duration", "How long it took, or takes already."),
        AGE,
        *_TEMPLATE,
    ),
    print_job,
)
CRON_JOBS = Printer(
    (
        NAME,
        text("Schedule", "When a job is started."),
        text("Timezone", "Whose clock that is."),
        boolean("Suspend", "Whether none is started for now."),
        integer("Active", "Jobs that run."),
        text("Last Schedule", "When a job was last started."),
        AGE,
        *_TEMPLATE,
    ),
    print_cron_job,
)

"""`herder explain job`: which limit holds it, who uses that up, who is ahead of it and why, and what would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.arbitration import Arbitration, ArbitrationSnapshot, Candidate, CandidatePod, Migrating, arbitrate
from herder.rules.jobs.arbitration.sorters import (
    SORTERS,
    Sorter,
    fewer_deschedulings,
    fewer_failures,
    fewer_migrating,
    higher_migration_priority,
    higher_priority,
    higher_qos,
    lower_eviction_cost,
    older,
    sort_key,
)
from herder.rules.jobs.execution.status import is_over, phase_of, status_of
from herder.rules.jobs.shown import has_let_go, meant_pod, waits_for
from herder.rules.plans import text_of

BEGINS: Final = "nothing holds it: it begins with the next look at all jobs that wait"
CONFIG: Final = "jobs.yaml of ConfigMap herder-config"
BY_NAME: Final = "its name comes first, and nothing else tells them apart"
# What one says of two jobs that a sorter tells apart: of the one that is ahead, and of the one that is asked about.
SAYS: Final[Mapping[Sorter, tuple[str, Callable[[Candidate, CandidatePod, int], object]]]] = {
    higher_qos: ("QoS class {} before {}", lambda job, pod, migrating: pod.qos),
    higher_priority: ("the pod's priority {} is above {}", lambda job, pod, migrating: pod.priority),
    lower_eviction_cost: ("eviction cost {} is below {}", lambda job, pod, migrating: pod.eviction_cost),
    higher_migration_priority: ("migration priority {} is above {}", lambda job, pod, migrating: job.migration_priority),
    fewer_failures: ("{} failed jobs of its pod before, against {}", lambda job, pod, migrating: job.failures),
    fewer_deschedulings: ("{} pods of its workload were moved before, against {}", lambda job, pod, migrating: job.deschedulings),
    fewer_migrating: ("{} pods of its workload migrate now, against {}", lambda job, pod, migrating: migrating),
    older: ("it was filed earlier", lambda job, pod, migrating: job.created),
}
# What would let a job go on, by the reason that holds it.
CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    reasons.WAITING_FOR_GLOBAL_LIMIT: ("one of the jobs that run ends", f"a higher maxMigratingGlobally in {CONFIG}"),
    reasons.WAITING_FOR_NODE_LIMIT: ("one of the jobs that leave the node ends", f"a higher maxMigratingPerNode in {CONFIG}"),
    reasons.WAITING_FOR_NAMESPACE_LIMIT: (
        "one of the jobs of the namespace ends",
        f"a higher maxMigratingPerNamespace in {CONFIG}",
    ),
    reasons.WAITING_FOR_WORKLOAD_LIMIT: (
        "one of the workload's jobs ends, or more of its pods become ready",
        f"a higher maxMigratingPerWorkload or maxUnavailablePerWorkload in {CONFIG}",
    ),
    reasons.WAITING_FOR_DISRUPTION_BUDGET: (
        "more of the workload's pods become ready",
        "a budget that allows more of them to go (`kubectl get pdb -n {namespace}`)",
        f'annotation {labels.SURGE}: "true" on the Deployment, if it is one: then the replacement comes before the pod goes',
    ),
    reasons.ROLLOUT_IN_PROGRESS: ("the end of the rollout",),
    reasons.WAITING_FOR_FLOW_CONTROL: (f"a moment; evictQPS and evictBurst in {CONFIG} say how many are evicted at a time",),
    reasons.WAITING_FOR_ADMISSION: ("a webhook that judges jobs when they are created (`herder controllers --webhook-listen`)",),
    reasons.PAUSED: ("`herder job resume {job}`",),
    reasons.DISABLED: (f"`enabled: true` in {CONFIG}",),
    reasons.WAITING_FOR_POD: ("the pod can be read again",),
    reasons.UNSCHEDULABLE: ("a node with room for the replacement (`herder explain placement {pod} -n {namespace}`)",),
    reasons.WAIT_FOR_REPLACEMENT: ("the replacement becomes ready; then the pod goes",),
    reasons.EVICTING: ("the pod ends, after its grace period at the latest",),
    reasons.WAIT_FOR_POD_BIND_RESERVATION: ("its workload makes a replacement, which takes the room",),
}


class AheadRow(msgspec.Struct, frozen=True):
    job: str
    # Namespace and name.
    pod: str
    # The first thing that puts it ahead.
    why: str
    # What becomes of it in the next pass: empty where it begins, else the reason why it waits too.
    waits: str


class HolderRow(msgspec.Struct, frozen=True):
    job: str
    pod: str
    node: str
    evicted: bool


class JobExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    name: str
    phase: str
    namespace: str
    pod: str
    # What holds it, what it waits for, or how it ended: one word and a sentence, as things are now.
    reason: str
    message: str
    since: str
    # Of jobs that wait: its place among those that could begin, and how many there are. 0 where it has none.
    place: int
    of: int
    # Those that are ahead and compete for the same; and how many others are ahead.
    ahead: tuple[AheadRow, ...]
    others_ahead: int
    # Jobs that run, and use up what holds it.
    holders: tuple[HolderRow, ...]
    # What would change it.
    changes: tuple[str, ...]
    # What the person may not read, and what is therefore not known.
    unknown: tuple[str, ...]


def explain_job(
    job: PodMigrationJob, pod: Pod | None, snapshot: ArbitrationSnapshot | None, unknown: Sequence[str] = ()
) -> JobExplanation:
    """`pod`: what has the pod's name now. `snapshot`: of all jobs; None where the person may not read what it takes."""
    if phase_of(job) == "Pending" and snapshot is not None and any(one.name == job.name for one in snapshot.pending):
        return _of_waiting(job, snapshot)
    return _as_it_says(job, pod, unknown)


def order_of(snapshot: ArbitrationSnapshot, arbitration: Arbitration) -> list[tuple[Candidate, CandidatePod]]:
    """Those that could begin, the first first."""
    left = {*arbitration.admitted, *(name for name, wait in arbitration.waiting.items() if wait.reason not in _NO_TURN)}
    candidates = [(one, one.pod) for one in snapshot.pending if one.pod is not None and one.name in left]
    return sorted(candidates, key=lambda one: sort_key(*one, _migrating(snapshot)[one[1].workload]))


_NO_TURN: Final = (reasons.PAUSED, reasons.DISABLED, reasons.WAITING_FOR_ADMISSION, reasons.WAITING_FOR_POD)


def why_ahead(
    first: tuple[Candidate, CandidatePod], second: tuple[Candidate, CandidatePod], migrating: Mapping[object, int]
) -> str:
    """The first sorter that tells them apart."""
    one, other = (*first, migrating[first[1].workload]), (*second, migrating[second[1].workload])
    for sorter in SORTERS:
        if sorter(*one) != sorter(*other):
            says, value = SAYS[sorter]
            return says.format(value(*one), value(*other))
    return BY_NAME


def _of_waiting(job: PodMigrationJob, snapshot: ArbitrationSnapshot) -> JobExplanation:
    arbitration = arbitrate(snapshot)
    order = order_of(snapshot, arbitration)
    wait, refused = arbitration.waiting.get(job.name), arbitration.refused.get(job.name)
    place = next((at for at, (one, _) in enumerate(order) if one.name == job.name), None)
    reason = wait.reason if wait is not None else refused.reason if refused is not None else ""
    ahead = order[:place] if place is not None else []
    competing = [one for one in ahead if place is not None and _competes(reason, one[1], order[place][1])]
    migrating = _migrating(snapshot)
    rows = [
        AheadRow(
            one.name,
            f"{pod.namespace}/{pod.name}",
            why_ahead((one, pod), order[place], migrating),
            arbitration.waiting[one.name].reason if one.name in arbitration.waiting else "",
        )
        for one, pod in competing
        if place is not None
    ]
    base = _as_it_says(job, None, ())
    status = status_of(job)
    same = status.reason == reason and status.waiting_since is not None
    return msgspec.structs.replace(
        base,
        reason=reason,
        message=wait.message if wait is not None else f"it is about to fail: {refused.message}" if refused is not None else BEGINS,
        since=base.since if same or status.phase is None else "",
        place=place + 1 if place is not None else 0,
        of=len(order),
        ahead=tuple(rows),
        others_ahead=len(ahead) - len(rows),
        holders=_holders(reason, order[place][1] if place is not None else None, snapshot.migrating),
        changes=_changes(job, reason),
    )


def _as_it_says(job: PodMigrationJob, pod: Pod | None, unknown: Sequence[str]) -> JobExplanation:
    status = status_of(job)
    text, since = waits_for(job)
    return JobExplanation(
        name=job.name,
        phase=phase_of(job),
        namespace=job.spec.pod_ref.namespace,
        pod=job.spec.pod_ref.name,
        reason=status.reason or "",
        message=_ended(job) if is_over(job) else text,
        since=text_of(status.completion_time) if status.completion_time is not None else since,
        place=0,
        of=0,
        ahead=(),
        others_ahead=0,
        holders=(),
        changes=() if is_over(job) else _of_running(job, meant_pod(job, pod)),
        unknown=tuple(unknown),
    )


def _ended(job: PodMigrationJob) -> str:
    status = status_of(job)
    told = status.message or "no reason was given"
    how_far = f"; it had come as far as {status.status}" if status.phase != "Succeed" and status.status else ""
    return told + how_far


def _of_running(job: PodMigrationJob, pod: Pod | None) -> tuple[str, ...]:
    changes = _changes(job, status_of(job).reason or "")
    if phase_of(job) != "Running":
        return changes
    abort = "ends the job; the replacement keeps its room" if has_let_go(job, pod) else "ends it, and the pod stays where it is"
    return (*changes, f"`herder job abort {job.name}` {abort}")


def _changes(job: PodMigrationJob, reason: str) -> tuple[str, ...]:
    namespace, pod = job.spec.pod_ref.namespace, job.spec.pod_ref.name
    said = tuple(one.format(job=job.name, namespace=namespace, pod=pod) for one in CHANGES.get(reason, ()))
    ttl = status_of(job).ttl
    return (*said, f"its time of {ttl} is up, and it fails") if said and phase_of(job) == "Running" and ttl else said


def _competes(reason: str, ahead: CandidatePod, own: CandidatePod) -> bool:
    """Whether one that is ahead may take what this one waits for."""
    match reason:
        case reasons.WAITING_FOR_NODE_LIMIT:
            return ahead.node == own.node
        case reasons.WAITING_FOR_NAMESPACE_LIMIT:
            return ahead.namespace == own.namespace
        case reasons.WAITING_FOR_WORKLOAD_LIMIT | reasons.WAITING_FOR_DISRUPTION_BUDGET | reasons.ROLLOUT_IN_PROGRESS:
            return ahead.workload == own.workload
        case _:
            return True


def _holders(reason: str, own: CandidatePod | None, migrating: Sequence[Migrating]) -> tuple[HolderRow, ...]:
    if own is None:
        return ()
    match reason:
        case reasons.WAITING_FOR_GLOBAL_LIMIT:
            found = list(migrating)
        case reasons.WAITING_FOR_NODE_LIMIT:
            found = [one for one in migrating if one.node == own.node]
        case reasons.WAITING_FOR_NAMESPACE_LIMIT:
            found = [one for one in migrating if one.namespace == own.namespace]
        case reasons.WAITING_FOR_WORKLOAD_LIMIT | reasons.WAITING_FOR_DISRUPTION_BUDGET:
            found = [one for one in migrating if own.workload is not None and one.workload == own.workload]
        case _:
            found = []
    return tuple(HolderRow(one.job, f"{one.namespace}/{one.pod}", one.node, one.evicted) for one in found)


def _migrating(snapshot: ArbitrationSnapshot) -> Counter[object]:
    return Counter[object](one.workload for one in snapshot.migrating if one.workload is not None)

"""`herder evacuate`: which jobs it files, in which order, and what would become of each as things are now.

The order is that of arbitration, and jobs are filed in it: of those that nothing else tells apart the one that was filed first is
the first, and of one second the one whose name comes first, by which they are planned too. So the deed is what was planned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from herder.api import registry
from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.api.kinds.pod_migration_job import JobMode
from herder.api.world import SUFFIX_ALPHABET, SUFFIX_LENGTH
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.admission import POD_ENDED
from herder.rules.jobs.arbitration import Arbitration, ArbitrationSnapshot, arbitrate
from herder.rules.jobs.gather import Cluster, arbitration_snapshot, why_no_job
from herder.rules.plans import Document, moment, text_of

PREFIX = "evacuate-"
LONGEST_NAME = 63
# Each is a pass over all that are left. Who comes later is planned as if nobody had left.
MOST_WAVES = 50


class Wanted(msgspec.Struct, frozen=True):
    """What all jobs of one command have in common; None: as it is configured."""

    mode: JobMode | None = None
    ttl: str | None = None


class Place(msgspec.Struct, frozen=True):
    """Where room would be found for a pod's replacement; empty where there is none now, and then why."""

    node: str
    why: str = ""


UNKNOWN = Place("")


class FindsPlaces(Protocol):
    def find(self, job: PodMigrationJob, pod: Pod) -> Place:
        """Asked in the order in which they would begin: each takes room from those that come after it."""
        ...

    def leave(self, pod: Pod) -> None:
        """It is gone by the time of those that are asked about from now on."""
        ...


class EvacuationRow(msgspec.Struct, frozen=True, rename="camel"):
    # From 1.
    order: int
    job: str
    namespace: str
    pod: str
    source_node: str
    # Empty where no node has room now; then `no_room` says why.
    target_node: str
    no_room: str
    # The limit that binds: its reason, and a sentence. Empty where the job would begin at once.
    waits: str
    why: str


class StaysRow(msgspec.Struct, frozen=True):
    namespace: str
    pod: str
    node: str
    why: str
    # Nobody expects it to leave: its node runs it, or it has ended.
    expected: bool = False


class EvacuationPlan(msgspec.Struct, frozen=True, rename="camel"):
    """Its fields are what `-o json` shows: documented in docs/commands.md."""

    jobs: tuple[EvacuationRow, ...]
    stay: tuple[StaysRow, ...]
    # Whether it is known what would hold whom: else nothing is said to wait, and the order is by name.
    limits_known: bool = True
    # What the person may not read, and what is therefore not known.
    unknown: tuple[str, ...] = ()


class Filing(msgspec.Struct, frozen=True):
    """A job that is about to be filed."""

    document: Document
    job: PodMigrationJob
    pod: Pod


def file_jobs(pods: Sequence[Pod], taken: Collection[str], wanted: Wanted, now: float) -> list[Filing]:
    """One for each pod, by namespace and name. `taken`: names of jobs that there are."""
    ordered = sorted(pods, key=lambda pod: (pod.namespace, pod.name))
    return [_filing(pod, job_name(pod, taken), wanted, now) for pod in ordered]


def job_name(pod: Pod, taken: Collection[str]) -> str:
    """It follows from the pod: whoever asks twice gets the same one. Another one where one of that name is there, and over."""
    attempt = 1
    while (name := _named(pod, attempt)) in taken:
        attempt += 1
    return name


def plan_evacuation(
    filings: Sequence[Filing],
    cluster: Cluster,
    config: JobsConfig,
    places: FindsPlaces | None,
    *,
    limits_known: bool = True,
    unknown: Sequence[str] = (),
) -> tuple[EvacuationPlan, list[Filing]]:
    """And those that are to be filed, in order. Who may not read what it takes knows neither limits nor, without `places`, nodes:
    then the order is by name."""
    told = [(one, why_no_job(one.pod, cluster, config)) for one in filings]
    stay = [_stays(one.pod, why) for one, why in told if why]
    left = [one for one, why in told if not why]
    snapshot = arbitration_snapshot(cluster, config, [(one.job, one.pod) for one in left]) if limits_known else None
    arbitration = arbitrate(snapshot) if snapshot is not None else Arbitration(tuple(one.job.name for one in left))
    stay += [_stays(one.pod, arbitration.refused[one.job.name].message) for one in left if one.job.name in arbitration.refused]
    by_name = {one.job.name: one for one in left}
    ordered = [by_name[name] for name in (*arbitration.admitted, *arbitration.waiting) if name in by_name]
    found = _placed(_waves(ordered, arbitration, snapshot), places) if places is not None else {}
    rows = [_row(number, one, arbitration, found.get(one.job.name, UNKNOWN)) for number, one in enumerate(ordered, 1)]
    return EvacuationPlan(tuple(rows), tuple(stay), limits_known, tuple(unknown)), ordered


def _waves(filings: Sequence[Filing], first: Arbitration, snapshot: ArbitrationSnapshot | None) -> list[list[Filing]]:
    """Who would begin together: those of each pass, were those before it done. In the last, who waits for something else."""
    waves = [[one for one in filings if one.job.name in set(first.admitted)]]
    left, begun = [one for one in filings if one not in waves[0]], {*first.admitted, *first.refused}
    while left and snapshot is not None and len(waves) < MOST_WAVES:
        pending = tuple(one for one in snapshot.pending if one.name not in begun)
        admitted = set(arbitrate(msgspec.structs.replace(snapshot, pending=pending)).admitted)
        if not admitted:
            break
        begun |= admitted
        waves.append([one for one in left if one.job.name in admitted])
        left = [one for one in left if one.job.name not in admitted]
    return [*waves, left]


def _placed(waves: Sequence[Sequence[Filing]], places: FindsPlaces) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for wave in waves:
        found |= {one.job.name: places.find(one.job, one.pod) for one in wave}
        for one in wave:
            if found[one.job.name].node:
                places.leave(one.pod)
    return found


def _row(number: int, filing: Filing, arbitration: Arbitration, place: Place) -> EvacuationRow:
    wait = arbitration.waiting.get(filing.job.name)
    return EvacuationRow(
        order=number,
        job=filing.job.name,
        namespace=filing.pod.namespace,
        pod=filing.pod.name,
        source_node=filing.pod.spec.node_name,
        target_node=place.node,
        no_room=place.why,
        waits=wait.reason if wait is not None else "",
        why=wait.message if wait is not None else "",
    )


def _stays(pod: Pod, why: str) -> StaysRow:
    """As `kubectl drain` has it: what belongs to its node, and what has ended, does not keep a node from being empty."""
    owner = pod.controller
    of_its_node = owner is not None and owner.kind in ("DaemonSet", "Node")
    expected = of_its_node or pod.being_deleted or pod.status.phase in POD_ENDED
    return StaysRow(pod.namespace, pod.name, pod.spec.node_name, why, expected)


def _filing(pod: Pod, name: str, wanted: Wanted, now: float) -> Filing:
    reference = {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    asked = {"mode": wanted.mode, "ttl": wanted.ttl}
    spec = {"podRef": reference, **{field: value for field, value in asked.items() if value is not None}}
    document = {"metadata": {"name": name}, "spec": spec}
    kind = {"apiVersion": f"{registry.JOB.group}/{registry.JOB.version}", "kind": registry.JOB.kind}
    made = {"name": name, "creationTimestamp": text_of(moment(now))}
    return Filing(document, msgspec.convert({**kind, **document, "metadata": made}, PodMigrationJob), pod)


def _named(pod: Pod, attempt: int) -> str:
    digest = hashlib.sha256(f"{pod.uid}/{attempt}".encode()).digest()
    suffix = "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest[:SUFFIX_LENGTH])
    stem = f"{PREFIX}{pod.name}"[: LONGEST_NAME - SUFFIX_LENGTH - 1].rstrip("-.")
    return f"{stem}-{suffix}"

"""What must never happen to the pods of jobs, looked at with every change of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from herder.server.store import Change
from tests.simulation.simulation import Simulation

Json = dict[str, Any]
OVER = ("Succeed", "Failed", "Aborted")


class Allowed(msgspec.Struct, frozen=True):
    """What no moment may go beyond; None: no such limit."""

    globally: int | None = None
    per_node: int | None = None
    per_workload: int | None = None
    # Of the pods of each workload, as its budget says; and how many pods it should have.
    unavailable: int | None = None
    replicas: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])


class Ledger:
    def __init__(self, simulation: Simulation, allowed: Allowed) -> None:
        self._simulation = simulation
        self._allowed = allowed
        self._pods: dict[str, Json] = {}
        self._jobs: dict[str, Json] = {}
        # By uid of a pod: the job that it was evicted for.
        self.evicted: dict[str, str] = {}
        self.wrong: list[str] = []
        simulation.server.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        table = change.table.partition(".")[0]
        if table not in ("pods", "podmigrationjobs"):
            return
        stored: dict[str, Json] = self._pods if table == "pods" else self._jobs
        after: Json = msgspec.json.decode(change.record.raw)
        key = f"{after['metadata'].get('namespace', '')}/{after['metadata']['name']}"
        before = stored.get(key)
        if change.kind == "DELETED":
            stored.pop(key, None)
        else:
            stored[key] = after
        if table == "podmigrationjobs":
            self._count_running()
        elif before is not None and not _goes(before) and (change.kind == "DELETED" or _goes(after)):
            self._goes(before)

    def _count_running(self) -> None:
        running = [job for job in self._jobs.values() if job.get("status", {}).get("phase") == "Running"]
        self._at_most("globally", self._allowed.globally, len(running))
        for field, limit in (("sourceNode", self._allowed.per_node), ("workloadRef", self._allowed.per_workload)):
            places = [str(job["status"].get(field)) for job in running]
            for place in dict.fromkeys(places):
                self._at_most(f"{field} {place}", limit, places.count(place))

    def _at_most(self, what: str, limit: int | None, count: int) -> None:
        if limit is not None and count > limit:
            self._say(f"{count} jobs run at once, {what}, where {limit} may")

    def _goes(self, pod: Json) -> None:
        """A pod that ran was told to end."""
        uid, app = pod["metadata"]["uid"], pod["metadata"].get("labels", {}).get("app")
        jobs = [name for name, job in self._jobs.items() if job.get("status", {}).get("podUID") == uid]
        if not jobs:
            self._say(f"{pod['metadata']['name']} goes, and no job is about it")
            return
        self.evicted[uid] = jobs[0]
        others = [one for one in self._pods.values() if one["metadata"].get("labels", {}).get("app") == app]
        left = [one for one in others if one["metadata"]["uid"] != uid and _is_ready(one) and not _goes(one)]
        limit, wanted = self._allowed.unavailable, self._allowed.replicas.get(app, 0)
        if limit is not None and _is_ready(pod) and wanted - len(left) > limit:
            self._say(f"{pod['metadata']['name']} goes, and of {wanted} only {len(left)} are ready, where {limit} may be missing")

    def _say(self, what: str) -> None:
        self.wrong.append(f"at {self._simulation.loop.time():.3f} s: {what}")
        self._simulation.trace.add("ledger", what)


def left_over(left: dict[str, bytes], *, over: bool = True) -> list[str]:
    """What jobs that are over have left behind, and jobs that are not over."""
    objects = {name: msgspec.json.decode(raw) for name, raw in left.items()}
    found: list[str] = []
    for name, job in objects.items():
        if not name.startswith("podmigrationjobs."):
            continue
        phase = job.get("status", {}).get("phase")
        if over and phase not in OVER:
            found.append(f"{name} is still {job.get('status')}")
        if phase in OVER and job["metadata"].get("finalizers"):
            found.append(f"{name} is over, and has {job['metadata']['finalizers']}: {job['status']}")
    for name, room in objects.items():
        if name.startswith("reservations.") and room.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            found.append(f"{name} is left: {room.get('status')}, {room['metadata'].get('ownerReferences')}")
    return found


def _goes(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

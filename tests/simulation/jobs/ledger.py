"""What must never happen to the pods of jobs, looked at with every change of an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from herder.kube.transport import Call, Reply
from herder.server.store import Change
from tests.simulation.cluster import CONTROLLERS
from tests.simulation.simulation import Simulation
from tests.simulation.wire import Sent

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
    # Pods that no job is about go, too: people roll out and scale.
    others_go: bool = False


class Ledger:
    def __init__(self, simulation: Simulation, allowed: Allowed) -> None:
        self._simulation = simulation
        self._allowed = allowed
        self._pods: dict[str, Json] = {}
        self._jobs: dict[str, Json] = {}
        # By uid of a pod: the job that it was evicted for.
        self.evicted: dict[str, str] = {}
        # By uid of a pod and life of the server: how often somebody told it to end and knows that this was done. Who has no answer
        # has to ask again; so has who lost the server before it saw the pod go.
        self.told: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []
        simulation.server.listeners.append(self._changed)
        simulation.wire(CONTROLLERS).heard.append(self._heard)

    def _heard(self, sent: Sent, reply: Reply) -> None:
        uid = ended_by(sent.call)
        if uid and reply.status < 300 and self._jobs_about(uid):
            key = uid, self._simulation.api.lives
            self.told[key] += 1
            if self.told[key] > 1:
                self._say(f"the pod of {self._jobs_about(uid)} was told to end {self.told[key]} times")

    def _jobs_about(self, uid: str) -> list[str]:
        return [name for name, job in self._jobs.items() if job.get("status", {}).get("podUID") == uid]

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
            self._one_pod_each(key, before or {}, after)
        elif before is not None and not _goes(before) and (change.kind == "DELETED" or _goes(after)):
            self._goes(before)

    def _count_running(self) -> None:
        running = [job for job in self._jobs.values() if job.get("status", {}).get("phase") == "Running"]
        self._at_most("globally", self._allowed.globally, len(running))
        for field, limit in (("sourceNode", self._allowed.per_node), ("workloadRef", self._allowed.per_workload)):
            places = [str(job["status"].get(field)) for job in running]
            for place in dict.fromkeys(places):
                self._at_most(f"{field} {place}", limit, places.count(place))

    def _one_pod_each(self, name: str, before: Json, after: Json) -> None:
        same = before.get("metadata", {}).get("uid") == after["metadata"]["uid"]
        uids = [one.get("status", {}).get("podUID") for one in (before, after)]
        if same and uids[0] is not None and uids[0] != uids[1]:
            self._say(f"{name} was about {uids[0]}, and is about {uids[1]}")

    def _at_most(self, what: str, limit: int | None, count: int) -> None:
        if limit is not None and count > limit:
            self._say(f"{count} jobs run at once, {what}, where {limit} may")

    def _goes(self, pod: Json) -> None:
        """A pod that ran was told to end."""
        uid, app = pod["metadata"]["uid"], pod["metadata"].get("labels", {}).get("app")
        others = [one for one in self._pods.values() if one["metadata"].get("labels", {}).get("app") == app]
        stay = [one for one in others if one["metadata"]["uid"] != uid and not _goes(one)]
        limit, wanted = self._allowed.unavailable, self._allowed.replicas.get(app, 0)
        jobs = self._jobs_about(uid)
        if jobs:
            self.evicted[uid] = jobs[0]
        elif not self._allowed.others_go and len(stay) < wanted:
            self._say(f"{pod['metadata']['name']} goes, and no job is about it")
        left = [one for one in stay if _is_ready(one)]
        if limit is not None and _is_ready(pod) and wanted - len(left) > limit:
            self._say(f"{pod['metadata']['name']} goes, and of {wanted} only {len(left)} are ready, where {limit} may be missing")

    def _say(self, what: str) -> None:
        self.wrong.append(f"at {self._simulation.loop.time():.3f} s: {what}")
        self._simulation.trace.add("ledger", what)


def ended_by(call: Call) -> str:
    """The uid of the pod that an eviction or a deletion is about; nothing of one that is only tried, or of any other call."""
    evicts = call.method == "POST" and call.path.endswith("/eviction")
    if not evicts and not (call.method == "DELETE" and "/pods/" in call.path):
        return ""
    body: Json = msgspec.json.decode(call.body or b"{}")
    options: Json = body.get("deleteOptions") or {} if evicts else body
    return "" if options.get("dryRun") else (options.get("preconditions") or {}).get("uid", "")


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

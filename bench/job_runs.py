"""Jobs from their creation to their end, beside plain evictions of the same pods on the same engine, taking turns.

A plain eviction asks for nothing but the end of a pod. A job is let in among others, reserves, evicts, and sees the replacement
on the room that was held for it: what that costs in time and in writes is what somebody pays who wants to be sure.
"""

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.load import Call, Client, connect, each
from bench.machines import settled_writes, writes
from bench.objects import NAMESPACE, PODS, namespace
from bench.pools import until
from bench.program import Up, herder_up
from bench.report import LESS, Report, Row
from bench.sides import Options, Side, temporary
from herder.api.defaults import SCHEDULER_NAME
from herder.api.labels import VM_HOST_TAINT
from tests.engines.herd import run_herd
from tests.engines.install import install_on
from tests.engines.kubernetes import run_kubernetes

NAME = "job-runs"
NODES = 40
REPLICAS = 10
MOST_WRITES = 15.0
JOBS = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
CONFIG_MAPS = "/api/v1/namespaces/herder-system/configmaps"
# Nothing but the work itself is to hold them.
UNLIMITED = """
evictQPS: "10000"
evictBurst: 10000
maxMigratingPerNode: 100000
maxMigratingPerWorkload: 100%
maxUnavailablePerWorkload: 100%
maxConcurrentReconciles: 16
"""
HELD = "maxMigratingGlobally: 0\n"
Json = dict[str, Any]


def run(options: Options) -> Report:
    count = options.pick(1000, 100)
    with temporary(options) as folder, herder_up(folder / "up", NODES) as up:
        rows = asyncio.run(_measure(up, count, options))
    with temporary(options) as folder:
        rows.append(asyncio.run(_on_kubernetes(folder, options.pick(200, 40))))
    notes = ["on the right: the same pods evicted by 64 writers by hand", f"{count // REPLICAS} Deployments of {REPLICAS} pods"]
    return Report(NAME, f"{count:,} pods moved by jobs on {NODES} simulated nodes", rows, notes, ("jobs", "plain evictions"))


async def _on_kubernetes(folder: Path, count: int) -> Row:
    """On a real cluster: pods of ours that jobs move, beside pods of kube-scheduler's that are evicted, taking turns."""
    with run_kubernetes(folder) as engine:
        install_on(engine)
        with run_herd(engine, folder, nodes=8):
            async with connect(Side("kubernetes", engine, frozenset())) as client:
                return await _beside_kube_scheduler(client, count)


async def _beside_kube_scheduler(client: Client, count: int) -> Row:
    await client.send(Call("POST", "/api/v1/namespaces", namespace()))
    await _settings(client, UNLIMITED)
    sides = {"jobs": SCHEDULER_NAME, "plain": "default-scheduler"}
    for side, scheduler in sides.items():
        names = [f"{side}-{number}" for number in range(count // REPLICAS)]
        await each(lambda name, scheduler=scheduler: client.send(Call("POST", DEPLOYMENTS, _deployment(name, scheduler))), names)
    await _all_ready(client, 2 * count)
    # Jobs that were created right after the webhook was registered are not trusted.
    await asyncio.sleep(6)
    gaps: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(2):
        for side in ("plain", "jobs") if number else ("jobs", "plain"):
            pods = [pod for pod in await _pods(client) if pod["metadata"]["name"].startswith(f"{side}-")]
            gaps[side].append(await _empty(client, side, pods, number))
            await _all_ready(client, 2 * count)
    ours, theirs = (statistics.mean(gaps[side]) for side in ("jobs", "plain"))
    what = f"on Kubernetes, {count} pods beside kube-scheduler: median from the end of a pod to its replacement bound"
    return Row(what, "ms", ours, theirs, LESS, "no slower", ours <= theirs)


async def _empty(client: Client, side: str, pods: list[Json], number: int) -> float:
    """The median time in which a place is empty, in milliseconds."""
    names = [pod["metadata"]["name"] for pod in pods]
    gaps = await _watched(client, pods)
    if side == "jobs":
        await each(lambda name: client.send(Call("POST", JOBS, _job(name, number))), names)
    else:
        await each(lambda name: client.send(Call("POST", f"{PODS}/{name}/eviction", _eviction(name))), names)
    return await gaps


async def _measure(up: Up, count: int, options: Options) -> list[Row]:
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await _settings(client, UNLIMITED)
        names = [f"web-{number}" for number in range(count // REPLICAS)]
        await each(lambda name: client.send(Call("POST", DEPLOYMENTS, _deployment(name))), names)
        await _all_ready(client, count)
        await settled_writes(client)
        found: dict[str, list[tuple[float, float, float]]] = {"jobs": [], "plain": []}
        for number in range(options.pick(2, 1)):
            for side in ("plain", "jobs") if number % 2 else ("jobs", "plain"):
                found[side].append(await _round(client, side, count, number))
        waiting = await _waiting(client, count, options)
    return [*_rows(found), waiting]


def _rows(found: dict[str, list[tuple[float, float, float]]]) -> list[Row]:
    jobs, plain = (tuple(statistics.mean(column) for column in zip(*found[side], strict=True)) for side in ("jobs", "plain"))
    more = jobs[1] - plain[1]
    return [
        Row("from the first write to the last replacement Ready, and the last job Succeed", "s", jobs[0], plain[0], LESS),
        Row("writes for each pod, all counted", "", jobs[1], plain[1], LESS),
        Row("writes of ours for each job", "", more, None, LESS, f"≤ {MOST_WRITES:g}", more <= MOST_WRITES),
        Row(
            "median from the end of a pod to its replacement bound", "ms", jobs[2], plain[2], LESS, "no slower", jobs[2] <= plain[2]
        ),
    ]


async def _round(client: Client, side: str, count: int, number: int) -> tuple[float, float, float]:
    """Seconds, writes for each pod, and the median time in which a place is empty, in milliseconds."""
    found = await _pods(client)
    pods = [pod["metadata"]["name"] for pod in found]
    assert len(pods) == count
    before, gaps = await writes(client), await _watched(client, found)
    began = time.perf_counter()
    if side == "jobs":
        over = asyncio.create_task(_all_over(client, count))
        await each(lambda name: client.send(Call("POST", JOBS, _job(name, number))), pods)
        await over
    else:
        await each(lambda name: client.send(Call("POST", f"{PODS}/{name}/eviction", _eviction(name))), pods)
    empty = await gaps
    await _all_ready(client, count)
    took = time.perf_counter() - began
    written = await settled_writes(client) - before
    if side == "jobs":
        await client.send(Call("DELETE", JOBS))
        await settled_writes(client)
    return took, written / count, empty


async def _watched(client: Client, pods: list[Json]) -> asyncio.Task[float]:
    """Once it is known from which version on to watch: who is gone before that would never be seen to go."""
    listed = msgspec.json.decode(await client.send(Call("GET", PODS)))
    known = {pod["metadata"]["uid"] for pod in listed["items"]}
    gaps = _Gaps({pod["metadata"]["uid"] for pod in pods}, known)
    return asyncio.create_task(gaps.watched(client, listed["metadata"]["resourceVersion"]))


class _Gaps:
    """Of each ReplicaSet the n-th end of a pod and the n-th new pod with a node belong together: they are alike."""

    def __init__(self, old: set[str], known: set[str]) -> None:
        self._going = old
        # Also who was about to end when it began, from the turn before: nobody's replacement.
        self._known = known
        self._ends: dict[str, list[float]] = {}
        self._bound: dict[str, list[float]] = {}

    async def watched(self, client: Client, version: str) -> float:
        while not self._complete():
            answer = await client.stream(f"{PODS}?watch=1&resourceVersion={version}")
            async for line in answer.content:
                event: Json = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch of pods broke: {event['object']}")
                version = event["object"]["metadata"]["resourceVersion"]
                if self._see(event, time.perf_counter()) and self._complete():
                    break
            answer.close()
        return (
            statistics.median(after - before for owner, ends in self._ends.items() for before, after in self._pairs(owner, ends))
            * 1000
        )

    def _see(self, event: Json, now: float) -> bool:
        """Whether it was the end of one, or a place for one."""
        metadata, uid = event["object"]["metadata"], event["object"]["metadata"]["uid"]
        owner = next((one["uid"] for one in metadata.get("ownerReferences", ())), "")
        if uid in self._going and "deletionTimestamp" in metadata:
            self._going.discard(uid)
            self._ends.setdefault(owner, []).append(now)
            return True
        if uid not in self._known and event["type"] != "DELETED" and event["object"]["spec"].get("nodeName"):
            self._known.add(uid)
            self._bound.setdefault(owner, []).append(now)
            return True
        return False

    def _complete(self) -> bool:
        return not self._going and all(len(self._bound.get(owner, ())) >= len(ends) for owner, ends in self._ends.items())

    def _pairs(self, owner: str, ends: list[float]) -> list[tuple[float, float]]:
        """A ReplicaSet may make one too many for a moment: then the last one replaces nobody."""
        return list(zip(ends, self._bound[owner], strict=False))


async def _waiting(client: Client, count: int, options: Options) -> Row:
    """Jobs that are all held, for the same reason all the time."""
    await _settings(client, UNLIMITED + HELD)
    pods = [pod["metadata"]["name"] for pod in await _pods(client)]
    await each(lambda name: client.send(Call("POST", JOBS, _job(name, 99))), pods)
    await settled_writes(client)
    before, seconds = await writes(client), options.pick(60, 10)
    await asyncio.sleep(seconds)
    written = await writes(client) - before
    return Row(f"{count:,} jobs that wait: writes in {seconds} s", "", written, None, LESS, "0", written == 0)


# --- objects and waiting ----------------------------------------------------------------------------------------------------------


async def _settings(client: Client, text: str) -> None:
    place = msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "herder-system"}})
    applied = "application/apply-patch+yaml"
    await client.send(Call("PATCH", "/api/v1/namespaces/herder-system?fieldManager=bench", place, applied))
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "herder-config"}, "data": {"jobs.yaml": text}}
    path = f"{CONFIG_MAPS}/herder-config?fieldManager=bench&force=true"
    await client.send(Call("PATCH", path, msgspec.json.encode(document), applied))
    await asyncio.sleep(1)


async def _pods(client: Client) -> list[Json]:
    """Those that stay."""
    found = msgspec.json.decode(await client.send(Call("GET", PODS)))["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


async def _all_ready(client: Client, count: int) -> None:
    async def all_ready() -> bool:
        return sum(_is_ready(pod) for pod in await _pods(client)) >= count

    await until(all_ready)


async def _all_over(client: Client, count: int) -> None:
    over: set[str] = set()
    answer = await client.stream(f"{JOBS}?watch=1")
    async for line in answer.content:
        job: Json = msgspec.json.decode(line)["object"]
        status = job.get("status", {})
        if status.get("phase") in ("Failed", "Aborted"):
            raise RuntimeError(f"{job['metadata']['name']}: {status}")
        if status.get("phase") == "Succeed":
            over.add(job["metadata"]["name"])
        if len(over) >= count:
            break
    answer.close()


def _is_ready(pod: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", ()))


def _deployment(name: str, scheduler: str = SCHEDULER_NAME) -> bytes:
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    tolerations = [{"key": VM_HOST_TAINT, "operator": "Exists"}]
    pod = {"terminationGracePeriodSeconds": 1, "schedulerName": scheduler, "tolerations": tolerations, "containers": [container]}
    spec = {
        "replicas": REPLICAS,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return msgspec.json.encode({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def _job(pod: str, number: int) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "PodMigrationJob",
            "metadata": {"name": f"{pod}-{number}"},
            "spec": {"podRef": {"namespace": NAMESPACE, "name": pod}, "ttl": "0s"},
        }
    )


def _eviction(name: str) -> bytes:
    return msgspec.json.encode({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}})

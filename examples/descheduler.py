"""An example descheduler: evens out how much of each node is asked for, by having pods moved through `herder.client`.

    python examples/descheduler.py --threshold 20            # percent of a node between the fullest and the emptiest
    python examples/descheduler.py --threshold 20 --once     # one look, and do not wait for what comes of it

It looks at requests, finds the node with the highest share, and files jobs for its cheapest pods until the others would have caught
up. It decides nothing else: whether and when a pod is moved, where to, and within which budgets the cluster decides. Its account
needs the role pod-migrator, and to read nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable

from herder.api.core import Node, Pod
from herder.api.quantity import parse_quantity
from herder.client import ApiStatusError, Herder, Job, KubeError, connect
from herder.kube.resources import NODES, PODS

RESOURCES = ("cpu", "memory")
COST = "scheduling.koordinator.sh/eviction-cost"
NOT_MOVED = ("DaemonSet", "Job", "Node")
REST = 30.0
Amounts = dict[str, int]


def requested(pod: Pod) -> Amounts:
    asked = [container.resources.requests for container in pod.spec.containers or ()]
    return {name: sum(parse_quantity(one[name]).nanos for one in asked if name in one) for name in RESOURCES}


def room_of(node: Node) -> Amounts:
    return {name: parse_quantity(node.status.allocatable.get(name, 0)).nanos for name in RESOURCES}


class Load:
    """Of each node that takes pods, percent of what it has that is asked for: of the resource of which that is the most."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        self._room = {node.name: room_of(node) for node in nodes if not node.spec.unschedulable}
        self._asked = {name: dict.fromkeys(RESOURCES, 0) for name in self._room}
        for pod in pods:
            if pod.spec.node_name in self._asked and pod.status.phase not in ("Succeeded", "Failed"):
                self._add(pod.spec.node_name, requested(pod), 1)

    def ranked(self) -> list[str]:
        """The emptiest first."""
        return sorted(self._room, key=lambda name: (self.percent(name), name))

    def percent(self, node: str) -> float:
        asked, room = self._asked[node], self._room[node]
        return max(100 * asked[name] / room[name] if room[name] else 100.0 for name in RESOURCES)

    def move(self, pod: Pod, source: str, target: str) -> None:
        self._add(source, requested(pod), -1)
        self._add(target, requested(pod), 1)

    def _add(self, node: str, amounts: Amounts, sign: int) -> None:
        for name in RESOURCES:
            self._asked[node][name] += sign * amounts[name]


def is_movable(pod: Pod) -> bool:
    """Beyond this, the cluster refuses what it does not move, and says why."""
    return (
        pod.controller is not None
        and pod.controller.kind not in NOT_MOVED
        and not pod.being_deleted
        and pod.status.phase == "Running"
    )


def cost(pod: Pod) -> tuple[int, int, str]:
    said = pod.annotations.get(COST, "0")
    return int(said) if said.lstrip("-").isdigit() else 0, pod.spec.priority or 0, pod.name


def choose(nodes: list[Node], pods: list[Pod], moving: set[tuple[str, str]], threshold: float) -> list[Pod]:
    """The cheapest pods of the fullest node, until it would be no more than the threshold above the emptiest, were they there."""
    load = Load(nodes, pods)
    if len(load.ranked()) < 2:
        return []
    fullest, chosen = load.ranked()[-1], list[Pod]()
    for pod in sorted((one for one in pods if one.spec.node_name == fullest and is_movable(one)), key=cost):
        emptiest = load.ranked()[0]
        if load.percent(fullest) - load.percent(emptiest) <= threshold:
            break
        load.move(pod, fullest, emptiest)
        # One that is on its way already counts, and needs no second job.
        if (pod.namespace, pod.name) not in moving:
            chosen.append(pod)
    return chosen


async def balance(herder: Herder, threshold: float) -> list[Job]:
    """One look; the jobs that it filed."""
    nodes, pods = (await herder.kube.list(NODES)).items, (await herder.kube.list(PODS)).items
    moving = {(job.namespace, job.pod) for job in await herder.jobs() if not job.finished}
    filed: list[Job] = []
    for pod in choose(nodes, pods, moving, threshold):
        try:
            filed.append(await herder.file_job(pod.namespace, pod.name, uid=pod.uid))
        except ApiStatusError as error:
            print(f"{pod.namespace}/{pod.name} stays: {error}")
    return filed


async def main(threshold: float, once: bool, kubeconfig: str | None) -> None:
    async with connect(kubeconfig, agent="example-descheduler") as herder:
        while True:
            filed = await balance(herder, threshold)
            for job in filed:
                print(f"{job.namespace}/{job.pod}: {job.name}")
            if once:
                return
            for job in await asyncio.gather(*(herder.wait(job.name) for job in filed)):
                print(f"{job.namespace}/{job.pod}: {job.phase} {job.message}")
            await asyncio.sleep(REST)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Evens out how much of each node is asked for.")
    options.add_argument("--threshold", type=float, default=20.0, help="percent between the fullest and the emptiest node")
    options.add_argument("--once", action="store_true", help="look once, and do not wait")
    options.add_argument("--kubeconfig", help="as for kubectl")
    given = options.parse_args()
    try:
        asyncio.run(main(given.threshold, given.once, given.kubeconfig))
    except KubeError as error:
        sys.exit(str(error))

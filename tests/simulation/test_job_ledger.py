"""The ledger of jobs finds what must never happen, and the matrix leaves nothing out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from herder.kube.resources import DEPLOYMENTS, JOBS, PODS, Key
from tests.simulation.cluster import CONTROLLERS
from tests.simulation.faults import ON_WRITES
from tests.simulation.jobs.cluster import Cluster, in_cluster
from tests.simulation.jobs.ledger import Allowed, Ledger
from tests.simulation.matrix import MANY_SEEDS, struck

ALLOWED = Allowed(globally=0, unavailable=0, replicas={"web": 1})


async def _says(ledger: Ledger, words: str) -> None:
    await asyncio.sleep(20)
    assert any(words in one for one in ledger.wrong), ledger.wrong


def test_the_ledger_sees_limits_budgets_and_pods_that_go_for_no_job_or_twice() -> None:
    async def story(cluster: Cluster) -> None:
        ledger = Ledger(cluster.simulation, ALLOWED)
        (first,) = await cluster.deploy("web", 1)
        await cluster.client.delete(PODS, Key("default", first))
        await _says(ledger, f"{first} goes, and no job is about it")
        await _says(ledger, f"{first} goes, and of 1 only 0 are ready, where 0 may be missing")
        (pod,) = [one for one in (await cluster.client.list(PODS)).items if one.labels.get("app") == "web"]
        await cluster.file("a", pod.name, mode="EvictDirectly")
        await _says(ledger, "1 jobs run at once, globally, where 0 may")
        await cluster.client.patch(DEPLOYMENTS, Key("default", "web"), {"spec": {"replicas": 2}})
        await asyncio.sleep(10)
        (other, *_) = [one for one in (await cluster.client.list(PODS)).items if one.uid != pod.uid]
        await cluster.client.patch(JOBS, Key("", "a"), {"status": {"podUID": other.uid}}, subresource="status")
        await _says(ledger, f"/a was about {pod.uid}, and is about {other.uid}")
        controller = cluster.simulation.client(role=CONTROLLERS)
        await cluster.client.patch(PODS, Key("default", other.name), {"metadata": {"finalizers": ["tests.example.com/held"]}})
        for _ in range(2):
            await controller.delete(PODS, Key("default", other.name), uid=other.uid)
        await _says(ledger, "the pod of ['/a'] was told to end 2 times")

    in_cluster(story)


@pytest.mark.parametrize("every", [1, 9, 17, MANY_SEEDS])
def test_with_the_seeds_of_make_simulation_every_fault_befalls_every_write(every: int) -> None:
    for kind in ON_WRITES:
        for first in (0, 7):
            hit = [number for seed in range(first, first + every) for number in struck(kind, 48, seed, every)]
            assert sorted(hit) == list(range(1, 49))
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert f"SEEDS ?= {MANY_SEEDS}\n" in makefile

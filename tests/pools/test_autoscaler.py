"""The real HorizontalPodAutoscaler scales a pool through /scale, and averages over its launcher pods."""

from pathlib import Path

import pytest

from herder.api import labels
from tests.engines.resources import Resource
from tests.machines.herd import Json
from tests.pools.metrics_source import running_metrics_source
from tests.pools.pool import POOLS, Pool

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")


def autoscaler(pool: Pool) -> Json:
    target = {"type": "AverageValue", "averageValue": "100Mi"}
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}, "scaleUp": {"stabilizationWindowSeconds": 0}}
    spec = {
        "scaleTargetRef": {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "name": pool.name},
        "minReplicas": 1,
        "maxReplicas": 3,
        "behavior": at_once,
        "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
    }
    return {"metadata": {"name": pool.name}, "spec": spec}


@pytest.mark.only_on("kubernetes")
async def test_the_real_autoscaler_scales_a_pool_out_and_in(pool: Pool, tmp_path: Path) -> None:
    await pool.make(1)
    await pool.settled(1)
    async with running_metrics_source(pool.api, pool.namespace, tmp_path) as source:
        source.memory = "150Mi"
        (await pool.api.create(AUTOSCALERS, autoscaler(pool), pool.namespace)).ok  # noqa: B018
        await pool.settled(3)
        assert source.asked == {f"{labels.POOL}={pool.name}"}
        source.memory = "10Mi"
        await pool.settled(1)
        shown = (await pool.api.get(AUTOSCALERS, pool.name, pool.namespace)).ok["status"]
        assert shown["desiredReplicas"] == 1

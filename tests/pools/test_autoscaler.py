"""The real HorizontalPodAutoscaler scales a pool through /scale, and averages over its launcher pods."""

from pathlib import Path

import pytest

from herder.api import labels
from tests.behaviour.applying import apply
from tests.engines.resources import AUTOSCALERS
from tests.machines.herd import Json
from tests.pools.metrics_source import running_metrics_source
from tests.pools.pool import POOLS, Pool, template


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


def written(pool: Pool, **spec: object) -> Json:
    return {"metadata": {"name": pool.name}, "spec": {**spec, "template": template("Manual")}}


async def test_an_apply_that_leaves_replicas_out_keeps_what_an_autoscaler_has_set(pool: Pool) -> None:
    (await apply(pool.api, POOLS, pool.name, written(pool, replicas=1), pool.namespace)).ok  # noqa: B018
    # As an autoscaler does it, and `kubectl scale`.
    (await pool.scale(3)).ok  # noqa: B018
    kept = (await apply(pool.api, POOLS, pool.name, written(pool, paused=True), pool.namespace)).ok
    assert (kept["spec"]["replicas"], kept["spec"]["paused"]) == (3, True)


async def test_replicas_are_required_of_a_pool_that_is_made_and_of_one_that_nobody_has_scaled(pool: Pool) -> None:
    refused = await apply(pool.api, POOLS, pool.name, written(pool), pool.namespace)
    assert "replicas" in refused.refused(422, "Invalid")["causes"][0]["field"]
    (await apply(pool.api, POOLS, pool.name, written(pool, replicas=1), pool.namespace)).ok  # noqa: B018
    again = await apply(pool.api, POOLS, pool.name, written(pool), pool.namespace)
    assert "replicas" in again.refused(422, "Invalid")["causes"][0]["field"]


async def test_an_apply_that_says_another_number_than_an_autoscaler_is_a_conflict(pool: Pool) -> None:
    (await apply(pool.api, POOLS, pool.name, written(pool, replicas=1), pool.namespace)).ok  # noqa: B018
    (await pool.scale(3)).ok  # noqa: B018
    (await apply(pool.api, POOLS, pool.name, written(pool, replicas=1), pool.namespace)).refused(409, "Conflict")

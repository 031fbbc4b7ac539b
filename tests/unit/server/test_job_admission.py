"""PodMigrationJobs before the embedded engine's own admission."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from herder.api.registry import JOB
from tests.unit.server.inside import Inside, config_map, engine_inside

JOBS = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
Json = dict[str, Any]


async def _make(engine: Inside, path: str, body: Json) -> Json:
    code, answer = await engine.ask("POST", path, body)
    assert code == 201, answer
    return answer


async def _pod(engine: Inside, name: str, owned: bool = True, phase: str = "Running") -> None:
    owner = await _make(engine, "/api/v1/namespaces/default/configmaps", config_map(name))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"], "controller": True}
    metadata: Json = {"name": name, **({"ownerReferences": [reference]} if owned else {})}
    spec = {"containers": [{"name": "main", "image": "image"}]}
    await _make(engine, "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await _change(engine, f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"phase": phase}})


async def _change(engine: Inside, path: str, patch: Json) -> Json:
    code, answer = await engine.ask("PATCH", path, patch, content_type="application/merge-patch+json")
    assert code == 200, answer
    return answer


async def _file(engine: Inside, name: str, pod: str = "web-0") -> tuple[int, str]:
    spec = {"podRef": {"namespace": "default", "name": pod}}
    kind = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob"}
    code, answer = await engine.ask("POST", JOBS, {**kind, "metadata": {"name": name}, "spec": spec})
    return code, answer.get("message", "")


async def test_of_many_jobs_of_one_pod_that_come_together_one_is_let_in(tmp_path: Path) -> None:
    """All are decided on before the first is durable."""
    async with engine_inside(tmp_path, kinds=(JOB,), writing_takes_time=True) as engine:
        await _pod(engine, "web-0")
        replies = await asyncio.gather(*(_file(engine, f"job-{number}") for number in range(10)))
    assert sorted(code for code, _ in replies) == [201] + [422] * 9
    assert all("is not finished (phase Pending)" in message for code, message in replies if code == 422)


async def test_bare_pods_that_failed_are_let_go_by_the_last_good_setting(tmp_path: Path) -> None:
    settings = "/api/v1/namespaces/herder-system/configmaps"
    async with engine_inside(tmp_path, kinds=(JOB,)) as engine:
        await _pod(engine, "web-0", owned=False, phase="Failed")
        assert "evictFailedBarePods: true" in (await _file(engine, "a"))[1]
        await _make(engine, settings, config_map("herder-config", **{"jobs.yaml": "evictFailedBarePods: true"}))
    async with engine_inside(tmp_path, kinds=(JOB,)) as engine:
        await _change(engine, f"{settings}/herder-config", {"data": {"jobs.yaml": "evictFailedBarePods: maybe"}})
        assert (await _file(engine, "a"))[0] == 201
        await engine.ask("DELETE", f"{JOBS}/a")
        await engine.ask("DELETE", f"{settings}/herder-config")
        assert "evictFailedBarePods: true" in (await _file(engine, "a"))[1]

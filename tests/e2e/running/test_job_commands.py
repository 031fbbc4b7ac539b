"""`herder evacuate`, `herder job …` and programs that use `herder.client`, in a herd of their own: they empty its nodes."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from herder.client import Job, connect
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.engines.embedded import find_program
from tests.unit.docs.pages import DOCS, ROOT, blocks_of

Json = dict[str, Any]
NODES = ("node-1", "node-2", "node-3")


@pytest.fixture(scope="module")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("jobs"), nodes=len(NODES)) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(kubectl_program: Path, emptied: Up, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl_program, emptied.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def tidied(kubectl: Kubectl) -> Iterator[None]:
    """Each test begins with empty nodes that take pods."""
    yield
    only(kubectl, *NODES)
    kubectl("delete", "deploy", "--all", "--cascade=foreground")
    kubectl("delete", "pmj", "--all")


@pytest.fixture
def admin(emptied: Up, tmp_path: Path) -> Herder:
    return Herder(emptied.kubeconfig, tmp_path)


def deploy(kubectl: Kubectl, name: str, replicas: int, cpu: str) -> None:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    kubectl.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    kubectl("rollout", "status", f"deploy/{name}", "--timeout=30s")


def pods_of(kubectl: Kubectl, app: str) -> dict[str, str]:
    """By name: their nodes. Those that end are left out."""
    listed = kubectl.json("get", "pods", "-l", f"app={app}")["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in listed if "deletionTimestamp" not in pod["metadata"]}


def said(kubectl: Kubectl, job: str, field: str) -> str:
    return kubectl("get", "pmj", job, "-o", f"jsonpath={{.status.{field}}}")


def only(kubectl: Kubectl, *nodes: str) -> None:
    """These take pods."""
    kubectl("uncordon", *nodes)
    if others := [node for node in NODES if node not in nodes]:
        kubectl("cordon", *others)


def test_what_was_planned_is_what_is_done(kubectl: Kubectl, admin: Herder) -> None:
    only(kubectl, "node-1", "node-2")
    deploy(kubectl, "web", 5, "500m")
    before = pods_of(kubectl, "web")
    planned = json.loads(admin("evacuate", "-l", "app=web", "--plan", "-o", "json"))
    assert {row["pod"]: row["sourceNode"] for row in planned["jobs"]} == before and planned["stay"] == planned["unknown"] == []
    assert [bool(row["waits"]) for row in planned["jobs"]] == [False, False, True, True, True]
    assert json.loads(admin("job", "list", "-o", "json")) == {"jobs": []}, "a plan changes nothing"
    admin("evacuate", "-l", "app=web", "--wait", "--timeout", "60")
    done = {row["name"]: row for row in json.loads(admin("job", "list", "--phase", "Succeed", "-o", "json"))["jobs"]}
    assert {row["job"]: row["targetNode"] for row in planned["jobs"]} == {name: row["targetNode"] for name, row in done.items()}
    assert not set(pods_of(kubectl, "web")) & set(before)
    first = planned["jobs"][0]["job"]
    assert "is replaced by" in admin("job", "status", first) and "is over (Succeed)" in admin.refused("job", "abort", first)


def test_a_job_that_finds_no_room_is_explained_held_and_ended(kubectl: Kubectl, admin: Herder) -> None:
    only(kubectl, "node-1")
    deploy(kubectl, "tight", 2, "500m")
    first, second = sorted(pods_of(kubectl, "tight"))
    assert "(no room)" in admin("evacuate", first, second, "--plan")
    admin("evacuate", first, second)
    jobs = {row["pod"]: row["name"] for row in json.loads(admin("job", "list", "-n", "default", "-o", "json"))["jobs"]}
    runs, waits = jobs[first], jobs[second]
    until(lambda: said(kubectl, runs, "reason") == "Unschedulable", "no room was ever asked for")
    assert "Unschedulable: 0/3 nodes are available" in admin("explain", "job", runs)
    told = admin("explain", "job", waits)
    assert "WaitingForWorkloadLimit: 1 of 2 pods of Deployment default/tight" in told and runs in told
    assert "`herder job abort" in admin("job", "status", runs)
    assert "gives up its room" in admin("job", "pause", runs)
    # Whoever waited for it has its turn.
    until(lambda: said(kubectl, waits, "phase") == "Running", "the other one did not begin")
    assert "Paused" in admin("explain", "job", runs)
    for name in (runs, waits):
        assert "stays where it is" in admin("job", "abort", name)
    until(lambda: {said(kubectl, name, "phase") for name in (runs, waits)} == {"Aborted"}, "they were not aborted")
    assert sorted(pods_of(kubectl, "tight")) == [first, second]


def test_a_program_that_may_only_migrate_pods_files_jobs_and_follows_them(
    kubectl: Kubectl, emptied: Up, admin: Herder, tmp_path: Path
) -> None:
    """The program is the example of docs/client.md, as it is written there."""
    given = ("--role", "pod-migrator", "--all-namespaces", "--data", str(emptied.data), "--kubeconfig", "mover")
    admin("user", "add", "mover", *given)
    mover = Herder(tmp_path / "mover", tmp_path)
    deploy(kubectl, "moved", 2, "250m")
    first, second = sorted(pods_of(kubectl, "moved"))
    planned = mover("evacuate", first, "--plan")
    assert "you may not read nodes: where room would be found is not known" in planned and "at once" not in planned
    mover("evacuate", first, "--wait", "--timeout", "60")
    [program] = [block.text for block in blocks_of(DOCS / "client.md") if block.language == "python"]
    (tmp_path / "move.py").write_text(program)
    python = str(find_program().parent / "python")
    command = [python, "move.py", "default", second]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=mover.environment, timeout=60, check=False)
    assert said.returncode == 0, said
    lines = said.stdout.splitlines()
    assert lines[-2].startswith("Succeed ") and lines[-1].startswith(f"{second} left node-"), lines
    again = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=mover.environment, timeout=60, check=False)
    assert again.returncode == 1 and "it cannot be moved: " in again.stderr and "there is no pod of this name" in again.stderr


def example() -> ModuleType:
    import importlib.util

    found = importlib.util.spec_from_file_location("descheduler", ROOT / "examples" / "descheduler.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


async def test_the_example_descheduler_evens_out_nodes(kubectl: Kubectl, emptied: Up) -> None:
    only(kubectl, "node-1")
    deploy(kubectl, "packed", 6, "1")
    only(kubectl, *NODES)
    assert set(pods_of(kubectl, "packed").values()) == {"node-1"}
    balance = example().balance
    async with connect(emptied.kubeconfig) as herder:
        filed: list[Job] = await balance(herder, 30)
        assert len(filed) == 3, "75 % of node-1 and nothing of the others; then 62, 50, and 37 beside 12"
        assert await balance(herder, 30) == [], "what is on its way is not moved twice"
        async with asyncio.timeout(60):
            done = await asyncio.gather(*(herder.wait(job.name) for job in filed))
        assert [job.message for job in done if not job.succeeded] == []
        assert all(job.source_node == "node-1" and job.node in ("node-2", "node-3") for job in done)
        assert await balance(herder, 30) == []

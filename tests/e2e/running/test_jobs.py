"""Jobs as people order and see them: flags and columns, and what /metrics tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.test_up_metrics import scraped, values

Json = dict[str, Any]
NEVER = {"scheduling.koordinator.sh/eviction-cost": "2147483647"}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
}


class Seen:
    """What was counted since."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._before = scraped(kubectl)

    def __call__(self, family: str, **labels: str) -> float:
        before, now = (sum(values(families.get(family), **labels).values()) for families in (self._before, scraped(self._kubectl)))
        return now - before

    def becomes(self, count: float, family: str, **labels: str) -> None:
        until(lambda: self(family, **labels) == count, f"{family}{labels} is not {count}, but {self(family, **labels)}")


def _deploy(here: Kubectl, name: str) -> str:
    """Its pod."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    here.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    here("rollout", "status", f"deploy/{name}", "--timeout=30s")
    return _pod(here, name)


def _pod(here: Kubectl, app: str) -> str:
    (found,) = [one for one in here.json("get", "pods", "-l", f"app={app}")["items"] if "deletionTimestamp" not in one["metadata"]]
    return found["metadata"]["name"]


def _job(here: Kubectl, pod: str) -> Json:
    (found,) = [one for one in here.json("get", "pmj")["items"] if one["spec"]["podRef"]["name"] == pod]
    return found


def _shows(here: Kubectl, pod: str, **status: str) -> None:
    def look() -> bool:
        found = _job(here, pod).get("status", {})
        return status.items() <= found.items()

    until(look, f"the job of {pod} does not show {status}")


def test_a_job_is_ordered_by_flags_shown_in_columns_and_counted(here: Kubectl, herd: Up, tmp_path: Path) -> None:
    herder = Herder(herd.kubeconfig, tmp_path, here.namespace)
    pod = _deploy(here, "web")
    here.create(BUDGET)
    seen = Seen(here)
    herder("evacuate", pod, "--mode", "EvictDirectly")
    _shows(here, pod, phase="Pending", reason="WaitingForDisruptionBudget")
    job = _job(here, pod)["metadata"]["name"]
    head, row = (line.split() for line in here("get", "pmj", job).splitlines())
    assert head == ["NAME", "PHASE", "STATUS", "AGE", "NODE", "REASON", "PODNAMESPACE", "POD", "NEWPOD"]
    assert row[:2] == [job, "Pending"] and row[-3:] == ["WaitingForDisruptionBudget", here.namespace, pod]
    wide = here("get", "pmj", job, "-o", "wide").splitlines()[0].split()
    assert wide == [*head, "TTL", "PAUSED", "MESSAGE"]
    seen.becomes(1, "herder_migration_jobs_waiting", reason="WaitingForDisruptionBudget")
    seen.becomes(1, "herder_pod_migration_jobs", phase="Pending")
    assert "is paused" in Herder(herd.kubeconfig, tmp_path)("job", "pause", job)
    _shows(here, pod, phase="Pending", reason="Paused")
    assert "goes on, as soon as no limit holds it" in Herder(herd.kubeconfig, tmp_path)("job", "resume", job)
    _shows(here, pod, phase="Pending", reason="WaitingForDisruptionBudget")
    here("delete", "pdb", "web")
    _shows(here, pod, phase="Succeed", mode="EvictDirectly", strategy="Eviction")
    seen.becomes(0, "herder_migration_jobs_waiting", reason="WaitingForDisruptionBudget")
    seen.becomes(1, "herder_pod_migration_jobs", phase="Succeed")
    seen.becomes(1, "herder_pod_migration_jobs_finished", phase="Succeed")
    seen.becomes(1, "herder_pod_migration_disruptions", how="Eviction")
    seen.becomes(1, "herder_job_arbitration_outcomes", outcome="admitted")
    assert seen("herder_job_arbitration_seconds", le="+Inf") >= 1
    assert seen("herder_reservations", phase="Succeeded") == 0, "nothing was reserved"


def test_room_that_is_held_and_jobs_that_come_to_nothing_are_counted(here: Kubectl, herd: Up, tmp_path: Path) -> None:
    herder = Herder(herd.kubeconfig, tmp_path, here.namespace)
    pod = _deploy(here, "web")
    seen = Seen(here)
    herder("evacuate", pod, "--wait", "--timeout", "60")
    seen.becomes(1, "herder_reservations", phase="Succeeded")
    room: Json = {
        "template": {
            "metadata": {"namespace": here.namespace},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}]},
        },
        "owners": [{"labelSelector": {"matchLabels": {"app": "nobody"}}}],
    }
    about = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": here.namespace}}
    here.create({**about, "spec": room})
    seen.becomes(1, "herder_reservations", phase="Available")
    seen.becomes(1.5, "herder_reserved_resources", resource="cpu")
    seen.becomes(2.0**30, "herder_reserved_resources", resource="memory")
    here("delete", "reservation", here.namespace)
    seen.becomes(0, "herder_reserved_resources", resource="cpu")
    # One that may never be moved.
    kept = _deploy(here, "kept")
    here("annotate", "pod", kept, *(f"{name}={value}" for name, value in NEVER.items()))
    _file(here, kept)
    _shows(here, kept, phase="Failed", reason="ForbiddenMigratePod")
    seen.becomes(1, "herder_job_arbitration_outcomes", outcome="refused", reason="ForbiddenMigratePod")
    # One that somebody gives up.
    moved = _pod(here, "web")
    _file(here, moved, paused=True)
    here("annotate", "pmj", f"{moved}-job", "herder.dev/abort=true")
    seen.becomes(1, "herder_pod_migration_jobs_finished", phase="Aborted", reason="Aborted")


def _file(here: Kubectl, pod: str, **spec: Any) -> None:
    about = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob", "metadata": {"name": f"{pod}-job"}}
    here.create({**about, "spec": {"podRef": {"namespace": here.namespace, "name": pod}, **spec}})

"""What `kubectl get --raw /metrics` shows: the engine, and the processes beside it."""

import os
import signal
from collections import Counter
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up, until

EVERYBODY = {"engine": 1, "controllers": 1, "agents": 1}


def scraped(kubectl: Kubectl) -> dict[str, Metric]:
    text = kubectl("get", "--raw", "/metrics")
    heads = Counter(line for line in text.splitlines() if line.startswith("#"))
    assert set(heads.values()) == {1}, "a family is there once"
    families = list(text_string_to_metric_families(text))
    series = Counter((one.name, *sorted(one.labels.items())) for family in families for one in family.samples)
    assert set(series.values()) == {1}, [name for name, count in series.items() if count > 1]
    return {family.name: family for family in families}


def values(family: Metric | None, **labels: str) -> dict[str, float]:
    """By process."""
    return {
        one.labels.get("process", ""): one.value
        for one in (family.samples if family is not None else ())
        if not one.name.endswith("_created") and labels.items() <= one.labels.items()
    }


def scraped_with(kubectl: Kubectl, up: dict[str, int]) -> dict[str, Metric]:
    """Once these are up and those are not: on a busy machine one that is well may be late, too."""

    def look() -> dict[str, Metric] | None:
        families = scraped(kubectl)
        return families if values(families["herder_process_up"]) == up else None

    found = until(look, f"what answers is not {up}")
    assert found is not None
    return found


def test_one_place_shows_the_numbers_of_all_processes(tmp_path: Path, kubectl_program: Path) -> None:
    with Up(tmp_path) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
        kubectl.create(machine("web", "Always"))
        kubectl("wait", "--for=condition=Ready", "vm/web", "--timeout=60s")
        families = scraped_with(kubectl, EVERYBODY)
        assert values(families["herder_store_objects"], resource="virtualmachines.kubevirt.io") == {"": 1}
        assert values(families["herder_schedule_attempts"], result="scheduled")["controllers"] >= 1
        assert values(families["herder_migrations_finished"], result="succeeded") == {"controllers": 0}
        phases = families["kubevirt_vmi_phase_transition_time_from_creation_seconds"]
        assert values(phases, phase="Running", vmpool="", le="+Inf") == {"controllers": 1}
        assert values(families["herder_reconcile"], controller="machines", result="done")["controllers"] >= 1
        assert set(values(families["workqueue_depth"], name="pods")) == {"agents"}
        assert values(families["herder_cache_objects"], resource="pods", selection="") == {"controllers": 1, "agents": 1}
        pids = up.children()
        assert set(values(families["process_resident_memory_bytes"])) == set(EVERYBODY) == set(pids)

        # One that hangs costs its own numbers, and nobody else's.
        os.kill(pids["agents"], signal.SIGSTOP)
        try:
            families = scraped_with(kubectl, {**EVERYBODY, "agents": 0})
            assert set(values(families["process_resident_memory_bytes"])) == {"engine", "controllers"}
        finally:
            os.kill(pids["agents"], signal.SIGCONT)
        began = values(scraped_with(kubectl, EVERYBODY)["process_start_time_seconds"])

        # One that died is heard again once it is there again.
        os.kill(pids["controllers"], signal.SIGKILL)
        until(lambda: up.children().get("controllers") not in (None, pids["controllers"]), "it was not started again")
        now = values(scraped_with(kubectl, EVERYBODY)["process_start_time_seconds"])
        assert now["controllers"] > began["controllers"]
        assert (now["engine"], now["agents"]) == (began["engine"], began["agents"])

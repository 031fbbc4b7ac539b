"""What /metrics tells about pools, and that it goes with them."""

import json
from pathlib import Path

from herder.api import labels
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.test_up_metrics import scraped, values
from tests.pools.pool import template

POOL = {"namespace": "default", "vmpool": "web"}
PHASES = ("kubevirt_vmi_phase_transition_time_seconds", "kubevirt_vmi_phase_transition_time_from_creation_seconds")


def test_a_pool_has_its_series_and_they_go_with_it(tmp_path: Path, kubectl_program: Path) -> None:
    with Up(tmp_path) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
        spec = {"replicas": 2, "autohealing": {"startupFailureThreshold": 1}, "template": template(simulated={"fails-at": "boot"})}
        kubectl.create({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": "web"}, "spec": spec})

        def shown(family: str, **more: str) -> float | None:
            return values(scraped(kubectl).get(family), **POOL, **more).get("controllers")

        until(lambda: (shown("herder_pool_healed") or 0) >= 1, "no healing was counted")
        assert shown("herder_pool_replicas", state="desired") == 2
        assert (shown("herder_pool_rollout_age_seconds") or 0) > 0
        mended = {labels.SIMULATED + "fails-at": None}
        patch = {"spec": {"template": {"spec": {"template": {"metadata": {"annotations": mended}}}}}}
        kubectl("patch", "vmpool", "web", "--type=merge", "-p", json.dumps(patch))
        until(lambda: shown("herder_pool_replicas", state="ready") == 2, "they did not become ready")
        until(lambda: shown("herder_pool_rollout_age_seconds") == 0, "the rollout did not end")
        assert (shown("herder_pool_vm_starts") or 0) >= 2
        for phases in PHASES:
            assert (shown(phases, phase="Running", le="+Inf") or 0) >= 2
        stopped = shown("herder_pool_vm_stops") or 0
        kubectl("scale", "vmpool", "web", "--replicas=1")
        until(lambda: shown("herder_pool_vm_stops") == stopped + 1, "no stop was counted")
        until(lambda: shown("herder_pool_replicas", state="current") == 1, "it was not taken")
        ended = "kubevirt_vmi_phase_transition_time_from_deletion_seconds"
        until(lambda: (shown(ended, le="+Inf") or 0) >= 1, "its end was not counted")
        kubectl("delete", "vmpool", "web")

        def gone() -> bool:
            families = scraped(kubectl).values()
            return not any(POOL.items() <= one.labels.items() for family in families for one in family.samples)

        until(gone, "the series of a deleted pool stay")

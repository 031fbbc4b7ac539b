"""What 500 autoscalers decide, each over 20 pods: one pass of the controller, without asking the API server.

Each has what a controller has in its memory by then: views of the pods, what these use as numbers, and five minutes of
recommendations. Nothing is kept from one pass to the next but that.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import msgspec

from bench.report import LESS, Report, Row
from bench.sides import Options
from herder.api import builtin
from herder.api.core import HorizontalPodAutoscaler, Pod
from herder.rules.autoscaling import AutoscalerSnapshot, History, Target, Usage, plan_autoscaler
from herder.rules.plans import moment, text_of

NAME = "autoscalers"
AUTOSCALERS = 500
PODS = 20
NOW = 1_750_000_000.0
AIM = 50.0
RULES = {"stabilizationWindowSeconds": 60, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}
Json = dict[str, Any]


def run(options: Options) -> Report:
    rounds = options.pick(20, 3)
    rows = [
        _row("cpu utilization", [_cpu()], None, rounds),
        _row("cpu and memory, with behavior", [_cpu(), _memory()], {"scaleUp": RULES, "scaleDown": RULES}, rounds),
    ]
    notes = [f"{AUTOSCALERS} autoscalers with {PODS} pods each; the best of {rounds} passes"]
    return Report(NAME, "decisions of all autoscalers", rows, notes, ("ours", "-"))


def _row(what: str, metrics: list[Json], behavior: Json | None, rounds: int) -> Row:
    snapshots = [_snapshot(number, metrics, behavior) for number in range(AUTOSCALERS)]
    histories = [_history(snapshot) for snapshot in snapshots]
    # As the controllers' process does once it has started: what is there now need not be looked at again and again.
    gc.collect()
    gc.freeze()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        plans = [plan_autoscaler(one, history, NOW) for one, history in zip(snapshots, histories, strict=True)]
        best = min(best, time.perf_counter() - start)
        assert sum(plan.rescale is not None for plan in plans) > AUTOSCALERS // 4
    gc.unfreeze()
    return Row(what, "ms", best * 1000, None, LESS, f"≤ {AIM:.0f} ms", best * 1000 <= AIM)


def _history(snapshot: AutoscalerSnapshot) -> History:
    """Of the last five minutes."""
    history = History()
    for passed in range(20, 0, -1):
        history = plan_autoscaler(snapshot, history, NOW - 15.0 * passed).history
    return history


def _snapshot(number: int, metrics: list[Json], behavior: Json | None) -> AutoscalerSnapshot:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": f"pool-{number}"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 100, "metrics": metrics, **({"behavior": behavior} if behavior else {})}
    document: Json = {"metadata": {"name": f"pool-{number}", "namespace": "default"}, "spec": spec}
    builtin.default("autoscaling", "HorizontalPodAutoscaler", document)
    pods = tuple(_pod(number, index) for index in range(PODS))
    used = 200 + number
    usage = {pod.name: Usage(NOW - 5, 15.0, {"cpu": used + index, "memory": (64 << 20) * 1000}) for index, pod in enumerate(pods)}
    view = msgspec.convert(document, HorizontalPodAutoscaler)
    return AutoscalerSnapshot(view, Target(PODS, f"pool=pool-{number}"), pods, usage)


def _pod(pool: int, index: int) -> Pod:
    started = text_of(moment(NOW - 3600))
    resources = {"requests": {"cpu": "1", "memory": "128Mi"}}
    document = {
        "metadata": {"name": f"launcher-{pool}-{index}", "namespace": "default"},
        "spec": {"containers": [{"name": "compute", "resources": resources}]},
        "status": {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
        },
    }
    return msgspec.convert(document, Pod)


def _cpu() -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def _memory() -> Json:
    return {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "64Mi"}}}

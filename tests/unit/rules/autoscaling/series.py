"""Series of looks at one autoscaler that chance has made: as JSON, as the oracle reads them, and played by our own rules."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from herder.api import builtin
from herder.api.core import HorizontalPodAutoscaler, Pod, PodMetrics
from herder.controllers.autoscaling.pod_metrics import read_usage
from herder.rules.autoscaling import AutoscalerSnapshot, History, NoSelector, Target, Usage, failed_rescale, plan_autoscaler
from herder.rules.plans import moment, text_of

Document = dict[str, Any]
# When the oracle's clock begins: 2000-01-01.
BEGIN = 946_684_800.0
SELECTOR = "app=web"
RESOURCES = ("cpu", "memory")


def made_series(seed: int) -> Document:
    chance = random.Random(seed)
    autoscaler = made_autoscaler(chance)
    spec = autoscaler["spec"]
    replicas = chance.choice((0, 1, spec["minReplicas"], spec["maxReplicas"], spec["maxReplicas"] + 2, chance.randint(1, 12)))
    looks: list[Document] = []
    now, level = BEGIN, chance.choice((20, 100, 300))
    for index in range(chance.choice((1, 2, 3, 8, 30))):
        after = 0 if index == 0 else chance.choice((15, 15, 15, 15, 30, 60, 300))
        now += after
        level = max(0, level + chance.choice((-120, -40, 0, 0, 40, 120)))
        looks.append(made_look(chance, now, after, level))
    return {"autoscaler": autoscaler, "replicas": replicas, "looks": looks}


def made_autoscaler(chance: random.Random) -> Document:
    least = chance.choice((1, 1, 2, 5))
    spec: Document = {
        "scaleTargetRef": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web"},
        "minReplicas": least,
        "maxReplicas": least + chance.choice((0, 2, 10, 100)),
        "metrics": [_metric(chance) for _ in range(chance.choice((1, 1, 2, 3)))],
    }
    if chance.random() < 0.6:
        spec["behavior"] = {name: _rules(chance) for name in ("scaleUp", "scaleDown") if chance.random() < 0.8}
    document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    builtin.default("autoscaling", "HorizontalPodAutoscaler", document)
    builtin.prepare_for_create("autoscaling", "HorizontalPodAutoscaler", document)
    assert builtin.validate_create("autoscaling", "HorizontalPodAutoscaler", document) == []
    return document


def _metric(chance: random.Random) -> Document:
    name = chance.choice(RESOURCES)
    if chance.random() < 0.6:
        target: Document = {"type": "Utilization", "averageUtilization": chance.choice((20, 50, 80, 150))}
    else:
        target = {
            "type": "AverageValue",
            "averageValue": chance.choice(("500m", "1", "250m") if name == "cpu" else ("64Mi", "100M")),
        }
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _rules(chance: random.Random) -> Document:
    rules: Document = {}
    if chance.random() < 0.7:
        rules["stabilizationWindowSeconds"] = chance.choice((0, 15, 30, 60, 120, 600))
    if chance.random() < 0.6:
        rules["selectPolicy"] = chance.choice(("Max", "Min", "Disabled"))
    if chance.random() < 0.3:
        rules["tolerance"] = chance.choice(("0", "0.05", "0.3", "1"))
    if chance.random() < 0.6:
        kinds = [(chance.choice(("Pods", "Percent")), chance.choice((15, 30, 60, 600))) for _ in range(chance.randint(1, 3))]
        rules["policies"] = [
            {"type": kind, "value": chance.choice((1, 2, 5) if kind == "Pods" else (10, 33, 50, 100, 300)), "periodSeconds": period}
            for kind, period in kinds
        ]
    return rules


def made_look(chance: random.Random, now: float, after: float, level: int) -> Document:
    """`level`: what the pods use, in percent of what they ask for, more or less."""
    look: Document = {"after": after, "selector": SELECTOR}
    if chance.random() < 0.08:
        look["scaled"] = chance.choice((0, 1, 3, 7, 40))
    if chance.random() < 0.03:
        look["noScale"] = "the server said no"
    if chance.random() < 0.03:
        look["noWrite"] = "the write was refused"
    if chance.random() < 0.03:
        look["noMetrics"] = "nobody answers"
    if chance.random() < 0.02:
        look["selector"] = ""
    pods = [_pod(chance, f"web-{number}", now) for number in range(chance.choice((0, 1, 2, 3, 3, 5, 8)))]
    look["pods"] = pods
    look["metrics"] = [_metrics(chance, pod, now, level) for pod in pods if chance.random() < 0.93]
    return look


def _pod(chance: random.Random, name: str, now: float) -> Document:
    started = now - chance.choice((5, 40, 200, 299, 300, 301, 5000, 5000))
    changed = started + chance.choice((0, 10, 29, 30, 31, 100))
    phase = chance.choices(("Running", "Pending", "Failed", "Succeeded"), (90, 6, 3, 1))[0]
    metadata: Document = {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    if chance.random() < 0.04:
        metadata["deletionTimestamp"] = _time(now)
    status: Document = {"phase": phase, "startTime": _time(started)}
    if chance.random() < 0.95:
        ready = chance.choices(("True", "False", "Unknown"), (85, 12, 3))[0]
        status["conditions"] = [{"type": "Ready", "status": ready, "lastTransitionTime": _time(changed)}]
    if chance.random() < 0.03:
        del status["startTime"]
    return {"metadata": metadata, "spec": _pod_spec(chance), "status": status}


def _pod_spec(chance: random.Random) -> Document:
    containers = [
        {"name": f"c{number}", "resources": {"requests": _requests(chance)}} for number in range(chance.choice((1, 1, 2)))
    ]
    spec: Document = {"containers": containers}
    if chance.random() < 0.1:
        spec["initContainers"] = [{"name": "side", "restartPolicy": "Always", "resources": {"requests": _requests(chance)}}]
    if chance.random() < 0.05:
        spec["initContainers"] = [{"name": "setup"}]
    if chance.random() < 0.05:
        spec["resources"] = {"requests": _requests(chance)}
    return spec


def _requests(chance: random.Random) -> Document:
    every = {"cpu": chance.choice(("100m", "1", "250m")), "memory": chance.choice(("64Mi", "100M", "1Gi"))}
    return {name: amount for name, amount in every.items() if chance.random() < 0.995}


def _metrics(chance: random.Random, pod: Document, now: float, level: int) -> Document:
    percent = max(0, level + chance.randint(-15, 15))
    shown = [
        {"name": one["name"], "usage": {"cpu": f"{percent * 2 * 10**6}n", "memory": f"{percent * 700}Ki"}}
        for one in pod["spec"]["containers"]
    ]
    if chance.random() < 0.02:
        del shown[-1]["usage"][chance.choice(RESOURCES)]
    sampled = now - chance.choice((0, 5, 15, 30))
    metadata = {"name": pod["metadata"]["name"], "namespace": "shop"}
    return {"metadata": metadata, "timestamp": _time(sampled), "window": chance.choice(("15s", "30s", "1m0s")), "containers": shown}


def _time(seconds: float) -> str:
    return text_of(moment(seconds))


def played(series: Document) -> list[Document]:
    """What our rules make of it: the same answers as the oracle's."""
    autoscaler, replicas, history, now = dict(series["autoscaler"]), series["replicas"], History(), BEGIN
    answers: list[Document] = []
    for look in series["looks"]:
        now += look["after"]
        replicas = look.get("scaled", replicas)
        snapshot = _snapshot(autoscaler, replicas, look)
        plan = plan_autoscaler(snapshot, history, now)
        if plan.rescale is not None and "noWrite" in look:
            plan = failed_rescale(snapshot, history, plan, look["noWrite"], now)
        elif plan.rescale is not None:
            replicas = plan.rescale.replicas
        history = plan.history
        autoscaler = {**autoscaler, "status": plan.status}
        told = [f"{event.type} {event.reason} {event.message}" for event in plan.events]
        answers.append({"replicas": replicas, "status": plan.status, "events": told})
    return answers


def _snapshot(autoscaler: Document, replicas: int, look: Document) -> AutoscalerSnapshot:
    view = msgspec.convert(autoscaler, HorizontalPodAutoscaler)
    if "noScale" in look:
        return AutoscalerSnapshot(view, look["noScale"])
    pods: tuple[Pod, ...] | NoSelector = tuple(msgspec.convert(pod, Pod) for pod in look["pods"])
    if not look["selector"]:
        missing = "the HPA target's scale is missing a selector"
        pods = NoSelector("InvalidSelector", missing, "SelectorRequired", "selector is required")
    return AutoscalerSnapshot(view, Target(replicas, look["selector"]), pods, _usage(look))


def _usage(look: Document) -> dict[str, Usage] | str:
    if "noMetrics" in look:
        return f"unable to fetch metrics from resource metrics API: {look['noMetrics']}"
    if not look["metrics"]:
        return "no metrics returned from resource metrics API"
    views = [msgspec.convert(one, PodMetrics) for one in look["metrics"]]
    return {one.name: read_usage(one) for one in views}

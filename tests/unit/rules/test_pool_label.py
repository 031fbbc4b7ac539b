"""Which launcher pods carry the label of a pool: of each machine that the pool manages the one that has the guest."""

from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import GuestReport
from herder.api.meta import OwnerReference
from herder.rules.instances import InstancePlan, InstanceSnapshot, plan_instance
from herder.rules.instances.pool_label import pool_label_of
from tests.unit.rules.machines import NOW, Json, instance, instance_view, node, pod

WEB = {labels.POOL: "web"}
NOTED = {labels.LAST_APPLIED: '{"labels":["app"]}'}
POOL = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": "pool-1", "controller": True}
RUNS, TOOK_OVER, WAITS = GuestReport(state="Running"), GuestReport(state="Running"), GuestReport(state="Incoming")
GONE = GuestReport(state="HandedOver")


def launcher(report: GuestReport, marked: Json, name: str = "source", *, target: bool = False, **more: Any) -> Pod:
    own = {"app": "web", **marked, **({labels.MIGRATION_UID: "moves"} if target else {})}
    return pod(report, phase="Running", node="node-1", ready=True, name=name, labels=own, annotations=NOTED, **more)


def plan(pool: str | None, *pods: Pod, phase: str = "Running") -> InstancePlan:
    document = instance(phase, launcherPodName="source", nodeName="node-1") if pods else instance()
    view, raw = instance_view(document), msgspec.json.encode(document)
    snapshot = InstanceSnapshot(view, raw, pods, {"node-1": node()}, migrations=frozenset({"moves"}), pool=pool)
    return plan_instance(snapshot, NOW)


def patches(pool: str | None, *pods: Pod, phase: str = "Running") -> list[tuple[str, str | None]]:
    made = plan(pool, *pods, phase=phase).patch_pods
    assert all(one.patch == {"metadata": {"labels": {labels.POOL: one.patch["metadata"]["labels"][labels.POOL]}}} for one in made)
    return [(one.name, one.patch["metadata"]["labels"][labels.POOL]) for one in made]


@pytest.mark.parametrize(
    ("reference", "pool"),
    [
        (POOL, "web"),
        ({**POOL, "apiVersion": "kubevirt.io/v2"}, "web"),
        ({**POOL, "apiVersion": "example.org/v1"}, ""),
        ({**POOL, "kind": "VirtualMachine"}, ""),
        # Whoever may write references may write anything, and no API server would take it as the value of a label.
        ({**POOL, "name": "a b"}, ""),
        ({**POOL, "name": "x" * 64}, ""),
        (None, ""),
    ],
)
def test_the_pool_is_the_controller_of_the_machine(reference: Json | None, pool: str) -> None:
    assert pool_label_of(msgspec.convert(reference, OwnerReference) if reference else None) == pool


@pytest.mark.parametrize(("pool", "there"), [("web", "web"), ("", None), (None, None)])
def test_a_guest_starts_in_a_pod_that_its_pool_counts(pool: str | None, there: str | None) -> None:
    made = plan(pool).create_pod
    assert made is not None
    assert made["metadata"]["labels"].get(labels.POOL) == there


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_the_pod_follows_the_owner_of_its_machine(phase: str) -> None:
    assert patches("web", launcher(RUNS, {}), phase=phase) == [("source", "web")]
    assert patches("web", launcher(RUNS, {labels.POOL: "forged"}), phase=phase) == [("source", "web")]
    assert patches("", launcher(RUNS, WEB), phase=phase) == [("source", None)]
    assert patches("web", launcher(RUNS, WEB), phase=phase) == []
    assert patches("", launcher(RUNS, {}), phase=phase) == []


def test_while_its_machine_is_not_known_a_pod_stays_as_it_is() -> None:
    assert patches(None, launcher(RUNS, WEB)) == patches(None, launcher(RUNS, {})) == []


def test_a_target_gets_the_label_when_it_takes_over_and_the_source_loses_it_before() -> None:
    source, waiting = launcher(RUNS, WEB), launcher(WAITS, {}, "target", target=True)
    assert patches("web", source, waiting) == []
    left = launcher(GONE, WEB)
    assert patches("web", left, waiting) == []
    target = launcher(TOOK_OVER, {}, "target", target=True)
    assert patches("web", left, target) == [("source", None), ("target", "web")]
    assert patches("web", launcher(GONE, {}), launcher(TOOK_OVER, WEB, "target", target=True)) == []

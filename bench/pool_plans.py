"""What `herder pool plan` computes for a large pool whose template has changed: all that is done at once, and all that follows.
What it has to read first is not part of it."""

import time
from typing import Any

import msgspec

from bench.pool_objects import pool
from bench.report import Row
from herder.api import labels
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.kube.cache.collector import collector_off
from herder.rules.pools.explain import explain_plan
from herder.rules.pools.gather import Everything, snapshot_of
from herder.rules.pools.revisions import Revision, wanted_revision
from herder.rules.pools.snapshot import PoolSnapshot
from herder.rules.pools.template import machine_document

MACHINES = 5000
# In milliseconds.
MOST_PLAN = 200.0
ROUNDS = 5
_NOW = 1_750_000_000.0
_SINCE = "2025-06-15T12:00:00Z"


def rows() -> list[Row]:
    snapshot = _snapshot()
    best = min(_seconds(snapshot) for _ in range(ROUNDS)) * 1000
    return [Row(f"{MACHINES:,} machines: a plan", "ms", best, None, "less", f"≤ {MOST_PLAN:g}", best <= MOST_PLAN)]


def _snapshot() -> PoolSnapshot:
    """As the command has it: what it was made from is gone by then."""
    before, after = _pool(cores=1), _pool(cores=2)
    view = msgspec.convert(after, VirtualMachinePool)
    old = wanted_revision(view, before["spec"]["template"], {})
    machines = [_machine(view, old, number) for number in range(1, MACHINES + 1)]
    return snapshot_of(view, after, Everything(machines=machines, instances=[_instance(one) for one in machines]))


def _seconds(snapshot: PoolSnapshot) -> float:
    began = time.perf_counter()
    with collector_off():
        found = explain_plan(snapshot, _NOW)
    took = time.perf_counter() - began
    assert len(found.steps) + len(found.later) == MACHINES, "each of them is to be restarted"
    return took


def _pool(cores: int) -> dict[str, Any]:
    written = msgspec.json.decode(pool("large", MACHINES, {}, cores=cores))
    return {**written, "metadata": {"name": "large", "namespace": "bench", "uid": "pool", "resourceVersion": "1"}}


def _machine(view: VirtualMachinePool, revision: Revision, number: int) -> VirtualMachine:
    document = machine_document(view, revision, number, annotations={labels.POOL_UPDATED: _SINCE})
    metadata = {**document["metadata"], "uid": f"vm-{number}", "resourceVersion": "1", "creationTimestamp": _SINCE}
    return msgspec.convert({**document, "metadata": metadata}, VirtualMachine)


def _instance(machine: VirtualMachine) -> VirtualMachineInstance:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": machine.name, "uid": machine.uid, "controller": True}
    metadata = {"name": machine.name, "namespace": "bench", "uid": f"vmi-{machine.name}", "ownerReferences": [owner]}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _SINCE}
    status = {"phase": "Running", "nodeName": "node-1", "conditions": [ready]}
    return msgspec.convert(
        {"metadata": {**metadata, "labels": machine.labels}, "spec": {"domain": {}}, "status": status}, VirtualMachineInstance
    )

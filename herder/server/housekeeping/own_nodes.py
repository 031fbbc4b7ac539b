"""Nodes of the `herder up` that started the engine: those that run guests in QEMU are closed to all other pods.

Their agents make them so; of one that is there already a node may not change its taints, as in Kubernetes. So it is done here, for
those of an earlier version, of a backup, or that were simulated the last time.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

from herder.api.labels import RUNTIME, VM_HOST_TAINT
from herder.server.engine import Engine
from herder.server.status import ApiError
from herder.server.writes import HOUSEKEEPING

SIMULATED = "simulated"
Document = dict[str, Any]


class OwnNodes(NamedTuple):
    """By their names: those that come in by doors of their own and run QEMU, and those that are simulated."""

    with_doors: tuple[str, ...] = ()
    simulated: tuple[str, ...] = ()


async def taint_own_nodes(engine: Engine, nodes: OwnNodes) -> None:
    await asyncio.gather(
        *(_write(engine, name, vm_host=True) for name in nodes.with_doors),
        # One that runs plain pods from now on. The taint of one that was simulated before is somebody's own.
        *(_write(engine, name, vm_host=False) for name in nodes.simulated if _runs_qemu(engine, name)),
    )


def _runs_qemu(engine: Engine, name: str) -> bool:
    record = engine.store.get("nodes", name)
    return record is not None and record.labels.get(RUNTIME, SIMULATED) != SIMULATED


async def _write(engine: Engine, name: str, *, vm_host: bool) -> None:
    served = engine.served("", "v1", "nodes")
    # A disk that is full must not keep the engine from starting, and a Node that is missing is its agent's to make.
    with contextlib.suppress(ApiError):
        await engine.writes.update(served, name, lambda node: with_taint(node, vm_host=vm_host), HOUSEKEEPING)


def with_taint(node: Document, *, vm_host: bool) -> Document:
    """The same where nothing is to be changed: nothing is written then."""
    taints: list[Document] = (node.get("spec") or {}).get("taints") or []
    others = [taint for taint in taints if taint.get("key") != VM_HOST_TAINT]
    if vm_host == (len(others) < len(taints)):
        return node
    wanted = [*others, {"key": VM_HOST_TAINT, "effect": "NoSchedule"}] if vm_host else others
    return {**node, "spec": {**(node.get("spec") or {}), "taints": wanted}}

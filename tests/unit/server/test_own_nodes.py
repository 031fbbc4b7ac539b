"""Nodes of `herder up` that run QEMU are closed to plain pods, also those that an earlier version has made open."""

from pathlib import Path

from herder.api.labels import RUNTIME
from herder.server.housekeeping.own_nodes import OwnNodes
from tests.unit.server.inside import Inside, Json, engine_inside

VM_HOST = {"key": "herder.dev/vm-host", "effect": "NoSchedule"}
OTHER = {"key": "example.com/gpu", "effect": "NoExecute", "value": "x"}
NODES = "/api/v1/nodes"


async def _make(inside: Inside, name: str, runtime: str, *taints: Json) -> None:
    metadata = {"name": name, "labels": {RUNTIME: runtime}}
    code, _ = await inside.ask("POST", NODES, {"kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}})
    assert code == 201


async def _taints(inside: Inside) -> dict[str, list[Json]]:
    _, found = await inside.ask("GET", NODES)
    return {node["metadata"]["name"]: node["spec"].get("taints", []) for node in found["items"]}


async def _version(inside: Inside, name: str) -> str:
    return (await inside.ask("GET", f"{NODES}/{name}"))[1]["metadata"]["resourceVersion"]


async def test_those_that_are_there_already_are_closed_at_the_next_start_and_no_others(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await _make(inside, "node-1", "qemu")
        await _make(inside, "node-2", "qemu", OTHER, VM_HOST)
        await _make(inside, "node-3", "simulated", OTHER)
        await _make(inside, "joined", "qemu")
        before = await _version(inside, "node-2")
    async with engine_inside(tmp_path, own_nodes=OwnNodes(("node-1", "node-2", "node-3", "node-4"))) as inside:
        closed = {"node-1": [VM_HOST], "node-2": [OTHER, VM_HOST], "node-3": [OTHER, VM_HOST], "joined": []}
        assert await _taints(inside) == closed
        assert await _version(inside, "node-2") == before, "it was closed already"


async def test_those_that_are_simulated_from_now_on_are_opened_and_what_people_wrote_stays(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await _make(inside, "node-1", "qemu", VM_HOST, OTHER)
        await _make(inside, "node-2", "simulated", VM_HOST)
    async with engine_inside(tmp_path, own_nodes=OwnNodes(simulated=("node-1", "node-2", "node-3"))) as inside:
        assert await _taints(inside) == {"node-1": [OTHER], "node-2": [VM_HOST]}

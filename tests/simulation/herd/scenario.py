"""What people do to virtual machines, and what has to come of it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.registry import DATA_VOLUME, INSTANCE, JOB, MACHINE, MIGRATION, POLICY, POOL, RESERVATION, REVIEW, SETTINGS
from herder.controllers import CONTROLLERS
from herder.controllers.node_lifecycle import NODE_LIFECYCLE
from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import INSTANCES, MACHINES, MIGRATIONS, NODES, PODS, Key
from herder.scheduler import NAMES, scheduler
from tests.engines.waiting import eventually
from tests.machines.herd import machine
from tests.simulation.faults import CUT_OFF
from tests.simulation.matrix import Scenario, Step

NAMESPACE = "default"
KEY = Key(NAMESPACE, "vm")
COUNT = 2


async def nodes_are_ready(client: Client) -> None:
    """Whichever comes first must not decide where a machine goes."""
    for number in range(COUNT):
        await eventually(lambda name=f"node-{number + 1}": _is_ready(client, name), patience=120.0)


async def _is_ready(client: Client, name: str) -> bool:
    try:
        node = await client.find(NODES, Key("", name))
    except KubeError:
        return False  # a server that is away will be back
    return node is not None and bool(node.status.conditions)


def make(strategy: str = "Always", name: str = "vm", **written: Any) -> Step:
    async def step(client: Client) -> None:
        document = machine(strategy, name=name, **written)
        document["metadata"]["namespace"] = NAMESPACE
        await client.create(MACHINES, document)

    return step


def change(strategy: str, name: str = "vm") -> Step:
    async def step(client: Client) -> None:
        await client.patch(MACHINES, Key(NAMESPACE, name), {"spec": {"runStrategy": strategy}})

    return step


def pause(value: str, name: str = "vm") -> Step:
    async def step(client: Client) -> None:
        await client.patch(INSTANCES, Key(NAMESPACE, name), {"metadata": {"annotations": {labels.PAUSE: value}}})

    return step


def restart(name: str = "vm") -> Step:
    async def step(client: Client) -> None:
        instance = await client.get(INSTANCES, Key(NAMESPACE, name))
        patch = {"metadata": {"annotations": {labels.RESTART_REQUEST: instance.uid}}}
        await client.patch(MACHINES, Key(NAMESPACE, name), patch)

    return step


def delete_pod(name: str = "vm") -> Step:
    async def step(client: Client) -> None:
        instance = await client.get(INSTANCES, Key(NAMESPACE, name))
        assert instance.status is not None
        await client.delete(PODS, Key(NAMESPACE, instance.status.launcher_pod_name or ""))

    return step


def migrate(migration: str, name: str = "vm", **spec: Any) -> Step:
    async def step(client: Client) -> None:
        document = {"metadata": {"name": migration, "namespace": NAMESPACE}, "spec": {"vmiName": name, **spec}}
        await client.create(MIGRATIONS, document)

    return step


def delete(name: str = "vm") -> Step:
    async def step(client: Client) -> None:
        await client.delete(MACHINES, Key(NAMESPACE, name))

    return step


def runs(left: dict[str, bytes], name: str = "vm") -> str:
    """Nothing where the machine runs, with one instance and one pod."""
    found = msgspec.json.decode(left.get(f"virtualmachines.kubevirt.io {NAMESPACE}/{name}", b"{}"))
    word = found.get("status", {}).get("printableStatus")
    pods = [key for key in left if key.startswith(f"pods {NAMESPACE}/virt-launcher-{name}-")]
    return "" if word == "Running" and len(pods) == 1 else f"{name} should run in one pod, but is {word} with {pods}"


def runs_elsewhere(left: dict[str, bytes]) -> str:
    """It was moved twice, and both migrations know it."""
    moved = [msgspec.json.decode(raw) for key, raw in left.items() if key.startswith("virtualmachineinstancemigrations")]
    phases = [one.get("status", {}).get("phase") for one in moved]
    return runs(left) or ("" if phases == ["Succeeded"] * 2 else f"both migrations should have succeeded, but they are {phases}")


def nothing_left(left: dict[str, bytes]) -> str:
    found = [key for key in left if key.startswith(("pods ", "virtualmachine"))]
    return f"nothing should be left, but there is {found}" if found else ""


def herd(name: str, *steps: Step, expect: Any = runs) -> Scenario:
    everything = (*CONTROLLERS, *NODE_LIFECYCLE, scheduler(NAMES))
    return Scenario(
        name,
        kinds=(MACHINE, INSTANCE, DATA_VOLUME, SETTINGS, MIGRATION, POLICY, POOL, REVIEW, RESERVATION, JOB),
        controllers=everything,
        steps=(nodes_are_ready, *steps),
        expect=expect,
        nodes=COUNT,
        # Longer than anybody is cut off: what comes late is not lost.
        quiet=CUT_OFF + 15,
    )


STARTED_AND_RESTARTED = herd("started and restarted", make(), restart())
STOPPED = herd("stopped and gone", make("Always"), change("Halted"), delete(), expect=nothing_left)
PAUSED = herd("paused, its pod deleted", make(), pause("true"), pause("false"), delete_pod())
MOVED = herd("moved there and back", make(), migrate("there"), migrate("back"), expect=runs_elsewhere)
ALL = (STARTED_AND_RESTARTED, STOPPED, PAUSED)

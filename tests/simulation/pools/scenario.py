"""What people do to pools, and what has to come of it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels
from herder.api.registry import POOL
from herder.kube.client import Client
from herder.kube.resources import INSTANCES, MACHINES, POOLS, Key
from tests.machines.herd import machine
from tests.simulation.herd.scenario import NAMESPACE, herd
from tests.simulation.matrix import Expect, Scenario, Step

Json = dict[str, Any]
KEY = Key(NAMESPACE, "web")
BLANK = {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}}
OFFLINE = {"scaleInStrategy": {"proactive": {"statePreservation": "Offline"}}}


def template(memory: str = "64Mi", strategy: str = "Always", *, disk: bool = False, **written: Any) -> Json:
    """`disk`: each machine has one of its own."""
    # On one node: where a machine goes is another story.
    where = {"kubernetes.io/hostname": "node-1"}
    spec: Json = machine(strategy, domain={"memory": {"guest": memory}}, nodeSelector=where, **written)["spec"]
    if disk:
        spec["dataVolumeTemplates"] = [{"metadata": {"name": "disk"}, "spec": BLANK}]
        instance = spec["template"]["spec"]
        instance["volumes"] = [{"name": "root", "dataVolume": {"name": "disk"}}]
        instance["domain"]["devices"] = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    return {"spec": spec}


def pool(replicas: int, wanted: Json, **spec: Any) -> Json:
    return {
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {"replicas": replicas, "template": wanted, **spec},
    }


def make(replicas: int, wanted: Json, **spec: Any) -> Step:
    async def step(client: Client) -> None:
        await client.create(POOLS, pool(replicas, wanted, **spec))

    return step


def patch(**spec: Any) -> Step:
    async def step(client: Client) -> None:
        await client.patch(POOLS, KEY, {"spec": spec})

    return step


def detach(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.patch(MACHINES, Key(NAMESPACE, name), {"metadata": {"ownerReferences": None}})

    return step


def attach(name: str) -> Step:
    """As a person does: by a reference that says no more than it must."""

    async def step(client: Client) -> None:
        found = await client.get(POOLS, KEY)
        reference = {"apiVersion": POOL.api_version, "kind": POOL.kind, "name": found.name, "uid": found.uid}
        await client.patch(MACHINES, Key(NAMESPACE, name), {"metadata": {"ownerReferences": [reference]}})

    return step


def spoil(name: str) -> Step:
    """From its next start on, which is at once, its guest never answers."""

    async def step(client: Client) -> None:
        key = Key(NAMESPACE, name)
        instance = await client.get(INSTANCES, key)
        dead = {"metadata": {"annotations": {labels.SIMULATED + "dies-after": "0s"}}}
        requested = {"annotations": {labels.RESTART_REQUEST: instance.uid}}
        await client.patch(MACHINES, key, {"metadata": requested, "spec": {"template": dead}})

    return step


def healed(names: list[str], name: str) -> Expect:
    """Once, and written down."""
    whole = has(names)

    def look(left: dict[str, bytes]) -> str:
        records = objects(left, "virtualmachinepools")[KEY.name].get("status", {}).get("healing", [])
        counted = [(one["name"], one["attempts"]) for one in records]
        return whole(left) or ("" if counted == [(name, 1)] else f"{name} should have been healed once: {records}")

    return look


def objects(left: dict[str, bytes], kind: str) -> dict[str, Json]:
    prefix = f"{kind}.kubevirt.io {NAMESPACE}/" if kind != "datavolumes" else f"datavolumes.cdi.kubevirt.io {NAMESPACE}/"
    return {name.removeprefix(prefix): msgspec.json.decode(raw) for name, raw in left.items() if name.startswith(prefix)}


def has(names: list[str], memory: str = "64Mi", word: str = "Running", *, volumes: bool = False) -> Expect:
    """Nothing where there are these machines, each what the template says, and the pool knows it."""

    def look(left: dict[str, bytes]) -> str:
        found = objects(left, "virtualmachines")
        of_pool = objects(left, "virtualmachinepools")[KEY.name]
        status = of_pool.get("status", {})
        if sorted(found) != names:
            return f"there should be {names}, but there are {sorted(found)}"
        words = {name: one.get("status", {}).get("printableStatus") for name, one in found.items()}
        if set(words.values()) != {word}:
            return f"all should be {word}, but they are {words}"
        uid = of_pool["metadata"]["uid"]
        strays = [name for name, one in found.items() if [owner["uid"] for owner in one["metadata"]["ownerReferences"]] != [uid]]
        old = [name for name, one in found.items() if _memory(one) != memory]
        running = objects(left, "virtualmachineinstances").values()
        instances = {one["metadata"]["labels"].get(labels.POOL_REVISION) for one in running}
        if strays or old or len(instances) > 1 or status.get("currentRevision") != status.get("updateRevision"):
            return f"not the pool's: {strays}; not up to date: {old}, {instances}, {status}"
        return _disks(left, found) if volumes else ""

    return look


def _memory(one: Json) -> str:
    return one["spec"]["template"]["spec"]["domain"]["memory"]["guest"]


def _disks(left: dict[str, bytes], machines: dict[str, Json]) -> str:
    disks = objects(left, "datavolumes")
    owners = {name: [owner["uid"] for owner in one["metadata"]["ownerReferences"]] for name, one in disks.items()}
    wanted = {f"disk-{name.rpartition('-')[2]}": [one["metadata"]["uid"]] for name, one in machines.items()}
    return "" if owners == wanted else f"each machine should have its own disk, but they are owned by {owners}, not {wanted}"


def pools(name: str, *steps: Step, expect: Any) -> Scenario:
    made = herd(name, *steps, expect=expect)
    return msgspec.structs.replace(made, kinds=(*(one for one in made.kinds if one is not POOL), POOL))


ROLLED = pools("rolled out", make(2, template()), patch(template=template("96Mi")), expect=has(["web-1", "web-2"], "96Mi"))
PRESERVED = pools(
    "preserved and back",
    make(2, template(strategy="Halted", disk=True), **OFFLINE),
    patch(replicas=0),
    patch(replicas=2),
    expect=has(["web-1", "web-2"], word="Stopped", volumes=True),
)
DETACHED = pools(
    "detached and back",
    # Which one goes when the first is back is not left to chance, which a fault changes.
    make(2, template(strategy="Halted"), scaleInStrategy={"proactive": {"selectionPolicy": {"basePolicy": "Newest"}}}),
    detach("web-1"),
    attach("web-1"),
    patch(replicas=3),
    expect=has(["web-1", "web-2", "web-3"], word="Stopped"),
)
_HEALED = pools(
    "healed",
    make(
        2,
        template(livenessProbe={"guestAgentPing": {}, "periodSeconds": 1}),
        autohealing={"startupFailureThreshold": 1},
    ),
    spoil("web-1"),
    expect=healed(["web-1", "web-2"], "web-1"),
)
HEALED = msgspec.structs.replace(
    _HEALED, tried=frozenset(("virtualmachineinstances.kubevirt.io default/web-1", "pods default/virt-launcher-web-1-<uid>"))
)

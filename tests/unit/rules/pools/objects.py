"""A pool and its machines for tests of what people ask of them."""

from typing import Any

import msgspec

from herder.api import labels
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.rules.plans import moment, text_of
from herder.rules.pools.gather import Everything, snapshot_of
from herder.rules.pools.member import Member, member_of
from herder.rules.pools.revisions import Revision, revision_document, wanted_revision
from herder.rules.pools.snapshot import PoolSnapshot

NOW = 1_750_000_000.0
Json = dict[str, Any]
API = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool"}
OWNER: Json = {**API, "name": "web", "uid": "pool-1", "controller": True, "blockOwnerDeletion": True}


def template(memory: str = "64Mi") -> Json:
    return {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"memory": {"guest": memory}}}}}}


def written(replicas: int = 3, status: Json | None = None, *, memory: str = "64Mi", **spec: Any) -> Json:
    metadata = {"name": "web", "namespace": "shop", "uid": "pool-1", "resourceVersion": "7", "generation": 2}
    whole = {"metadata": metadata, "spec": {"replicas": replicas, "template": template(memory), **spec}}
    return {**whole, "status": status} if status is not None else whole


def pool(replicas: int = 3, status: Json | None = None, **spec: Any) -> VirtualMachinePool:
    return msgspec.convert(written(replicas, status, **spec), VirtualMachinePool)


def revision(memory: str = "64Mi") -> Revision:
    return wanted_revision(pool(), template(memory), {})


# A time that a test writes.
BY_HAND = "2026-01-02T03:04:05Z"
OLD, NEW = revision("64Mi"), revision("96Mi")


def machine(
    name: str = "web-1", *, owners: list[Json] | None = None, revision: str = OLD.name, deleted: bool = False, **annotations: str
) -> VirtualMachine:
    metadata: Json = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "3",
        "creationTimestamp": text_of(moment(NOW - 100)),
        "labels": {labels.POOL_REVISION: revision},
        "annotations": {f"herder.dev/{key.replace('_', '-')}": value for key, value in annotations.items()},
        "ownerReferences": [OWNER] if owners is None else owners,
    }
    if deleted:
        metadata["deletionTimestamp"] = text_of(moment(NOW))
    return msgspec.convert({"metadata": metadata, "spec": template()["spec"]}, VirtualMachine)


def instance(name: str = "web-1", *, revision: str = OLD.name, ready: bool = True, node: str = "node-1") -> VirtualMachineInstance:
    """Of that machine, and alive."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": f"vmi-{name}", "ownerReferences": [owner]}
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": text_of(moment(NOW - 50))}
    return msgspec.convert(
        {
            "metadata": {**metadata, "labels": {labels.POOL_REVISION: revision}},
            "spec": {"domain": {}},
            "status": {"phase": "Running", "nodeName": node, "conditions": [condition]},
        },
        VirtualMachineInstance,
    )


def member(machine: VirtualMachine, instance: VirtualMachineInstance | None = None) -> Member:
    return member_of("web", machine, instance)


def volume(name: str, machine: str, *, controller: str = "") -> DataVolume:
    """That the pool owns, and that the machine of this uid controls."""
    vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": machine, "uid": controller, "controller": True}
    kept = {**OWNER, "controller": False, "blockOwnerDeletion": False}
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "4",
        "creationTimestamp": text_of(moment(NOW - 1000)),
        "labels": {labels.MACHINE_NAME: machine},
        "annotations": {labels.READY_REVISION: OLD.name},
        "ownerReferences": [kept, *([vm] if controller else [])],
    }
    return msgspec.convert({"metadata": metadata, "spec": {"source": {"blank": {}}}}, DataVolume)


def snapshot(
    document: Json, machines: list[VirtualMachine], *, not_ready: tuple[str, ...] = (), known: tuple[Revision, ...] = (OLD,)
) -> PoolSnapshot:
    """Each machine has an instance of the revision that it has itself."""
    viewed = msgspec.convert(document, VirtualMachinePool)
    running = [instance(one.name, revision=one.labels[labels.POOL_REVISION], ready=one.name not in not_ready) for one in machines]
    found = snapshot_of(viewed, document, Everything(machines=machines, instances=running))
    return msgspec.structs.replace(found, revisions=tuple(msgspec.structs.replace(one, number=1, uid=one.name) for one in known))


def stored(revision: Revision, number: int) -> Json:
    return revision_document(pool(), revision, number)

"""A pool, and the machine that it would make, written by hand."""

from typing import Any

import msgspec

from bench.objects import NAMESPACE

GROUP = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}"
MACHINES, INSTANCES, POOLS = (f"{GROUP}/virtualmachine{ending}" for ending in ("s", "instances", "pools"))


def machine(name: str, annotations: dict[str, str]) -> bytes:
    document = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": _spec(annotations, 1)}
    return msgspec.json.encode(document)


def pool(
    name: str, replicas: int, annotations: dict[str, str], *, cores: int = 1, running: bool = True, most: int | str = "25%"
) -> bytes:
    document = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "maxUnavailable": most, "template": {"spec": _spec(annotations, cores, running)}},
    }
    return msgspec.json.encode(document)


def cores_patch(cores: int, most: int | str) -> bytes:
    inner = {"spec": {"domain": {"cpu": {"cores": cores}}}}
    return msgspec.json.encode({"spec": {"maxUnavailable": most, "template": {"spec": {"template": inner}}}})


def _spec(annotations: dict[str, str], cores: int, running: bool = True) -> dict[str, Any]:
    domain = {"memory": {"guest": "64Mi"}, "cpu": {"cores": cores}}
    inner = {"metadata": {"annotations": annotations}, "spec": {"domain": domain, "terminationGracePeriodSeconds": 0}}
    return {"runStrategy": "Always" if running else "Halted", "template": inner}

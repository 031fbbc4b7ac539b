"""Which pod a machine's guest runs in."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.cli.asking import Refusal
from herder.kube.client import Client, Selection
from herder.kube.resources import INSTANCES, MACHINES, PODS, Key

CONTAINER = "compute"


async def pod_of(client: Client, key: Key) -> Pod:
    """That of the instance, ended ones too. An instance without a machine has one as well."""
    instance = await client.find(INSTANCES, key)
    if instance is None:
        await client.get(MACHINES, key)
        raise Refusal(f"VirtualMachine {key.name} does not run; `herder start {key.name}` starts it")
    pods = await pods_of(client, instance)
    if not pods:
        why = instance.status.message if instance.status and instance.status.message else "it is about to be made"
        raise Refusal(f"VirtualMachineInstance {key.name} has no pod yet: {why}")
    named = instance.status.launcher_pod_name if instance.status else None
    return next((pod for pod in pods if pod.name == named), pods[-1])


async def pods_of(client: Client, instance: VirtualMachineInstance) -> list[Pod]:
    return (await client.list(PODS, Selection(instance.namespace, labels=f"{labels.CREATED_BY}={instance.uid}"))).items

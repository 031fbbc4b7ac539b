"""Nodes, the namespaces that objects live in, and the leases by which nodes and leaders show that they are alive."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Object
from herder.api.core.containers import ResourceList
from herder.api.views import MicroTime, Time, View


class Taint(View, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(View, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")
    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = field(default=(), name="podCIDRs")


class NodeCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(View, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class NodeSystemInfo(View, frozen=True, kw_only=True):
    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class ContainerImage(View, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class AttachedVolume(View, frozen=True, kw_only=True):
    name: str = ""
    device_path: str = ""


class NodeStatus(View, frozen=True, kw_only=True):
    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceSpec(View, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class NamespaceCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(Object, frozen=True, kw_only=True):
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class LeaseSpec(View, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()

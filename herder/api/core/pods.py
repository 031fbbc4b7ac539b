"""Pods: what is to run, where it may run, and how it fares."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Named, Object
from herder.api.core.containers import Container, ContainerStatus, EphemeralContainer, ResourceList, ResourceRequirements
from herder.api.core.volumes import Volume
from herder.api.meta import Affinity, ObjectMeta, Toleration, TopologySpreadConstraint
from herder.api.views import Time, View


class PodReadinessGate(View, frozen=True, kw_only=True):
    condition_type: str = ""


class PodSchedulingGate(View, frozen=True, kw_only=True):
    name: str = ""


class PodOS(View, frozen=True, kw_only=True):
    name: str = ""


class PodResourceClaim(View, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSecurityContext(View, frozen=True, kw_only=True):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()


class HostAlias(View, frozen=True, kw_only=True):
    ip: str = ""
    hostnames: tuple[str, ...] = ()


class PodDNSConfigOption(View, frozen=True, kw_only=True):
    name: str = ""
    value: str | None = None


class PodDNSConfig(View, frozen=True, kw_only=True):
    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()


class PodSpec(View, frozen=True, kw_only=True):
    containers: tuple[Container, ...] | None = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    overhead: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    runtime_class_name: str | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    service_account: str = ""  # its old name, always the same
    automount_service_account_token: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[Named, ...] = ()
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    host_users: bool | None = None
    hostname: str = ""
    subdomain: str = ""
    dns_policy: str = ""
    dns_config: PodDNSConfig | None = None
    host_aliases: tuple[HostAlias, ...] = ()
    enable_service_links: bool | None = None
    share_process_namespace: bool | None = None
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None


class PodCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = "Unknown"
    observed_generation: int | None = None
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodIP(View, frozen=True, kw_only=True):
    ip: str = ""


class PodStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    start_time: Time | None = None
    qos_class: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    allocated_resources: ResourceList = field(default_factory=dict)


class Pod(Object, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(View, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()

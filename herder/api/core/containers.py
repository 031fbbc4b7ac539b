"""Containers of a pod: what they ask for, how they are probed, and how they fare."""

from __future__ import annotations

from msgspec import field

from herder.api.views import IntOrName, Quantity, Time, View

ResourceList = dict[str, Quantity]


class ResourceClaim(View, frozen=True, kw_only=True):
    name: str = ""
    request: str = ""


class ResourceRequirements(View, frozen=True, kw_only=True):
    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerPort(View, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    name: str = ""
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class KeySelector(View, frozen=True, kw_only=True):
    name: str = ""
    key: str = ""
    optional: bool | None = None


class FieldSelector(View, frozen=True, kw_only=True):
    field_path: str = ""
    api_version: str = "v1"


class ResourceFieldSelector(View, frozen=True, kw_only=True):
    resource: str = ""
    container_name: str = ""
    divisor: Quantity | None = None


class EnvVarSource(View, frozen=True, kw_only=True):
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None


class EnvVar(View, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class EnvFromTarget(View, frozen=True, kw_only=True):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(View, frozen=True, kw_only=True):
    prefix: str = ""
    config_map_ref: EnvFromTarget | None = None
    secret_ref: EnvFromTarget | None = None


class VolumeMount(View, frozen=True, kw_only=True):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    mount_propagation: str | None = None


class VolumeDevice(View, frozen=True, kw_only=True):
    name: str = ""
    device_path: str = ""


class ExecAction(View, frozen=True, kw_only=True):
    command: tuple[str, ...] = ()


class HTTPHeader(View, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class HTTPGetAction(View, frozen=True, kw_only=True):
    port: IntOrName = 0
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPSocketAction(View, frozen=True, kw_only=True):
    port: IntOrName = 0
    host: str = ""


class GRPCAction(View, frozen=True, kw_only=True):
    port: int = 0
    service: str = ""


class SleepAction(View, frozen=True, kw_only=True):
    seconds: int = 0


class Probe(View, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(View, frozen=True, kw_only=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(View, frozen=True, kw_only=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class Capabilities(View, frozen=True, kw_only=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(View, frozen=True, kw_only=True):
    privileged: bool | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None


class Container(View, frozen=True, kw_only=True):
    """A container or an init container."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container, frozen=True, kw_only=True):
    """A container added to a running pod, to look into another one."""

    target_container_name: str = ""


class ContainerStateWaiting(View, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(View, frozen=True, kw_only=True):
    started_at: Time | None = None


class ContainerStateTerminated(View, frozen=True, kw_only=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(View, frozen=True, kw_only=True):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(View, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resources: ResourceRequirements | None = None

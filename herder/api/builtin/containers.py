"""Rules for the containers of a pod."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from herder.api import names
from herder.api.builtin.environment import check_environment
from herder.api.builtin.handlers import check_port_number, check_probes
from herder.api.builtin.resources import check_requirements
from herder.api.builtin.semantics import Document, Problems, refuse_names
from herder.api.problems import duplicate, forbidden, invalid, not_found, not_supported, required

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"


class Surroundings:
    """What the containers of one pod refer to."""

    __slots__ = ("claims", "grace", "volumes")

    def __init__(self, volumes: Collection[str], claims: frozenset[str], grace: int | None) -> None:
        self.volumes = volumes
        self.claims = claims
        self.grace = grace


def check_containers(containers: Sequence[Document], around: Surroundings, field: str, out: Problems) -> None:
    if not containers:
        out.append(required(field))
        return
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{field}[{index}]"
        check_container(container, around, here, out)
        name = container.get("name", "")
        if name in seen:
            out.append(duplicate(f"{here}.name", name))
        seen.add(name)
        check_probes(container, here, out, around.grace)
        _check_restart_policy(container, here, out)
    _check_host_ports(containers, field, out)


def check_init_containers(
    containers: Sequence[Document], regular: Sequence[Document], around: Surroundings, field: str, out: Problems
) -> None:
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        here = f"{field}[{index}]"
        check_container(container, around, here, out)
        _check_restart_policy(container, here, out)
        name = container.get("name", "")
        if name in seen:
            out.append(duplicate(f"{here}.name", name))
        elif name:
            seen.add(name)
        _check_host_ports([container], field, out)
        if container.get("restartPolicy") == "Always":
            check_probes(container, here, out, around.grace)
            continue
        for forbidden_field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(forbidden_field) is not None:
                out.append(forbidden(f"{here}.{forbidden_field}", _ONLY_SIDECARS))


def check_container(container: Document, around: Surroundings, field: str, out: Problems) -> None:
    """What holds for every container of a pod."""
    get = container.get
    if not get("name"):
        out.append(required(f"{field}.name"))
    else:
        refuse_names(names.dns_label(get("name", "")), f"{field}.name", get("name", ""), out)
    if not get("image"):
        out.append(required(f"{field}.image"))
    _check_choice(get("terminationMessagePolicy"), _MESSAGE_POLICIES, f"{field}.terminationMessagePolicy", out)
    if get("ports"):
        _check_ports(container["ports"], f"{field}.ports", out)
    if get("env") or get("envFrom"):
        check_environment(container, field, out)
    if get("volumeMounts") or get("volumeDevices"):
        _check_mounts(container, around.volumes, field, out)
    _check_choice(get("imagePullPolicy"), _PULL_POLICIES, f"{field}.imagePullPolicy", out)
    if get("resources"):
        check_requirements(container["resources"], f"{field}.resources", out, around.claims)
    if get("securityContext"):
        _check_security(container["securityContext"], f"{field}.securityContext", out)


def _check_choice(value: Any, choices: tuple[str, ...], field: str, out: Problems) -> None:
    if not value:
        out.append(required(field))
    elif value not in choices:
        out.append(not_supported(field, value, choices))


def _check_restart_policy(container: Document, field: str, out: Problems) -> None:
    policy = container.get("restartPolicy")
    if policy is not None and policy not in _RESTART_POLICIES:
        out.append(not_supported(f"{field}.restartPolicy", policy, _RESTART_POLICIES))
    elif policy is None and container.get("restartPolicyRules"):
        out.append(required(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used"))


def _check_ports(ports: Sequence[Document], field: str, out: Problems) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{field}[{index}]"
        name = port.get("name")
        if name:
            complaints = names.port_name(name)
            refuse_names(complaints, f"{here}.name", name, out)
            if not complaints and name in seen:
                out.append(duplicate(f"{here}.name", name))
            seen.add(name)
        if not port.get("containerPort"):
            out.append(required(f"{here}.containerPort"))
        else:
            check_port_number(port["containerPort"], f"{here}.containerPort", out)
        if port.get("hostPort"):
            check_port_number(port["hostPort"], f"{here}.hostPort", out)
        _check_choice(port.get("protocol"), PROTOCOLS, f"{here}.protocol", out)


def _check_host_ports(containers: Sequence[Document], field: str, out: Problems) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if used in taken:
                out.append(duplicate(f"{field}[{index}].ports[{at}].hostPort", used))
            taken.add(used)


def _check_mounts(container: Document, volumes: Collection[str], field: str, out: Problems) -> None:
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices") or ()}
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here = f"{field}.volumeMounts[{index}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            out.append(required(f"{here}.name"))
        if name not in volumes:
            out.append(not_found(f"{here}.name", name))
        if not path:
            out.append(required(f"{here}.mountPath"))
        if path in paths:
            out.append(invalid(f"{here}.mountPath", path, "must be unique"))
        paths.add(path)
        if name in devices:
            out.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        _check_sub_path(mount, f"{field}.volumeMounts", here, out)
    mounted = {mount.get("name", "") for mount in container.get("volumeMounts") or ()}
    for index, device in enumerate(container.get("volumeDevices") or ()):
        _check_device(device, mounted, volumes, f"{field}.volumeDevices[{index}]", out)


def _check_sub_path(mount: Document, field: str, here: str, out: Problems) -> None:
    for name in ("subPath", "subPathExpr"):
        path = mount.get(name)
        if not path:
            continue
        if path.startswith("/"):
            out.append(invalid(f"{field}.{name}", path, "must be a relative path"))
        check_no_back_steps(path, f"{field}.{name}", out)
    if mount.get("subPath") and mount.get("subPathExpr"):
        out.append(invalid(f"{here}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"))


def check_no_back_steps(path: str, field: str, out: Problems) -> None:
    if ".." in path and ".." in path.split("/"):
        out.append(invalid(field, path, "must not contain '..'"))


def _check_device(device: Document, mounted: set[str], volumes: Collection[str], field: str, out: Problems) -> None:
    name, path = device.get("name", ""), device.get("devicePath", "")
    if not name:
        out.append(required(f"{field}.name"))
    if not path:
        out.append(required(f"{field}.devicePath"))
    else:
        check_no_back_steps(path, f"{field}.devicePath", out)
    if name not in volumes:
        out.append(not_found(f"{field}.name", name))
    if name in mounted:
        out.append(invalid(f"{field}.name", name, "must not already exist in volumeMounts"))


def _check_security(context: Document, field: str, out: Problems) -> None:
    for name in ("runAsUser", "runAsGroup"):
        number = context.get(name)
        if number is not None and not 0 <= number <= 2147483647:
            out.append(invalid(f"{field}.{name}", number, "must be between 0 and 2147483647, inclusive"))
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        out.append(invalid(field, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))

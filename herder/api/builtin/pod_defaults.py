"""What Kubernetes fills in when a pod, or a template of one, leaves it out."""

from __future__ import annotations

import re
from typing import Any, Final

from herder.api.builtin.pod_level import default_pod_resources
from herder.api.builtin.semantics import Document

_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH: Final = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_LONGEST_IMAGE: Final = 247  # 255 with the host that is put before a bare name
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?(?P<name>{_PATH}(?:/{_PATH})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)


def default_pod(pod: Document) -> None:
    """A pod itself. Two defaults are not for templates: requests from limits, and service links."""
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            _host_ports(container)
    if spec.get("resources"):
        default_pod_resources(spec)
    spec.setdefault("enableServiceLinks", True)


def default_template(template: Document) -> None:
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: Document) -> None:
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    spec.setdefault("securityContext", {})
    if spec.setdefault("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _same_service_account(spec)
    for volume in spec.get("volumes", ()):
        _default_volume(volume)
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name, ()):
            _default_container(container)


def _same_service_account(spec: Document) -> None:
    """The old name of the field is still written beside the new one."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _default_container(container: Document) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    container.setdefault("resources", {})
    for port in container.get("ports", ()):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env", ()):
        _default_source(variable.get("valueFrom") or {})
    for name in _PROBES:
        if container.get(name) is not None:
            _default_probe(container[name])
    lifecycle: dict[str, Any] = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        hook: dict[str, Any] = lifecycle.get(name) or {}
        _default_http(hook.get("httpGet"))
        if hook.get("sleep") is not None:
            hook["sleep"].setdefault("seconds", 0)


def pull_policy(image: str) -> str:
    """An image without a tag, or with the tag `latest`, is looked for each time."""
    parts = _IMAGE.fullmatch(image)
    if parts is None or len(parts["name"]) > _LONGEST_IMAGE:
        return "IfNotPresent"  # what cannot be the name of an image has no tag
    tag = parts["tag"] or ("" if parts["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_source(source: Document) -> None:
    """Where a variable or a file takes its value from."""
    field = source.get("fieldRef")
    if field is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    resource = source.get("resourceFieldRef")
    if resource is not None:
        resource.setdefault("divisor", "0")


def _default_probe(probe: Document) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value
    _default_http(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if grpc is not None:
        grpc.setdefault("service", "")


def _default_http(http: Document | None) -> None:
    if http is None:
        return
    if not http.get("path"):
        http["path"] = "/"
    if not http.get("scheme"):
        http["scheme"] = "HTTP"


def _requests_from_limits(resources: Document) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _host_ports(container: Document) -> None:
    for port in container.get("ports", ()):
        if not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)


def _default_volume(volume: Document) -> None:
    if not any(value is not None for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
        return
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if source is not None:
            source.setdefault("defaultMode", _FILE_MODE)
            _default_files(source)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    template: dict[str, Any] | None = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_files(source: Document) -> None:
    for item in source.get("items", ()):
        _default_source(item)
    for projection in source.get("sources") or ():
        token = projection.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
        for item in (projection.get("downwardAPI") or {}).get("items", ()):
            _default_source(item)

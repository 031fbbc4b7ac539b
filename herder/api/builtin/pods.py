"""Rules for pods, and for the templates of pods."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.containers import Surroundings, check_containers, check_init_containers
from herder.api.builtin.objectmeta import check_annotations, validate_meta
from herder.api.builtin.placement import check_affinity, check_spreading, check_tolerations
from herder.api.builtin.resources import check_requirements
from herder.api.builtin.semantics import Document, Problems, refuse_names
from herder.api.builtin.volumes import check_volumes
from herder.api.problems import duplicate, forbidden, invalid, not_supported, required
from herder.api.selectors import validate_labels

_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_INT32: Final = 2147483647
_NO_CLAIMS: Final[frozenset[str]] = frozenset()


def validate_pod(pod: Document, out: Problems) -> None:
    spec = pod.get("spec") or {}
    meta = pod.get("metadata") or {}
    validate_meta(meta, True, names.name_is_subdomain, out)
    check_pod_spec(spec, meta.get("name") or "", "spec", out)
    if not spec.get("serviceAccountName"):
        _refuse_tokens_without_account(spec, out)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                out.append(invalid(f"spec.{name}[{index}].image", image, detail))


def validate_pod_create(pod: Document, out: Problems) -> None:
    validate_pod(pod, out)
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        out.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        out.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))


def check_template(template: Document, field: str, out: Problems) -> None:
    meta = template.get("metadata") or {}
    out += validate_labels(meta.get("labels"), f"{field}.labels")
    check_annotations(meta.get("annotations") or {}, f"{field}.annotations", out)
    spec = template.get("spec") or {}
    check_pod_spec(spec, "", f"{field}.spec", out)
    if spec.get("ephemeralContainers"):
        out.append(forbidden(f"{field}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))


def check_pod_spec(spec: Document, pod_name: str, field: str, out: Problems) -> None:
    get = spec.get
    grace = get("terminationGracePeriodSeconds")
    if grace is None:
        out.append(required(f"{field}.terminationGracePeriodSeconds"))
    volumes = check_volumes(get("volumes") or (), pod_name, f"{field}.volumes", out) if get("volumes") else frozenset[str]()
    claims = frozenset(claim.get("name", "") for claim in spec["resourceClaims"]) if get("resourceClaims") else _NO_CLAIMS
    around = Surroundings(volumes, claims, grace)
    containers = get("containers") or ()
    check_containers(containers, around, f"{field}.containers", out)
    if get("initContainers"):
        check_init_containers(spec["initContainers"], containers, around, f"{field}.initContainers", out)
    if get("resources"):
        check_requirements(spec["resources"], f"{field}.resources", out, claims)
    if get("hostNetwork"):
        _check_host_network(spec, field, out)
    _check_choice(get("restartPolicy"), _RESTART, f"{field}.restartPolicy", out)
    _check_choice(get("dnsPolicy"), _DNS, f"{field}.dnsPolicy", out)
    _check_placement(spec, field, out)
    _check_names(spec, field, out)
    _check_rest(spec, field, out)


def _check_choice(value: str | None, choices: tuple[str, ...], field: str, out: Problems) -> None:
    if not value:
        out.append(required(field))
    elif value not in choices:
        out.append(not_supported(field, value, choices))


def _check_placement(spec: Document, field: str, out: Problems) -> None:
    get = spec.get
    if get("nodeSelector"):
        out += validate_labels(spec["nodeSelector"], f"{field}.nodeSelector")
    if get("affinity"):
        check_affinity(spec["affinity"], f"{field}.affinity", out)
    if get("tolerations"):
        check_tolerations(spec["tolerations"], f"{field}.tolerations", out)
    if get("topologySpreadConstraints"):
        check_spreading(spec["topologySpreadConstraints"], f"{field}.topologySpreadConstraints", out)
    seen: set[str] = set()
    for index, gate in enumerate(get("schedulingGates") or ()):
        name = gate.get("name", "")
        refuse_names(names.qualified_name(name), f"{field}.schedulingGates[{index}]", name, out)
        if name in seen:
            out.append(duplicate(f"{field}.schedulingGates[{index}]", name))
        seen.add(name)
    for index, gate in enumerate(get("readinessGates") or ()):
        name = gate.get("conditionType", "")
        refuse_names(names.qualified_name(name), f"{field}.readinessGates[{index}].conditionType", name, out)


def _check_names(spec: Document, field: str, out: Problems) -> None:
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        value = spec.get(name)
        if value:
            refuse_names(names.dns_subdomain(value), f"{field}.{name}", value, out)
    for name in ("hostname", "subdomain"):
        value = spec.get(name)
        if value:
            refuse_names(names.dns_label(value), f"{field}.{name}", value, out)


def _check_rest(spec: Document, field: str, out: Problems) -> None:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        out.append(invalid(f"{field}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MAX_INT32}, inclusive"))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        check_preemption_policy(policy, f"{field}.preemptionPolicy", out)
    if spec.get("overhead"):
        check_requirements({"limits": spec["overhead"]}, f"{field}.overhead", out)
    system = spec.get("os")
    if system is not None and system.get("name") not in ("linux", "windows"):
        named = system.get("name", "")
        out.append(not_supported(f"{field}.os", named, ("linux", "windows")) if named else required(f"{field}.os.name"))


def check_preemption_policy(policy: str, field: str, out: Problems) -> None:
    if policy == "":
        out.append(required(field))
    elif policy not in ("PreemptLowerPriority", "Never"):
        out.append(not_supported(field, policy, ("PreemptLowerPriority", "Never")))


def _check_host_network(spec: Document, field: str, out: Problems) -> None:
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            for at, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort") != port.get("containerPort"):
                    here = f"{field}.{name}[{index}].ports[{at}].hostPort"
                    out.append(invalid(here, port.get("hostPort") or 0, "must match `containerPort` when `hostNetwork` is true"))


def _refuse_tokens_without_account(spec: Document, out: Problems) -> None:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                here = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                out.append(forbidden(here, "must not be specified when serviceAccountName is not set"))

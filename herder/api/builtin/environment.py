"""Rules for environment variables and where their values come from."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.semantics import Document, Problems, refuse_names
from herder.api.problems import invalid, not_supported, required

_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_VOLUME_FIELDS: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_RESOURCE_FIELDS: Final = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_KNOWN_FIELDS: Final = frozenset((*_ENV_FIELDS, *_VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"))
_ONE_OF: Final = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"


def check_environment(container: Document, field: str, out: Problems) -> None:
    for index, variable in enumerate(container.get("env") or ()):
        here = f"{field}.env[{index}]"
        name = variable.get("name")
        if not name:
            out.append(required(f"{here}.name"))
        else:
            refuse_names(names.environment_name(name), f"{here}.name", name, out)
        if variable.get("valueFrom") is not None:
            _check_source(variable, f"{here}.valueFrom", out)
    for index, source in enumerate(container.get("envFrom") or ()):
        _check_bulk_source(source, f"{field}.envFrom", index, out)


def _check_source(variable: Document, field: str, out: Problems) -> None:
    source: Document = variable["valueFrom"]
    chosen = [name for name in _SOURCES if source.get(name) is not None]
    for name in chosen:
        part, here = source[name], f"{field}.{name}"
        if name == "fieldRef":
            check_field_reference(part, _ENV_FIELDS, here, out)
        elif name == "resourceFieldRef":
            check_resource_reference(part, here, out)
        elif name != "fileKeyRef":
            _check_key_reference(part, here, out)
    if not chosen:
        out.append(invalid(field, "", _ONE_OF))
    elif variable.get("value"):
        out.append(invalid(field, "", "may not be specified when `value` is not empty"))
    elif len(chosen) > 1:
        out.append(invalid(field, "", "may not have more than one field specified at a time"))


def check_volume_field(reference: Document, field: str, out: Problems) -> None:
    check_field_reference(reference, _VOLUME_FIELDS, field, out)


def check_field_reference(reference: Document, allowed: tuple[str, ...], field: str, out: Problems) -> None:
    if not reference.get("apiVersion"):
        out.append(required(f"{field}.apiVersion"))
        return
    path: str = reference.get("fieldPath") or ""
    if not path:
        out.append(required(f"{field}.fieldPath"))
        return
    base, bracket, rest = path.partition("['")
    if bracket and rest.endswith("']"):
        _check_subscript(base, rest[:-2], path, field, out)
    elif path not in _KNOWN_FIELDS or reference["apiVersion"] != "v1":
        version = reference["apiVersion"]
        detail = f"field label not supported: {path}" if version == "v1" else f"unsupported pod version: {version}"
        out.append(invalid(f"{field}.fieldPath", path, f"error converting fieldPath: {detail}"))
    elif path not in allowed:
        out.append(not_supported(f"{field}.fieldPath", path, sorted(allowed)))


def _check_subscript(base: str, key: str, path: str, field: str, out: Problems) -> None:
    if base == "metadata.annotations":
        refuse_names(names.qualified_name(key.lower()), field, key.lower(), out)
    elif base == "metadata.labels":
        refuse_names(names.qualified_name(key), field, key, out)
    else:
        out.append(invalid(f"{field}.fieldPath", path, "error converting fieldPath: field label does not support subscript"))


def check_resource_reference(reference: Document, field: str, out: Problems, in_volume: bool = False) -> None:
    resource: str = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        out.append(required(f"{field}.containerName"))
    elif not resource:
        out.append(required(f"{field}.resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(("requests.hugepages-", "limits.hugepages-")):
        out.append(not_supported(f"{field}.resource", resource, _RESOURCE_FIELDS))


def _check_key_reference(reference: Document, field: str, out: Problems) -> None:
    name, key = reference.get("name", ""), reference.get("key")
    refuse_names(names.dns_subdomain(name), f"{field}.name", name, out)
    if not key:
        out.append(required(f"{field}.key"))
    else:
        refuse_names(names.config_key(key), f"{field}.key", key, out)


def _check_bulk_source(source: Document, field: str, index: int, out: Problems) -> None:
    here = f"{field}[{index}]"
    if source.get("prefix"):
        refuse_names(names.environment_name(source["prefix"]), f"{here}.prefix", source["prefix"], out)
    chosen = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    for name in chosen:
        called = source[name].get("name", "")
        if not called:
            out.append(required(f"{here}.{name}.name"))
        else:
            refuse_names(names.dns_subdomain(called), f"{here}.{name}.name", called, out)
    if not chosen:
        out.append(invalid(field, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(chosen) > 1:
        out.append(invalid(field, "", "may not have more than one field specified at a time"))

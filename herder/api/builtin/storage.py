"""Rules for claims, volumes and storage classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.placement import check_node_selector
from herder.api.builtin.resources import check_positive, quantity_of
from herder.api.builtin.semantics import Document, Problems, changed_names, refuse_change, refuse_names, same, section
from herder.api.problems import forbidden, invalid, not_supported, required, too_long
from herder.api.selectors import validate_label_selector

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_LATE: Final = {"nfs": 1, "local": 2, "csi": 3}  # of two sources the one that comes first in Kubernetes' list counts
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_NOT_SOURCES: Final = frozenset(
    (
        *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions"),
        *("volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    )
)


def validate_claim(claim: Document, out: Problems) -> None:
    validate_meta(section(claim, "metadata"), True, names.name_is_subdomain, out)
    check_claim_spec(section(claim, "spec"), "spec", out)


def check_claim_spec(spec: Document, field: str, out: Problems) -> None:
    _check_access_modes(spec.get("accessModes") or (), f"{field}.accessModes", "at least 1 access mode is required", out)
    out += validate_label_selector(spec.get("selector"), f"{field}.selector")
    requests = section(section(spec, "resources"), "requests")
    if "storage" not in requests:
        out.append(required(f"{field}.resources[storage]"))
    else:
        check_positive(requests["storage"], f"{field}.resources[storage]", out)
    _check_class(spec.get("storageClassName"), f"{field}.storageClassName", out)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in _VOLUME_MODES:
        out.append(not_supported(f"{field}.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    for name in ("dataSource", "dataSourceRef"):
        if spec.get(name) is not None:
            _check_data_source(spec[name], f"{field}.{name}", out)
    _check_class(spec.get("volumeAttributesClassName"), f"{field}.volumeAttributesClassName", out)


def _check_access_modes(modes: Sequence[str], field: str, missing: str, out: Problems) -> None:
    if not modes:
        out.append(required(field, missing))
    for mode in modes:
        if mode not in _ACCESS_MODES:
            out.append(not_supported(field, mode, _ACCESS_MODES))
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        out.append(forbidden(field, "may not use ReadWriteOncePod with other access modes"))


def _check_class(name: str | None, field: str, out: Problems) -> None:
    if name:
        refuse_names(names.dns_subdomain(name), field, name, out)


def _check_data_source(source: Document, field: str, out: Problems) -> None:
    for name in ("name", "kind"):
        if not source.get(name):
            out.append(required(f"{field}.{name}"))
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        out.append(invalid(field, source.get("kind", ""), "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    elif group:
        refuse_names(names.dns_subdomain(group), f"{field}.apiGroup", group, out)


def validate_claim_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_claim(new, out)
    spec, before = dict(section(new, "spec")), dict(section(old, "spec"))
    if not before.get("volumeName"):
        before["volumeName"] = spec.get("volumeName")
    if before.get("storageClassName") is None:
        before["storageClassName"] = spec.get("storageClassName")  # a class may be given late, by the default
    if section(new, "status").get("phase") == "Bound":
        spec = _with_old_size(spec, before)
        spec["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    changed = changed_names(spec, before)
    if changed:
        words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        out.append(forbidden("spec", f"{words}\nchanged: {', '.join(f'spec.{name}' for name in changed)}"))
    _check_not_smaller(new, old, out)
    refuse_change(section(new, "spec").get("volumeMode"), before.get("volumeMode"), "volumeMode", out)


def _with_old_size(spec: Document, before: Document) -> Document:
    resources = dict(section(spec, "resources"))
    requests = dict(section(resources, "requests"))
    requests["storage"] = section(section(before, "resources"), "requests").get("storage")
    return {**spec, "resources": {**resources, "requests": requests}}


def _check_not_smaller(new: Document, old: Document, out: Problems) -> None:
    field = "spec.resources.requests.storage"
    sizes = [section(section(section(one, "spec"), "resources"), "requests").get("storage", 0) for one in (new, old)]
    size, before = (quantity_of(one, field, out) for one in sizes)
    given = quantity_of(section(section(old, "status"), "capacity").get("storage", 0), "status.capacity", out)
    if size < before and size <= given:
        out.append(forbidden(field, "field can not be less than status.capacity"))


def validate_volume(volume: Document, out: Problems) -> None:
    validate_meta(section(volume, "metadata"), False, names.name_is_subdomain, out)
    spec = section(volume, "spec")
    _check_access_modes(spec.get("accessModes") or (), "spec.accessModes", "", out)
    capacity = section(spec, "capacity")
    if not capacity:
        out.append(required("spec.capacity"))
    if list(capacity) != ["storage"]:
        out.append(not_supported("spec.capacity", spec.get("capacity"), ("storage",)))
    for resource, value in capacity.items():
        amount = check_positive(value, f"spec.capacity[{resource}]", out)
        if amount.nanos < 0:
            out.append(invalid(f"spec.capacity[{resource}]", amount.value(), "must be a valid resource quantity"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM:
        out.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            out.append(required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            check_node_selector(affinity["required"], "spec.nodeAffinity.required", out)
    _check_volume_source(spec, out)
    _check_class(spec.get("storageClassName"), "spec.storageClassName", out)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in _VOLUME_MODES:
        out.append(not_supported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES))


def _sources(spec: Document) -> Document:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES and value is not None}


def _check_volume_source(spec: Document, out: Problems) -> None:
    chosen = sorted(_sources(spec), key=lambda name: _LATE.get(name, 0))
    if not chosen:
        out.append(required("spec", "must specify a volume type"))
    for name in chosen[1:]:
        out.append(forbidden(f"spec.{name}", "may not specify more than 1 volume type"))
    for name in ("hostPath", "local"):
        if name in chosen[:1]:
            path: str = spec[name].get("path") or ""
            if not path:
                out.append(required(f"spec.{name}.path"))
            elif ".." in path.split("/"):
                out.append(invalid(f"spec.{name}.path", path, "must not contain '..'"))
    if "local" in chosen[:1] and spec.get("nodeAffinity") is None:
        out.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    if "csi" in chosen[:1]:
        for name in ("driver", "volumeHandle"):
            if not spec["csi"].get(name):
                out.append(required(f"spec.csi.{name}"))


def validate_volume_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_volume(new, out)
    spec, before = section(new, "spec"), section(old, "spec")
    if not same(_sources(spec), _sources(before)):
        out.append(forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"))
    refuse_change(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode", out)
    if before.get("nodeAffinity") is not None and not same(spec.get("nodeAffinity"), before["nodeAffinity"]):
        words = "field is immutable, except for updating from beta label to GA"
        out.append(invalid("nodeAffinity", spec.get("nodeAffinity"), words))


def validate_storage_class(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), False, names.name_is_subdomain, out)
    provisioner = obj.get("provisioner") or ""
    if not provisioner:
        out.append(required("provisioner"))
    else:
        refuse_names(names.qualified_name(provisioner.lower()), "provisioner", provisioner.lower(), out)
    _check_parameters(section(obj, "parameters"), out)
    for name, choices in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", _BINDING)):
        value = obj.get(name)
        if value not in choices:
            out.append(not_supported(name, value, choices) if value is not None else required(name))


def _check_parameters(parameters: Document, out: Problems) -> None:
    if len(parameters) > 512:
        out.append(too_long("parameters", 512))
        return
    if "" in parameters:
        out.append(invalid("parameters", "", "field can not be empty."))
    if sum(names.length(key) + names.length(value) for key, value in parameters.items()) > 256 * 1024:
        out.append(too_long("parameters", 256 * 1024))


def validate_storage_class_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_storage_class(new, out)
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        refuse_change(new.get(name), old.get(name), name, out)

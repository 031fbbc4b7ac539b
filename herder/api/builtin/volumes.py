"""Rules for the volumes of a pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from herder.api import names
from herder.api.builtin.containers import check_no_back_steps
from herder.api.builtin.environment import check_resource_reference, check_volume_field
from herder.api.builtin.resources import quantity_of
from herder.api.builtin.semantics import Document, Problems, refuse_names
from herder.api.builtin.storage import check_claim_spec
from herder.api.problems import duplicate, forbidden, invalid, not_supported, required

_Check = Callable[[Document, str, Problems], None]
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
# Of two sources the one that comes first in Kubernetes' list counts.
_ORDER: Final = (
    *("emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected"),
    *("csi", "ephemeral", "image"),
)
_PATH_TYPES: Final = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def check_volumes(volumes: Sequence[Document], pod_name: str, field: str, out: Problems) -> set[str]:
    """Returns the names of the volumes that are right: only those can be mounted."""
    usable: set[str] = set()
    made_here = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and volume.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        here = f"{field}[{index}]"
        found: Problems = []
        _check_source(volume, pod_name, here, found)
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{here}.name"))
        else:
            refuse_names(names.dns_label(name), f"{here}.name", name, found)
        if name in usable:
            found.append(duplicate(f"{here}.name", name))
        if found:
            out += found
        else:
            usable.add(name)
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made_here:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            out.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return usable


def _check_source(volume: Document, pod_name: str, field: str, out: Problems) -> None:
    chosen = [name for name, value in volume.items() if name != "name" and value is not None]
    if len(chosen) > 1:
        chosen.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else 0)
    if not chosen:
        out.append(required(field, "must specify a volume type"))
        return
    for name in chosen[1:]:
        out.append(forbidden(f"{field}.{name}", "may not specify more than 1 volume type"))
    name = chosen[0]
    source, here = volume[name], f"{field}.{name}"
    check = _CHECKS.get(name)
    if check is not None:
        check(source, here, out)
    if name == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for complaint in names.dns_subdomain(claim):
            out.append(invalid(f"{field}.name", volume["name"], f'PVC name "{claim}": {complaint}'))


def _check_empty_dir(source: Document, field: str, out: Problems) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity_of(limit, f"{field}.sizeLimit", out).nanos < 0:
        out.append(forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def check_host_path(source: Document, field: str, out: Problems) -> None:
    if not source.get("path"):
        out.append(required(f"{field}.path"))
        return
    check_no_back_steps(source["path"], f"{field}.path", out)
    if source.get("type") is not None and source["type"] not in _PATH_TYPES:
        out.append(not_supported(f"{field}.type", source["type"], _PATH_TYPES))


def _check_named(name: str) -> _Check:
    def check(source: Document, field: str, out: Problems) -> None:
        if not source.get(name):
            out.append(required(f"{field}.{name}"))
        _check_mode(source.get("defaultMode"), f"{field}.defaultMode", out)
        for index, item in enumerate(source.get("items") or ()):
            _check_item(item, f"{field}.items[{index}]", out)

    return check


def _check_mode(mode: int | None, field: str, out: Problems) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        out.append(invalid(field, mode, _MODE))


def _check_item(item: Document, field: str, out: Problems) -> None:
    if not item.get("key"):
        out.append(required(f"{field}.key"))
    if not item.get("path"):
        out.append(required(f"{field}.path"))
    _check_local_path(item.get("path", ""), f"{field}.path", out)
    _check_mode(item.get("mode"), f"{field}.mode", out)


def _check_local_path(path: str, field: str, out: Problems) -> None:
    if path.startswith("/"):
        out.append(invalid(field, path, "must be a relative path"))
    check_no_back_steps(path, field, out)
    if path.startswith("..") and not path.startswith("../"):
        out.append(invalid(field, path, "must not start with '..'"))


def _check_downward(source: Document, field: str, out: Problems) -> None:
    _check_mode(source.get("defaultMode"), f"{field}.defaultMode", out)
    for item in source.get("items") or ():
        _check_downward_file(item, field, out)


def _check_downward_file(item: Document, field: str, out: Problems) -> None:
    if not item.get("path"):
        out.append(required(f"{field}.path"))
    _check_local_path(item.get("path", ""), f"{field}.path", out)
    if item.get("fieldRef") is not None:
        check_volume_field(item["fieldRef"], f"{field}.fieldRef", out)
        if item.get("resourceFieldRef") is not None:
            out.append(invalid(field, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
    elif item.get("resourceFieldRef") is not None:
        check_resource_reference(item["resourceFieldRef"], f"{field}.resourceFieldRef", out, in_volume=True)
    else:
        out.append(required(field, "one of fieldRef and resourceFieldRef is required"))
    _check_mode(item.get("mode"), f"{field}.mode", out)


def _check_projected(source: Document, field: str, out: Problems) -> None:
    _check_mode(source.get("defaultMode"), f"{field}.defaultMode", out)
    sources: Sequence[Document] = source.get("sources") or ()
    for index, projection in enumerate(sources):
        here = f"{field}.sources[{index}]"
        if sum(value is not None for value in projection.values()) > 1:
            out.append(forbidden(here, "may not specify more than 1 volume type per source"))
        for name in ("secret", "configMap"):
            if projection.get(name) is not None:
                _check_named("name")(projection[name], f"{here}.{name}", out)
        downward: Document = projection.get("downwardAPI") or {}
        for item in downward.get("items") or ():
            _check_downward_file(item, f"{here}.downwardAPI", out)
        if projection.get("serviceAccountToken") is not None:
            _check_token(projection["serviceAccountToken"], field, f"{here}.serviceAccountToken", out)


def _check_token(token: Document, field: str, here: str, out: Problems) -> None:
    seconds = token.get("expirationSeconds", 3600)
    if seconds < 600:
        out.append(invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 1 << 32:
        out.append(invalid(f"{here}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))
    if not token.get("path"):
        out.append(required(f"{field}.path"))
    else:
        _check_local_path(token["path"], f"{field}.path", out)


def _check_claim(source: Document, field: str, out: Problems) -> None:
    if not source.get("claimName"):
        out.append(required(f"{field}.claimName"))


def _check_ephemeral(source: Document, field: str, out: Problems) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        out.append(required(f"{field}.volumeClaimTemplate"))
    else:
        check_claim_spec(template.get("spec") or {}, f"{field}.volumeClaimTemplate.spec", out)


def check_nfs(source: Document, field: str, out: Problems) -> None:
    path: str = source.get("path") or ""
    if not source.get("server"):
        out.append(required(f"{field}.server"))
    if not path:
        out.append(required(f"{field}.path"))
    if not path.startswith("/"):
        out.append(invalid(f"{field}.path", path, "must be an absolute path"))


def _check_csi(source: Document, field: str, out: Problems) -> None:
    if not source.get("driver"):
        out.append(required(f"{field}.driver"))


_CHECKS: Final[dict[str, _Check]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": check_host_path,
    "secret": _check_named("secretName"),
    "configMap": _check_named("name"),
    "downwardAPI": _check_downward,
    "projected": _check_projected,
    "persistentVolumeClaim": _check_claim,
    "ephemeral": _check_ephemeral,
    "nfs": check_nfs,
    "csi": _check_csi,
}

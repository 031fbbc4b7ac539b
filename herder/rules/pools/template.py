"""What each machine of a pool gets from the template (seed 003: names, labels, storage, Secrets and ConfigMaps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api import labels, registry
from herder.api.kinds import VirtualMachinePool
from herder.api.quantity import parse_quantity
from herder.api.reading import entries, part, text
from herder.rules.plans import Document
from herder.rules.pools.member import RunField
from herder.rules.pools.naming import machine_name, with_postfix
from herder.rules.pools.revisions import Revision

# Where a volume may name a Secret or a ConfigMap: the path to the object that names it, and the field.
_SECRETS = (
    (("secret",), "secretName"),
    (("sysprep", "secret"), "name"),
    *(
        ((kind, field), "name")
        for kind in ("cloudInitNoCloud", "cloudInitConfigDrive")
        for field in ("secretRef", "networkDataSecretRef")
    ),
)
_CONFIG_MAPS = ((("configMap",), "name"), (("sysprep", "configMap"), "name"))
_DATA_VOLUMES = ((("dataVolume",), "name"), (("persistentVolumeClaim",), "claimName"))
# Where a DataVolume says how large it is.
_CLAIMS = ("pvc", "storage")
RUN_FIELDS = ("running", "runStrategy")

Rename = Callable[[str], str]


def machine_document(
    pool: VirtualMachinePool, revision: Revision, number: int, *, run: RunField | None = None, annotations: Document | None = None
) -> Document:
    """All that the pool says about the machine, for server-side apply. `run`: in place of what the template says."""
    metadata = part(revision.template, "metadata")
    marks = {labels.POOL_REVISION: revision.name}
    return {
        "metadata": {
            "name": machine_name(pool.name, number),
            "namespace": pool.namespace,
            "labels": {**part(metadata, "labels"), **marks},
            "annotations": {**part(metadata, "annotations"), **(annotations or {})},
            "ownerReferences": [owner_reference(pool)],
        },
        "spec": _spec(revision, number, run),
    }


def owner_reference(pool: VirtualMachinePool, *, controller: bool = True) -> Document:
    """`controller`: of its machines; of volumes that it merely keeps it is not."""
    mark = {"controller": True, "blockOwnerDeletion": True} if controller else {"blockOwnerDeletion": False}
    return {"apiVersion": registry.POOL.api_version, "kind": registry.POOL.kind, "name": pool.name, "uid": pool.uid, **mark}


def run_field(template: Document) -> RunField | None:
    spec = part(template, "spec")
    return next((RunField(name, spec[name]) for name in RUN_FIELDS if spec.get(name) is not None), None)


def is_off(run: RunField | None) -> bool:
    """Whether machines that say so are kept off."""
    return run is None or run.value is False or run.value == "Halted"


def in_words_of(own: RunField | None, wanted: RunField) -> RunField:
    """A machine may have `running` or `runStrategy`, not both, and a person may have chosen the other one: the same, in its words
    where they have one for it."""
    if own is None or own.name == wanted.name:
        return wanted
    if own.name == "runStrategy":
        return RunField("runStrategy", "Always" if wanted.value else "Halted")
    return RunField("running", wanted.value == "Always") if wanted.value in ("Always", "Halted") else wanted


def volume_names(template: Document) -> list[str]:
    """Of its dataVolumeTemplates, before any number."""
    return [name for one in entries(template, "spec", "dataVolumeTemplates") if (name := text(part(one, "metadata"), "name"))]


def _spec(revision: Revision, number: int, run: RunField | None) -> Document:
    spec = part(revision.template, "spec")
    said = run or run_field(revision.template)
    rest = {name: value for name, value in spec.items() if name not in RUN_FIELDS}
    inner = part(spec, "template")
    metadata = part(inner, "metadata")
    marked = {**metadata, "labels": {**part(metadata, "labels"), labels.POOL_REVISION: revision.name}}
    made = {**rest, "template": {**inner, "metadata": marked, "spec": _instance_spec(revision, number)}}
    if "dataVolumeTemplates" in spec:
        made["dataVolumeTemplates"] = [_renamed_template(one, number) for one in entries(spec, "dataVolumeTemplates")]
    return {**made, **({said.name: said.value} if said is not None else {})}


def _renamed_template(template: Document, number: int) -> Document:
    metadata = part(template, "metadata")
    return {**template, "metadata": {**metadata, "name": with_postfix(text(metadata, "name"), number)}}


def _instance_spec(revision: Revision, number: int) -> Document:
    spec = part(revision.template, "spec", "template", "spec")
    if "volumes" not in spec:
        return spec
    owned = frozenset(volume_names(revision.template))
    appended = _appended(number)
    renames: list[tuple[tuple[tuple[tuple[str, ...], str], ...], Rename]] = [
        # A claim that the template does not own is never renamed.
        (_DATA_VOLUMES, lambda name: appended(name) if name in owned else name)
    ]
    if revision.name_generation.get("appendPostfixToSecretReferences"):
        renames.append((_SECRETS, appended))
    if revision.name_generation.get("appendPostfixToConfigMapReferences"):
        renames.append((_CONFIG_MAPS, appended))
    return {**spec, "volumes": [_renamed_volume(volume, renames) for volume in entries(spec, "volumes")]}


def _appended(number: int) -> Rename:
    return lambda name: with_postfix(name, number)


def _renamed_volume(volume: Document, renames: list[tuple[tuple[tuple[tuple[str, ...], str], ...], Rename]]) -> Document:
    for places, rename in renames:
        for path, field in places:
            named = text(part(volume, *path), field)
            if named:
                volume = _replaced(volume, (*path, field), rename(named))
    return volume


def _replaced(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """A copy along the path, and nowhere else."""
    if len(path) == 1:
        return {**document, path[0]: value}
    return {**document, path[0]: _replaced(part(document, path[0]), path[1:], value)}


def volume_changes(before: Document, after: Document) -> tuple[str, ...]:
    """Names of dataVolumeTemplates that both have and whose content differs in more than a larger size."""
    old = {text(part(one, "metadata"), "name"): one for one in entries(before, "spec", "dataVolumeTemplates")}
    return tuple(
        name
        for one in entries(after, "spec", "dataVolumeTemplates")
        if (name := text(part(one, "metadata"), "name")) in old and not _is_grown(part(old[name], "spec"), part(one, "spec"))
    )


def _is_grown(before: Document, after: Document) -> bool:
    """Equal, or the same with more room."""
    grown = _size(after) is not None and (_size(before) or 0) <= (_size(after) or 0)
    return before == after or (grown and _without_size(before) == _without_size(after))


def _size(spec: Document) -> int | None:
    written = next((part(spec, kind, "resources", "requests").get("storage") for kind in _CLAIMS if kind in spec), None)
    try:
        return parse_quantity(written).value() if written is not None else None
    except (ValueError, TypeError):
        return None


def _without_size(spec: Document) -> Document:
    kind = next((one for one in _CLAIMS if one in spec), None)
    return spec if kind is None else _replaced(spec, (kind, "resources", "requests", "storage"), None)

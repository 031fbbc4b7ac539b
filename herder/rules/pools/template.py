"""What each machine of a pool gets from the template (seed 003: names, labels, storage, Secrets and ConfigMaps)."""

from __future__ import annotations

from typing import Any

from herder.api import labels, registry
from herder.api.kinds import VirtualMachinePool
from herder.api.quantity import parse_quantity
from herder.api.reading import entries, part, text
from herder.rules.plans import Document
from herder.rules.pools.member import RunField
from herder.rules.pools.naming import machine_name
from herder.rules.pools.references import instance_spec, renamed_template, replaced
from herder.rules.pools.revisions import Revision

# Where a DataVolume says how large it is.
_CLAIMS = ("pvc", "storage")
RUN_FIELDS = ("running", "runStrategy")


def machine_document(
    pool: VirtualMachinePool,
    revision: Revision,
    number: int,
    *,
    run: RunField | None = None,
    annotations: Document | None = None,
    standby: str = "",
    suspended: bool = False,
) -> Document:
    """All that the pool says about the machine, for server-side apply. `run`: in place of what the template says."""
    metadata = part(revision.template, "metadata")
    marks = {labels.POOL_REVISION: revision.name, **({labels.STANDBY: standby} if standby else {})}
    # A template that says it would have its machines counted as what they are not.
    given = {name: value for name, value in part(metadata, "labels").items() if name != labels.STANDBY}
    spec = _without_empty_lists(_spec(revision, number, run))
    return {
        "metadata": {
            "name": machine_name(pool.name, number),
            "namespace": pool.namespace,
            "labels": {**given, **marks},
            "annotations": {**part(metadata, "annotations"), **(annotations or {})},
            "ownerReferences": [owner_reference(pool)],
        },
        "spec": {**spec, "suspended": True} if suspended else spec,
    }


def _without_empty_lists(value: Any) -> Any:
    """They say as much as nothing. Applied once, those with keys would stay on the machine for good when the template drops them,
    as in Kubernetes, and ask for a restart. An empty map may mean everything, as that of a selector does."""
    if isinstance(value, dict):
        fields: Document = value
        return {name: _without_empty_lists(one) for name, one in fields.items() if one != []}
    return [_without_empty_lists(one) for one in value] if isinstance(value, list) else value


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


def same_run(one: RunField | None, other: RunField | None) -> bool:
    """Whatever their words: `running: true` is `runStrategy: Always`."""
    return _strategy(one) == _strategy(other)


def _strategy(run: RunField | None) -> bool | str:
    if run is None or run.name == "running":
        return "Always" if run is not None and run.value else "Halted"
    return run.value


def in_words_of(own: RunField | None, wanted: RunField) -> RunField:
    """A machine may have `running` or `runStrategy`, not both, and a person may have chosen the other one: the same, in its words
    where they have one for it."""
    if own is None or own.name == wanted.name:
        return wanted
    if own.name == "runStrategy":
        return RunField("runStrategy", "Always" if wanted.value else "Halted")
    return RunField("running", wanted.value == "Always") if wanted.value in ("Always", "Halted") else wanted


def _spec(revision: Revision, number: int, run: RunField | None) -> Document:
    spec = part(revision.template, "spec")
    said = run or run_field(revision.template)
    rest = {name: value for name, value in spec.items() if name not in RUN_FIELDS}
    inner = part(spec, "template")
    metadata = part(inner, "metadata")
    marked = {**metadata, "labels": {**part(metadata, "labels"), labels.POOL_REVISION: revision.name}}
    made = {
        **rest,
        "template": {**inner, "metadata": marked, "spec": instance_spec(revision.template, revision.name_generation, number)},
    }
    if "dataVolumeTemplates" in spec:
        made["dataVolumeTemplates"] = [renamed_template(one, number) for one in entries(spec, "dataVolumeTemplates")]
    return {**made, **({said.name: said.value} if said is not None else {})}


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
    return spec if kind is None else replaced(spec, (kind, "resources", "requests", "storage"), None)

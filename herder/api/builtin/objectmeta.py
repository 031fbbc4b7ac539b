"""Rules for metadata: names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from herder.api import names
from herder.api.builtin.semantics import Document, Problems, refuse_change, refuse_names, refuse_negative
from herder.api.problems import INVALID, MOST_SHOWN, Problem, forbidden, invalid, required, shown, too_long
from herder.api.selectors import validate_labels

MAX_ANNOTATIONS: Final = 256 * 1024
STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_FIXED_NAMES: Final = ("name", "namespace", "uid")
_FIXED: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_meta(
    meta: Document, namespaced: bool, rule: names.NameRule, out: Problems, field: str = "metadata", *, custom: bool = False
) -> None:
    """Metadata of a new object; its name has been generated already. Finalizers of a custom resource need no domain."""
    generate = meta.get("generateName")
    if generate:
        refuse_names(rule(generate, True), f"{field}.generateName", generate, out)
    name = meta.get("name")
    if not name:
        out.append(required(f"{field}.name", "name or generateName is required"))
    else:
        refuse_names(rule(name, False), f"{field}.name", name, out)
    _check_namespace(meta.get("namespace") or "", namespaced, field, out)
    refuse_negative(meta.get("generation"), f"{field}.generation", out)
    _check_common(meta, field, out)
    if meta.get("finalizers"):
        _check_finalizers(meta["finalizers"], f"{field}.finalizers", out, custom)


def validate_meta_update(new: Document, old: Document, out: Problems, field: str = "metadata", *, custom: bool = False) -> None:
    """What may not happen to metadata in an update."""
    if old.get("deletionTimestamp") is not None:
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{one}"' for one in added)
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
            out.append(forbidden(f"{field}.finalizers", f"{detail} []string{{{listed}}}"))
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        out.append(invalid(f"{field}.generation", generation, "must not be decremented"))
    for name in _FIXED_NAMES:
        refuse_change(new.get(name) or "", old.get(name) or "", f"{field}.{name}", out)
    for name in _FIXED:
        refuse_change(new.get(name), old.get(name), f"{field}.{name}", out)
    _check_common(new, field, out)
    if new.get("finalizers") and new["finalizers"] != old.get("finalizers"):
        _check_finalizers(new["finalizers"], f"{field}.finalizers", out, custom)


def _check_namespace(namespace: str, namespaced: bool, field: str, out: Problems) -> None:
    if not namespaced:
        if namespace:
            out.append(forbidden(f"{field}.namespace", "not allowed on this type"))
    elif not namespace:
        out.append(required(f"{field}.namespace"))
    else:
        refuse_names(names.dns_label(namespace), f"{field}.namespace", namespace, out)


def _check_common(meta: Document, field: str, out: Problems) -> None:
    if meta.get("labels"):
        out += validate_labels(meta["labels"], f"{field}.labels")
    if meta.get("annotations"):
        check_annotations(meta["annotations"], f"{field}.annotations", out)
    if meta.get("ownerReferences"):
        _check_owners(meta["ownerReferences"], f"{field}.ownerReferences", out)


def check_annotations(annotations: dict[str, str], field: str, out: Problems) -> None:
    size = 0
    for key, value in annotations.items():
        refuse_names(names.qualified_name(key.lower()), field, key, out)
        size += names.length(key) + names.length(value)
    if size > MAX_ANNOTATIONS:
        out.append(too_long(field, MAX_ANNOTATIONS))


def _check_owners(owners: Sequence[Document], field: str, out: Problems) -> None:
    controller = all_owners = ""
    for owner in owners:
        _check_owner(owner, field, out)
        if owner.get("controller") is not True:
            continue
        called = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller and len(out) > MOST_SHOWN:
            return  # nobody is told of more, and each tells of all of them
        if controller:
            both = f'Found "true" in references for {controller} and {called}'
            all_owners = all_owners or shown(owners)  # once: there may be thousands of them
            why = f"Only one reference can have Controller set to true. {both}"
            out.append(Problem(field, INVALID, f"Invalid value: {all_owners}: {why}"))
        else:
            controller = called


def _check_owner(owner: Document, field: str, out: Problems) -> None:
    api_version: str = owner.get("apiVersion") or ""
    version = api_version.rpartition("/")[2]
    if not version or api_version.count("/") > 1:
        out.append(invalid(f"{field}.apiVersion", api_version, "version must not be empty"))
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            out.append(invalid(f"{field}.{name}", owner.get(name) or "", "must not be empty"))
    if api_version == "v1" and owner.get("kind") == "Event":
        out.append(invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner"))


def _check_finalizers(finalizers: Sequence[Any], field: str, out: Problems, custom: bool) -> None:
    for number, finalizer in enumerate(finalizers):
        refuse_names(names.qualified_name(finalizer), field, finalizer, out)
        if not custom and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            out.append(
                invalid(f"{field}[{number}]", finalizer, "name is neither a standard finalizer name nor is it fully qualified")
            )
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        out.append(invalid(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))

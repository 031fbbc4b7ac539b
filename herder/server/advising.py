"""What a write is told beside its success: accepted, but probably not meant. Clients get it as warnings, kubectl prints it."""

from __future__ import annotations

from typing import Any

from herder.api.builtin.advice import advice_on_create, advice_on_update
from herder.api.names import qualified_name
from herder.api.validation import advice_on
from herder.server.metadata import FOREGROUND, ORPHAN, finalizers_of
from herder.server.resources import Resource

Document = dict[str, Any]
STANDARD_FINALIZERS = (ORPHAN, FOREGROUND, "kubernetes")
# Kinds that are kept, and on which a real cluster would act; and what does not come of them here.
STORED_ONLY = {
    ("apps", "DaemonSet"): "no pods come of it",
    ("batch", "CronJob"): "no Jobs come of it",
    ("batch", "Job"): "no pods come of it",
}


def advice_for(resource: Resource, new: Document, old: Document | None) -> list[str]:
    if resource.builtin:
        group, kind = resource.group, resource.kind
        usual = advice_on_create(group, kind, new) if old is None else advice_on_update(group, kind, new, old)
        return [*_about_running(group, kind, new, old), *usual]
    known = finalizers_of(old) if old is not None else []
    added = sorted({one for one in finalizers_of(new) if one not in known})
    return [*(sentence for one in added for sentence in _about_finalizer(one)), *advice_on(new)]


def _about_running(group: str, kind: str, new: Document, old: Document | None) -> list[str]:
    """That nobody will do what it asks for: said when it is asked for, and when something else is."""
    missing = STORED_ONLY.get((group, kind))
    if missing is None or (old is not None and new.get("spec") == old.get("spec")):
        return []
    return [f"this {kind} is stored, but not run: the embedded engine has no controller for it, and {missing}"]


def _about_finalizer(name: str) -> list[str]:
    said = [f'metadata.finalizers: "{name}": {complaint}' for complaint in qualified_name(name)]
    if "/" not in name and name not in STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in name else ""
        said.append(f'metadata.finalizers: "{name}": prefer a domain-qualified name{path}, which nobody else uses by accident')
    return said

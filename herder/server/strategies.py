"""What is particular to a kind: the built-in ones by Kubernetes' rules, the others by their CRD and by our own rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api import builtin
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import without_repeats
from herder.api.names import name_is_subdomain
from herder.api.problems import Problem, not_supported
from herder.api.validation import is_judged_again
from herder.server.events import View
from herder.server.metadata import finalizers_of, is_terminating, set_finalizers
from herder.server.renewals import LEASES
from herder.server.resources import Resource
from herder.server.same import same_json
from herder.server.schema import Schema, check_schema

Document = dict[str, Any]
Validate = Callable[[Document, Document | None], list[Problem]]
Default = Callable[[Document], None]

# As their strategies in Kubernetes say.
RETURNS_DELETED = frozenset(
    {"pods", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "namespaces", "storageclasses.storage.k8s.io"}
)
CONDITIONAL_UPDATE = frozenset(
    {"leases.coordination.k8s.io", "poddisruptionbudgets.policy", "customresourcedefinitions.apiextensions.k8s.io"}
)
HAS_GENERATION = frozenset(
    {
        *("pods", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
        *("cronjobs.batch", "jobs.batch"),
        *("poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"),
    }
)
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
# Every new one of these has its finalizer, which is taken away when nobody uses it.
PROTECTION = {"persistentvolumeclaims": "kubernetes.io/pvc-protection", "persistentvolumes": "kubernetes.io/pv-protection"}
# What may be written along with the status, by the groups where that is so; labels of a Deployment may not.
STATUS_MAY_SET = ("labels", "annotations", "finalizers")
STATUS_SETS_MORE = ("", "apps", "batch")
ENDED_PHASES = ("Succeeded", "Failed")


class BuiltinStrategy:
    def __init__(self, resource: Resource) -> None:
        self._group, self._kind = resource.group, resource.kind
        self._is_pod = resource.qualified == "pods"
        self._is_namespace = resource.qualified == "namespaces"
        self._is_crd = resource.kind == "CustomResourceDefinition"
        self.unconditional_update = resource.qualified not in CONDITIONAL_UPDATE
        self.returns_deleted = resource.qualified in RETURNS_DELETED
        self.has_generation = resource.qualified in HAS_GENERATION
        self.graceful = self.status_alone = self._is_pod
        self._protection = PROTECTION.get(resource.qualified)
        self.renewed = resource.qualified == LEASES
        may_set = STATUS_MAY_SET if resource.group in STATUS_SETS_MORE else ()
        self._status_may_set = may_set[1:] if resource.kind == "Deployment" else may_set

    def conform(self, obj: Document) -> str | None:
        if self._is_crd:
            drop_nulls(obj.get("spec"))
        return builtin.conform(self._group, self._kind, obj)

    def default(self, obj: Document) -> None:
        builtin.default(self._group, self._kind, obj)

    def default_status(self, obj: Document) -> None:
        self.default(obj)

    def prepare_create(self, obj: Document) -> None:
        builtin.prepare_for_create(self._group, self._kind, obj)
        if self._protection is not None and self._protection not in finalizers_of(obj):
            set_finalizers(obj, [*finalizers_of(obj), self._protection])

    def prepare_update(self, new: Document, old: Document) -> None:
        builtin.prepare_for_update(self._group, self._kind, new, old)

    def prepare_status(self, new: Document, old: Document) -> None:
        """Everything but the status stays; pods and nodes may be labelled on the way, as kubelets do, and a Deployment gets the
        number of its revision."""
        metadata = dict(old["metadata"])
        for field in self._status_may_set:
            metadata[field] = new["metadata"].get(field)
            if not metadata[field]:
                del metadata[field]
        reported = new.get("status")
        new.clear()
        new.update(old)
        new["metadata"] = metadata
        new["status"] = reported if reported is not None else {}

    def validate_create(self, obj: Document, typed: bool) -> list[Problem]:
        problems = builtin.validate_create(self._group, self._kind, obj)
        return problems or (schema_problems(obj) if self._is_crd else [])

    def validate_metadata(self, obj: Document) -> list[Problem]:
        problems: list[Problem] = []
        validate_meta(obj["metadata"], True, name_is_subdomain, problems)
        return without_repeats(problems)

    def validate_update(self, new: Document, old: Document, typed: bool) -> list[Problem]:
        problems = builtin.validate_update(self._group, self._kind, new, old)
        if problems or not self._is_crd or new["spec"] == old["spec"]:
            return problems
        return schema_problems(new)

    def grace_seconds(self, obj: Document, asked: int | None) -> int:
        """Only pods take their time: a node has to stop them first. One that never reached a node, or has ended, goes at once."""
        if not self._is_pod or not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ENDED_PHASES:
            return 0
        if asked is not None:
            return asked
        return obj["spec"].get("terminationGracePeriodSeconds", 30)

    def begin_deletion(self, obj: Document) -> None:
        if self._is_namespace:
            obj.setdefault("status", {})["phase"] = "Terminating"
        elif self._is_crd and CRD_CLEANUP not in finalizers_of(obj) and not is_terminating(obj):
            # Its objects have to go first.
            set_finalizers(obj, [*finalizers_of(obj), CRD_CLEANUP])

    def holds(self, obj: Document) -> list[str]:
        if self._is_namespace:
            return [*finalizers_of(obj), *((obj.get("spec") or {}).get("finalizers") or ())]
        return finalizers_of(obj)

    def prepare_finalize(self, new: Document, old: Document) -> None:
        """Only the list of those who still have to agree to a namespace's end."""
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        new.clear()
        new.update(old)
        new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers}
        if not finalizers:
            del new["spec"]["finalizers"]


class EventStrategy(BuiltinStrategy):
    def __init__(self, resource: Resource, view: View) -> None:
        super().__init__(resource)
        self._view = view

    def conform(self, obj: Document) -> str | None:
        sentence = super().conform(obj)
        if sentence is None:
            self._view.drop_empty(obj)
        return sentence


# What these hold is a value, and not a part of the schema.
_VALUES = ("default", "enum", "example")
_NAMES = ("properties", "patternProperties", "definitions", "dependencies")


def drop_nulls(part: Any, is_names: bool = False) -> None:
    """A field of a definition that is null is one that is not there. `is_names`: the keys are names, not fields."""
    if isinstance(part, list):
        for one in part:
            drop_nulls(one)
    elif isinstance(part, dict):
        for name in [name for name, value in part.items() if value is None]:
            del part[name]
        for name, value in part.items():
            if is_names or name not in _VALUES:
                drop_nulls(value, name in _NAMES and not is_names)


def schema_problems(crd: Document) -> list[Problem]:
    """What keeps the schemas of a CRD from being used; a rule that we could not evaluate is refused here, never ignored."""
    problems: list[Problem] = []
    strategy = (crd["spec"].get("conversion") or {}).get("strategy", "None")
    if strategy != "None":
        # Better than to take it and never call the webhook.
        problems.append(not_supported("spec.conversion.strategy", strategy, ("None",)))
    for number, version in enumerate(crd["spec"]["versions"]):
        openapi = (version.get("schema") or {}).get("openAPIV3Schema")
        if openapi:
            problems += check_schema(openapi, f"spec.versions[{number}].schema.openAPIV3Schema")
    return problems


def _keep(new: Document, old: Document, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


class CustomStrategy:
    """A kind that a CRD brought. `validate` and `default` are ours beyond the schema, where the kind is ours."""

    unconditional_update = False
    returns_deleted = False
    has_generation = True
    graceful = False
    status_alone = False
    renewed = False

    def __init__(self, resource: Resource, schema: Schema, validate: Validate | None, default: Default | None) -> None:
        self._resource = resource
        self._schema = schema
        self._validate = validate
        self._default = default

    def conform(self, obj: Document) -> str | None:
        return builtin.conform_metadata(obj)

    def default(self, obj: Document) -> None:
        self._schema.apply_defaults(obj)
        if self._default is not None:
            self._default(obj)

    def default_status(self, obj: Document) -> None:
        part = {"status": obj.pop("status")} if "status" in obj else {}
        self._schema.apply_defaults(part)
        if "status" in part:
            obj["status"] = part["status"]

    def prepare_create(self, obj: Document) -> None:
        obj["metadata"]["generation"] = 1
        if self._resource.status:
            obj.pop("status", None)

    def prepare_update(self, new: Document, old: Document) -> None:
        if self._resource.status:
            _keep(new, old, "status")
        if self._share(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _share(self, new: Document, old: Document) -> bool:
        """What did not change becomes the very same, which is not judged again. Whether anything that is desired did change: that
        is a new generation."""
        changed = False
        for field in {**new, **old}:
            if field in ("metadata", "apiVersion") or (field == "status" and self._resource.status):
                continue
            if field in new and field in old and same_json(new[field], old[field]):
                new[field] = old[field]
            else:
                changed = True
        return changed

    def prepare_status(self, new: Document, old: Document) -> None:
        reported = new.get("status")
        new.clear()
        new.update({field: value for field, value in old.items() if field != "status"})
        new["metadata"] = dict(old["metadata"])
        if reported is not None:
            new["status"] = reported

    def validate_create(self, obj: Document, typed: bool) -> list[Problem]:
        problems = self.validate_metadata(obj)
        problems += self._schema.validate(obj, typed=typed)
        # Our own rules read the object as their types describe it: only once the schema says that it is of that shape.
        return problems or self._own(obj, None)

    def validate_metadata(self, obj: Document) -> list[Problem]:
        problems: list[Problem] = []
        validate_meta(obj["metadata"], self._resource.namespaced, name_is_subdomain, problems, custom=True)
        return problems

    def validate_update(self, new: Document, old: Document, typed: bool) -> list[Problem]:
        problems: list[Problem] = []
        validate_meta_update(new["metadata"], old["metadata"], problems, custom=True)
        problems += self._schema.validate(new, old, typed)
        return problems or self._own(new, old)

    def _own(self, obj: Document, old: Document | None) -> list[Problem]:
        if self._validate is None or (old is not None and not is_judged_again(obj, old)):
            return []
        return self._validate(obj, old)

    def grace_seconds(self, obj: Document, asked: int | None) -> int:
        return 0

    def begin_deletion(self, obj: Document) -> None:
        return

    def holds(self, obj: Document) -> list[str]:
        return finalizers_of(obj)

    def prepare_finalize(self, new: Document, old: Document) -> None:
        return

"""The parts of jobs.yaml that are more than one value: which pods by their labels, which namespaces, and how pods are deleted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from herder.api.kinds.pod_migration_job import DeleteOptions
from herder.api.names import dns_label
from herder.api.selectors import EVERYTHING, Selector, joined, selector_from_object, validate_label_selector, validate_labels
from herder.api.views import Count
from herder.rules.herder_config.reading import Configuration, must_be

EvictionPolicy = Literal["Eviction", "Delete"]


def _labels(labels: dict[str, str]) -> None:
    if problems := validate_labels(labels, "matchLabels"):
        raise ValueError(joined(problems))


def _namespaces(names: list[str]) -> None:
    if not names or any(dns_label(name) for name in names):
        raise ValueError("no names of namespaces")


class WrittenExpression(Configuration, frozen=True, kw_only=True):
    key: Annotated[str, must_be("the key of a label")] = ""
    operator: Annotated[Literal["In", "NotIn", "Exists", "DoesNotExist"] | None, must_be("In, NotIn, Exists or DoesNotExist")] = (
        None
    )
    values: Annotated[tuple[str, ...], must_be("a list of values of a label")] = ()

    def __post_init__(self) -> None:
        if problems := validate_label_selector({"matchExpressions": [msgspec.to_builtins(self)]}, ""):
            raise ValueError(joined(problems).replace(".matchExpressions[0].", ""))


class WrittenSelector(Configuration, frozen=True, kw_only=True):
    match_labels: Annotated[
        dict[str, str] | None,
        must_be("a mapping of keys of labels to values, of letters, digits, hyphens, underscores and dots", _labels),
    ] = None
    match_expressions: Annotated[tuple[WrittenExpression, ...], must_be("a list of expressions with key, operator and values")] = ()

    def parsed(self) -> Selector:
        return selector_from_object(msgspec.to_builtins(self))


class WrittenNamespaces(Configuration, frozen=True, kw_only=True):
    include: Annotated[tuple[str, ...] | None, must_be("a list of names of namespaces, at least one", _namespaces)] = None
    exclude: Annotated[tuple[str, ...] | None, must_be("a list of names of namespaces, at least one", _namespaces)] = None

    def __post_init__(self) -> None:
        if self.include is not None and self.exclude is not None:
            raise ValueError("must have include or exclude, not both: what is not included is excluded")

    def parsed(self) -> Namespaces:
        return Namespaces(frozenset(self.include) if self.include is not None else None, frozenset(self.exclude or ()))


class WrittenDeleteOptions(Configuration, frozen=True, kw_only=True):
    """Of DeleteOptions what can hold for all pods: a precondition names one object."""

    api_version: Annotated[str | None, must_be("v1")] = None
    kind: Annotated[Literal["DeleteOptions"] | None, must_be("DeleteOptions")] = None
    grace_period_seconds: Annotated[Count | None, must_be("a whole number of seconds, not below zero")] = None
    orphan_dependents: Annotated[bool | None, must_be("true or false")] = None
    propagation_policy: Annotated[
        Literal["Orphan", "Background", "Foreground"] | None, must_be("Orphan, Background or Foreground")
    ] = None
    # Known, so that the answer can say more than that nobody knows it.
    dry_run: Any = None
    preconditions: Any = None

    def __post_init__(self) -> None:
        if self.dry_run is not None:
            raise ValueError(
                "dryRun must be left out: who only tries evicts nothing; there is a dryRun beside defaultDeleteOptions"
            )
        if self.preconditions is not None:
            raise ValueError("preconditions must be left out: they name one object, and this is for all pods")
        if self.orphan_dependents is not None and self.propagation_policy is not None:
            raise ValueError("must have orphanDependents or propagationPolicy, not both: the first is the old form of the second")

    def parsed(self) -> DeleteOptions:
        return msgspec.convert(msgspec.to_builtins(self), DeleteOptions)


class Namespaces(msgspec.Struct, frozen=True):
    """Whose pods may be migrated: those of `include`, or of all but `exclude`."""

    include: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.include if self.include is not None else namespace not in self.exclude


ALL_NAMESPACES = Namespaces()
ALL_PODS = EVERYTHING

"""Labels and annotations that an instance inherits from its machine's template, and a pod from its instance; and those that nobody
inherits, because we write or obey them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from herder.api import labels
from herder.api.reading import Json, part

_DOMAIN: Final = "herder.dev/"
_OURS: Final = frozenset(
    {labels.APP, labels.CREATED_BY, labels.INSTANCE_NAME, labels.MACHINE_NAME, labels.NODE_NAME, labels.MIGRATION_UID}
)
# Annotations that are no pod's: how a simulated guest behaves stands in its definition, kubectl's notes are about another object,
# and of Kubernetes' own some say what a pod is, or may never be changed.
_NOT_FOR_PODS: Final = (
    labels.SIMULATED,
    "kubectl.kubernetes.io/",
    "kubernetes.io/",
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
)


class Applied(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was inherited when it was last written: names only, which is enough to take away what is no longer given."""

    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    eviction_strategy: bool = False


NOTHING_APPLIED: Final = Applied()
_applied = msgspec.json.Decoder(Applied)


def is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(_DOMAIN)


def inherited(given: Mapping[str, Any]) -> dict[str, Any]:
    """Labels or annotations, without those of ours."""
    return {name: value for name, value in given.items() if not is_ours(name)}


def inherited_by_pods(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in annotations.items() if not is_ours(name) and not name.startswith(_NOT_FOR_PODS)}


def applied(given_labels: Iterable[str], given_annotations: Iterable[str], eviction_strategy: bool = False) -> Applied:
    return Applied(tuple(sorted(given_labels)), tuple(sorted(given_annotations)), eviction_strategy)


def note_of(record: Applied) -> str | None:
    """The value of the annotation that keeps it; None where there is nothing to keep."""
    return None if record == NOTHING_APPLIED else msgspec.json.encode(record).decode()


def applied_of(annotations: Mapping[str, str]) -> Applied:
    """Whoever may annotate the object could write anything here: it names nothing but what they could take away themselves."""
    try:
        return _applied.decode(annotations.get(labels.LAST_APPLIED, "{}"))
    except msgspec.DecodeError:
        return NOTHING_APPLIED


def told_with(metadata: Json) -> list[Any]:
    """What of these labels and annotations stands in annotations of the pod, for who counts its bytes."""
    annotations, names = part(metadata, "annotations"), inherited(part(metadata, "labels"))
    passed_on = inherited_by_pods(annotations)
    simulated = {name: value for name, value in annotations.items() if name.startswith(labels.SIMULATED)}
    return [passed_on, simulated, list(names), list(passed_on)]

"""Which level a node needs for the start of a host-model guest: from the cluster's settings into the affinity of its pod.

Only for a start: each one chooses the model anew. The target of a migration has what the guest was started with, and no level.
"""

from __future__ import annotations

from typing import Any

from herder.api import labels
from herder.api.defaults import PREFERRED_LEVEL_WEIGHT
from herder.api.kinds.domain import CPU
from herder.api.kinds.kubevirt import MigrationConfiguration, PreferredLevel

HOST_MODEL = "host-model"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Document = dict[str, Any]


def is_host_model(cpu: CPU | None) -> bool:
    return cpu is None or cpu.model in (None, "", HOST_MODEL)


def required_level(settings: MigrationConfiguration | None) -> int:
    return (settings.require_host_model_migratability_level or 0) if settings else 0


def preferred_level(settings: MigrationConfiguration | None) -> PreferredLevel | None:
    """Under either spelling; both at once are refused."""
    if settings is None:
        return None
    return settings.prefered_host_model_migratability_level or settings.preferred_host_model_migratability_level


def with_levels(affinity: Document | None, cpu: CPU | None, settings: MigrationConfiguration | None) -> Document | None:
    """The affinity that is written, and what the settings ask for. What is written stays as it is."""
    if not is_host_model(cpu):
        return affinity
    required, preferred = required_level(settings), preferred_level(settings)
    written = (affinity or {}).get("nodeAffinity") or {}
    own: Document = {}
    if required > 0:
        own[REQUIRED] = _and(written.get(REQUIRED), at_least(required))
    if preferred is not None and preferred.level > 0:
        weight = preferred.weight or PREFERRED_LEVEL_WEIGHT
        wish = {"weight": weight, "preference": {"matchExpressions": [at_least(preferred.level)]}}
        own[PREFERRED] = [*(written.get(PREFERRED) or ()), wish]
    return {**(affinity or {}), "nodeAffinity": {**written, **own}} if own else affinity


def at_least(level: int) -> Document:
    return {"key": labels.MIGRATABILITY_LEVEL, "operator": "Gt", "values": [str(level - 1)]}


def _and(required: Document | None, test: Document) -> Document:
    """Into every term that has tests: one without picks no node, and must not begin to pick some."""
    if required is None:
        return {"nodeSelectorTerms": [{"matchExpressions": [test]}]}
    terms: list[Document] = required.get("nodeSelectorTerms") or []
    return {**required, "nodeSelectorTerms": [_with_test(term, test) for term in terms]}


def _with_test(term: Document, test: Document) -> Document:
    expressions = term.get("matchExpressions") or []
    return {**term, "matchExpressions": [*expressions, test]} if expressions or term.get("matchFields") else term

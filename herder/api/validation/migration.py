"""VirtualMachineInstanceMigration and MigrationReview, beyond their schemas: the added term is untyped there, because it has two
shapes."""

from __future__ import annotations

from typing import Any

from herder.api.names import dns_subdomain
from herder.api.node_selector import NodeSelectorTerm
from herder.api.normalise import several_terms
from herder.api.problems import Problem, invalid, not_supported, too_many, type_invalid
from herder.api.reading import Json, part, text
from herder.api.selectors import validate_labels

TERM = "spec.addedNodeSelectorTerm"
_LISTS = ("matchExpressions", "matchFields")
_FIELDS = ("key", "operator", "values")
# As many as the typed schema of a machine's own affinity allows: every node is tested by each, again and again.
MOST_REQUIREMENTS = 64
MOST_VALUES = 512


def validate_migration(migration: Json, old: Json | None = None) -> list[Problem]:
    spec = part(migration, "spec")
    name = text(spec, "vmiName")
    problems = [invalid("spec.vmiName", name, complaint) for complaint in dns_subdomain(name)] if name else []
    problems += validate_labels(part(spec, "addedNodeSelector"), "spec.addedNodeSelector")
    return problems + term_problems(spec.get("addedNodeSelectorTerm"), TERM)


# A review asks about a migration in that migration's own words.
validate_review = validate_migration


def term_problems(value: Any, path: str) -> list[Problem]:
    """What is wrong with a term, or with a list that should hold just one."""
    if isinstance(value, list):
        if len(value) > 1:
            return [invalid(path, value, several_terms(len(value)))]
        return _one_term_problems(value[0], f"{path}[0]") if value else []
    return _one_term_problems(value, path)


def _one_term_problems(value: Any, path: str) -> list[Problem]:
    if value is None:
        return []
    if not isinstance(value, dict):
        return [type_invalid(path, value, "must be one NodeSelectorTerm: an object with matchExpressions or matchFields")]
    return _shape_problems(value, path) or [*NodeSelectorTerm(value, path).problems, *_field_name_problems(value, path)]


def _shape_problems(term: Json, path: str) -> list[Problem]:
    """No schema has looked at this before us: unknown fields and wrong types are ours to find."""
    problems = _unknown(term, _LISTS, path)
    for name in _LISTS:
        listed = term.get(name)
        if listed is None:
            continue
        if not isinstance(listed, list):
            problems.append(
                type_invalid(f"{path}.{name}", listed, "must be a list of requirements, each with key, operator and values")
            )
            continue
        if len(listed) > MOST_REQUIREMENTS:
            problems.append(too_many(f"{path}.{name}", len(listed), MOST_REQUIREMENTS))
            continue
        for index, requirement in enumerate(listed):
            problems += _requirement_problems(requirement, f"{path}.{name}[{index}]")
    return problems


def _requirement_problems(requirement: Any, path: str) -> list[Problem]:
    if not isinstance(requirement, dict):
        return [type_invalid(path, requirement, "must be an object with key, operator and values")]
    problems = _unknown(requirement, _FIELDS, path)
    for name in ("key", "operator"):
        if not isinstance(requirement.get(name), str):
            problems.append(type_invalid(f"{path}.{name}", requirement.get(name), "must be a string"))
    values: Any = requirement.get("values") or []
    if not isinstance(values, list):
        return [*problems, type_invalid(f"{path}.values", values, "must be a list of strings")]
    listed: list[Any] = values
    if len(listed) > MOST_VALUES:
        return [*problems, too_many(f"{path}.values", len(listed), MOST_VALUES)]
    wrong = [(index, value) for index, value in enumerate(listed) if not isinstance(value, str)]
    return problems + [type_invalid(f"{path}.values[{i}]", value, "must be a string: write it in quotes") for i, value in wrong]


def _unknown(document: Json, known: tuple[str, ...], path: str) -> list[Problem]:
    listed = ", ".join(known)
    return [
        invalid(f"{path}.{name}", document[name], f"unknown field: it may have {listed}") for name in document if name not in known
    ]


def _field_name_problems(term: Json, path: str) -> list[Problem]:
    named = [(index, one.get("key")) for index, one in enumerate(term.get("matchFields") or ())]
    return [not_supported(f"{path}.matchFields[{i}].key", key, ("metadata.name",)) for i, key in named if key != "metadata.name"]

"""MigrationPolicy, beyond its schema: its selectors are untyped there, because YAML makes booleans of label values."""

from __future__ import annotations

from herder.api.kinds.policy import NO_SELECTORS
from herder.api.names import label_key, label_value
from herder.api.normalise import label_text
from herder.api.problems import Problem, invalid, required, type_invalid
from herder.api.reading import Json, part
from herder.api.validation.settings import refinable_problems

SELECTORS = ("namespaceSelector", "virtualMachineInstanceSelector")


def validate_policy(policy: Json, old: Json | None = None) -> list[Problem]:
    spec = part(policy, "spec")
    problems = refinable_problems(spec, "spec")
    selectors = part(spec, "selectors")
    if not any(part(selectors, name) for name in SELECTORS):
        return [*problems, required("spec.selectors", NO_SELECTORS)]
    for name in SELECTORS:
        problems += _selector_problems(part(selectors, name), f"spec.selectors.{name}")
    return problems


def _selector_problems(selector: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    for key, value in selector.items():
        problems += [invalid(path, key, complaint) for complaint in label_key(key)]
        text = label_text(value)
        if text is None:
            problems.append(type_invalid(f"{path}[{key}]", value, 'must be a string: write it in quotes, for example "1.0"'))
        else:
            problems += [invalid(f"{path}[{key}]", value, complaint) for complaint in label_value(text)]
    return problems

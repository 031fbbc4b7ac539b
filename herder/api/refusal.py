"""Problems as the one answer that a client reads: the engine and the webhook say it in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from herder.api.problems import MOST_SHOWN, Problem, shortened


def sentence_of(group: str, kind: str, name: str, problems: Sequence[Problem]) -> str:
    texts = list(dict.fromkeys(str(problem) for problem in problems[:MOST_SHOWN]))
    if len(problems) > MOST_SHOWN:
        texts.append(f"and {len(problems) - MOST_SHOWN} more problems")
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    return f'{qualified} "{shortened(name)}" is invalid: {joined}'


def details_of(group: str, kind: str, name: str, problems: Sequence[Problem]) -> dict[str, Any]:
    """With the causes that kubectl prints field by field."""
    about = {"name": shortened(name), "group": group, "kind": kind}
    return {**{field: value for field, value in about.items() if value}, "causes": [_cause(one) for one in problems[:MOST_SHOWN]]}


def _cause(problem: Problem) -> dict[str, str]:
    cause = {"reason": problem.reason, "message": problem.message}
    if problem.field:
        cause["field"] = problem.field
    return cause

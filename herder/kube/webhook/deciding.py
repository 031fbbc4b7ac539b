"""What we answer an API server, by the same functions that the embedded engine calls itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from herder.api import defaulting, validation
from herder.api.problems import Problem
from herder.api.refusal import details_of, sentence_of
from herder.api.reserved_annotations import CONTROLLERS, changed_annotations, problem
from herder.kube.webhook.patches import difference
from herder.kube.webhook.reviews import Answer, Question
from herder.kube.webhook.rules import Advice, Rule

Document = dict[str, Any]
ALLOWED = Answer()


async def validate(question: Question, rules: Sequence[Rule] = (), advice: Sequence[Advice] = ()) -> Answer:
    """The schema has been asked before us. What is written to a subresource is not the part that rules are about."""
    if question.sub_resource:
        return ALLOWED
    problems = await _problems(question, rules)
    if problems:
        return Answer(refusal=_refusal(question, problems))
    if question.object is None:
        return ALLOWED
    among_others = [sentence for advise in advice for sentence in await advise(question)]
    return Answer(warnings=[*validation.advice_on(question.object), *among_others])


def mutate(question: Question) -> Answer:
    """Nobody has looked at the object yet: it may be anything."""
    if question.object is None or question.sub_resource:
        return ALLOWED
    # Defaulting writes into what it is given, and the patch needs both.
    completed: Document = msgspec.json.decode(msgspec.json.encode(question.object))
    defaulting.default(completed)
    return Answer(patch=difference(question.object, completed))


async def restrict(question: Question) -> Answer:
    """Of annotations that nodes obey. Who may write them has been asked before us, by the registration's own conditions."""
    pod = question.object or {}
    changed = changed_annotations(pod, question.old_object)
    # Where both are so, the owner says more: it is a controller of the cluster's that makes the pod, and not its fault.
    owner = problem(changed, pod, by_controllers=True)
    why = owner or problem(changed, pod, question.user_info.username == CONTROLLERS)
    return Answer(refusal=_forbidden(question, why)) if why else ALLOWED


async def _problems(question: Question, rules: Sequence[Rule]) -> list[Problem]:
    problems = _own_problems(question.object, question.old_object)
    for rule in rules:
        problems = problems or await rule(question)
    return problems


def _own_problems(new: Document | None, old: Document | None) -> list[Problem]:
    if new is None or (old is not None and not validation.is_judged_again(new, old)):
        return []
    return validation.problems_of(new, old)


def _refusal(question: Question, problems: Sequence[Problem]) -> Document:
    name = question.name or _name_in(question.object or {})
    about = (question.kind.group, question.kind.kind, name, problems)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": sentence_of(*about),
        "reason": "Invalid",
        "details": details_of(*about),
        "code": 422,
    }


def _forbidden(question: Question, why: str) -> Document:
    name = question.name or _name_in(question.object or {})
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'{question.resource.resource} "{name}" is forbidden: {why}',
        "reason": "Forbidden",
        "details": {"name": name, "kind": question.resource.resource},
        "code": 403,
    }


def _name_in(document: Document) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""

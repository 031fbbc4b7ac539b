"""The place for rules that look at more than one object: two policies with the same selectors, a second migration of one machine.

Such a rule may ask the API server. It is asked only where the object by itself has no problem, on CREATE, UPDATE and DELETE alike.
Two who come together may both be let in, so the controllers decide such things again.
"""

from __future__ import annotations

from typing import Protocol

from herder.api.problems import Problem
from herder.kube.webhook.reviews import Answer, Question


class Rule(Protocol):
    async def __call__(self, question: Question) -> list[Problem]: ...


class Advice(Protocol):
    """What is accepted, and because of other objects probably not meant: the sentences become warnings."""

    async def __call__(self, question: Question) -> list[str]: ...


class Evictions(Protocol):
    """Whether a pod may be evicted; what it decides may have effects, unless the question is a dry run."""

    async def __call__(self, question: Question) -> Answer: ...

"""What the schemas cannot say about our kinds: pure functions of the object, and of what it was before.

The embedded engine's admission, the webhook on a real cluster and, as the second line, the controllers all ask `problems_of`.
What the schema refuses (types, ranges, one-of, immutability) is not refused here a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api import registry
from herder.api.problems import Problem
from herder.api.reading import part
from herder.api.registry import KindInfo, info_of
from herder.api.validation.advice import ADVICE
from herder.api.validation.data_volume import validate_data_volume
from herder.api.validation.job import validate_job
from herder.api.validation.machine import validate_instance, validate_machine
from herder.api.validation.migration import validate_migration, validate_review
from herder.api.validation.policy import validate_policy
from herder.api.validation.pool import validate_pool
from herder.api.validation.reservation import validate_reservation
from herder.api.validation.settings import validate_settings

Validate = Callable[[dict[str, Any], dict[str, Any] | None], list[Problem]]


def _by_group_kind(*pairs: tuple[KindInfo, Validate]) -> dict[tuple[str, str], Validate]:
    return {(info.group, info.kind): _ratcheting(validate) for info, validate in pairs}


def _ratcheting(validate: Validate) -> Validate:
    """On an update what was wrong already, and in the same way, is not held against it: a machine that a newer rule refuses can
    still be stopped."""

    def news(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[Problem]:
        problems = validate(document, old)
        if old is None or not problems:
            return problems
        known = set(validate(old, old))
        return [problem for problem in problems if problem not in known]

    return news


VALIDATORS: dict[tuple[str, str], Validate] = _by_group_kind(
    (registry.MACHINE, validate_machine),
    (registry.INSTANCE, validate_instance),
    (registry.MIGRATION, validate_migration),
    (registry.POOL, validate_pool),
    (registry.SETTINGS, validate_settings),
    (registry.POLICY, validate_policy),
    (registry.JOB, validate_job),
    (registry.RESERVATION, validate_reservation),
    (registry.DATA_VOLUME, validate_data_volume),
    (registry.REVIEW, validate_review),
)


def problems_of(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[Problem]:
    """Everything wrong with an object of one of our kinds; nothing for other kinds."""
    info = info_of(document)
    return VALIDATORS[info.group, info.kind](document, old) if info else []


def is_judged_again(document: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether a change touches what the rules read. What a newer rule refuses can still be labelled, reported on and ended."""
    if document.get("spec") != old.get("spec"):
        return True
    ends = "deletionTimestamp" in part(document, "metadata")
    return not ends and part(document, "metadata", "annotations") != part(old, "metadata", "annotations")


def advice_on(document: dict[str, Any]) -> list[str]:
    """Warnings for what is accepted but probably not meant."""
    info = info_of(document)
    advise = ADVICE.get((info.group, info.kind)) if info else None
    return advise(document) if advise else []

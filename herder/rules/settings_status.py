"""What the KubeVirt object says of itself: whether its settings are in use, by which version, and every value that is in use."""

from __future__ import annotations

from herder.api import reasons
from herder.api.kinds.kubevirt import NAME, NAMESPACE, KubeVirt
from herder.api.validation.settings import ONLY_ONE, configuration_problems
from herder.rules.configuration import effective_configuration
from herder.rules.plans import Document, condition, plain, since, without_nothing

DEPLOYED = "Deployed"
IGNORED = "Ignored"
LONGEST_MESSAGE = 4096


def settings_status(kubevirt: KubeVirt, version: str, now: float) -> Document:
    """`version` is that of the program."""
    is_used = (kubevirt.namespace, kubevirt.name) == (NAMESPACE, NAME)
    said = _in_use(kubevirt, version) if is_used else _ignored()
    known = kubevirt.status.conditions if kubevirt.status is not None else None
    return without_nothing(
        {
            "observedGeneration": kubevirt.metadata.generation,
            **said,
            "conditions": since(said["conditions"], known, now),
        }
    )


def _in_use(kubevirt: KubeVirt, version: str) -> Document:
    wrong = "; ".join(str(problem) for problem in configuration_problems(plain(kubevirt) or {}))
    message = f"the built-in value is used instead: {wrong}"[:LONGEST_MESSAGE] if wrong else "the settings are in use"
    reason = reasons.SETTINGS_NOT_USED if wrong else reasons.SETTINGS_IN_USE
    return {
        "phase": DEPLOYED,
        "reason": reason,
        "message": message,
        "observedKubeVirtVersion": version,
        "configuration": plain(effective_configuration(kubevirt)),
        "conditions": [
            condition(reasons.AVAILABLE, True, reasons.SETTINGS_IN_USE, "the settings are in use"),
            condition(reasons.DEGRADED, bool(wrong), reason, message),
        ],
    }


def _ignored() -> Document:
    reason = reasons.WRONG_NAME_OR_NAMESPACE
    return {
        "phase": IGNORED,
        "reason": reason,
        "message": ONLY_ONE,
        "conditions": [condition(reasons.AVAILABLE, False, reason, ONLY_ONE)],
    }

"""What is worth telling about a disruption budget and its pods, in the words of Kubernetes' own controller. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from herder.server.housekeeping.recorder import NORMAL, WARNING, About, Told, about
from herder.server.store import Record

Document = dict[str, Any]
_UNMANAGED = (
    "were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
    'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


def of_budget(budget: Document) -> About:
    metadata = budget["metadata"]
    return About("policy/v1", "PodDisruptionBudget", metadata["namespace"], metadata["name"], metadata["uid"])


def no_pods(budget: Document) -> Told:
    return Told(of_budget(budget), NORMAL, "NoPods", "No matching pods found")


def not_counted(budget: Document, why: str) -> Told:
    message = f"Failed to calculate the number of expected pods: {why}"
    return Told(of_budget(budget), WARNING, "CalculateExpectedPodCountFailed", message)


def unmanaged(budget: Document) -> Told:
    shown = _shown((budget.get("spec") or {}).get("selector"))
    message = f"Pods selected by this PodDisruptionBudget (selector: {shown}) {_UNMANAGED}"
    return Told(of_budget(budget), WARNING, "UnmanagedPods", message)


def not_deleted(pod: Record, budget: Document) -> Told:
    name = f"{budget['metadata']['namespace']}/{budget['metadata']['name']}"
    return Told(about("v1", "Pod", pod), WARNING, "NotDeleted", f"Pod was expected by PDB {name} to be deleted but it wasn't")


def several(pod: Record, budgets: Sequence[str]) -> Told:
    names = " and ".join(key.rpartition("/")[2] for key in budgets)
    why = (
        f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.  It cannot be evicted while {names} select it.'
    )
    return Told(about("v1", "Pod", pod), WARNING, "MultiplePodDisruptionBudgets", why)


def _shown(selector: Document | None) -> str:
    """As Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(f"{_requirement(one)}," for one in selector.get("matchExpressions") or ())
    listed = f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},{listed},}}"


def _requirement(one: Document) -> str:
    values = " ".join(one.get("values") or ())
    return f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},Values:[{values}],}}"

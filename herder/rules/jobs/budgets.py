"""What disruption budgets say about the end of a pod: the one judge of evictions, of the embedded engine's and of jobs'.

PodDisruptionBudgets as Kubernetes' eviction reads them; Kruise's PodUnavailableBudgets as its webhook does. What is not clear
allows nothing: a status of an older spec, a count below zero, more evictions than anybody has confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from herder.api import reasons
from herder.api.core import PodDisruptionBudget, PodUnavailableBudget
from herder.api.meta import LabelSelector
from herder.api.selectors import NOTHING, Selector, selector_from_object
from herder.rules.plans import plain

# More than these wait to be noticed: whoever keeps the budget's status seems not to be there.
MOST_DISRUPTED = 2000
SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
DISRUPTION = "PodDisruptionBudget"
UNAVAILABILITY = "PodUnavailableBudget"
# Annotation of a PodUnavailableBudget: of which operations it protects pods; of all of them where it is absent.
PROTECTED_OPERATIONS = "kruise.io/pub-protect-operations"
_ENDS = frozenset(("EVICT", "DELETE"))
_NOTHING_CLAIMED: Mapping[str, int] = {}

# Several: no eviction can succeed. Stale: its status is of an older spec. Unclear: its status makes no sense. Spent: none left.
Why = Literal["Several", "Stale", "Unclear", "Spent"]


class Refusal(msgspec.Struct, frozen=True, gc=False):
    why: Why
    # A sentence for people.
    message: str
    # The budget that refuses; empty where several do by being several.
    budget: str = ""


class Budget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one budget allows at this moment, whichever kind it is of."""

    kind: Literal["PodDisruptionBudget", "PodUnavailableBudget"]
    namespace: str
    name: str
    uid: str
    # How many more pods may go; None: as many as like.
    allowed: int | None
    # Why none may go; None where some may.
    refusal: Refusal | None = None
    # One that is not ready is not counted as healthy: its end takes nothing away.
    lets_unready_go: bool = False
    # Of a PodDisruptionBudget: how many have to stay healthy, as far as it was counted.
    desired: int | None = None
    # Pods, by name, that were let go and are counted as gone already.
    going: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])


class PodBudgets(msgspec.Struct, frozen=True, gc=False):
    """The budgets of a pod. Where `problem` says something they are not known: unknown is not none."""

    budgets: tuple[Budget, ...] = ()
    problem: str = ""


class Target(msgspec.Struct, frozen=True, gc=False):
    """A workload as a PodUnavailableBudget names it: of any version of its group."""

    group: str
    kind: str
    name: str


# --- reading ---------------------------------------------------------------------------------------------------------------------


def read_disruption_budget(budget: PodDisruptionBudget) -> Budget:
    return Budget(
        kind=DISRUPTION,
        namespace=budget.namespace,
        name=budget.name,
        uid=budget.uid,
        allowed=max(0, budget.status.disruptions_allowed),
        refusal=_disruption_refusal(budget),
        lets_unready_go=_lets_unready_go(budget),
        desired=budget.status.desired_healthy,
        going=budget.status.disrupted_pods,
    )


def read_unavailable_budget(budget: PodUnavailableBudget) -> Budget | None:
    """None where it protects nobody from being evicted."""
    operations = budget.annotations.get(PROTECTED_OPERATIONS, "")
    if operations and _ENDS.isdisjoint(operations.split(",")):
        return None
    status = budget.status
    refusal = _unavailability_refusal(budget)
    binds = refusal is not None or status.desired_available > 0
    return Budget(
        kind=UNAVAILABILITY,
        namespace=budget.namespace,
        name=budget.name,
        uid=budget.uid,
        allowed=max(0, status.unavailable_allowed) if binds else None,
        refusal=refusal,
        lets_unready_go=True,
        going={**status.disrupted_pods, **status.unavailable_pods},
    )


def selector_of(selector: LabelSelector | None) -> Selector:
    """As policy/v1 has it: none picks nothing, an empty one everything. One that is not right picks nothing, as in Kubernetes."""
    try:
        return selector_from_object(plain(selector))
    except ValueError:
        return NOTHING


def unavailable_budget_selector(budget: PodUnavailableBudget) -> Selector:
    """A targetRef comes before a selector."""
    return selector_of(budget.spec.selector) if budget.spec.target_ref is None else NOTHING


def target_of(budget: PodUnavailableBudget) -> Target | None:
    target = budget.spec.target_ref
    return Target(target.api_version.rpartition("/")[0], target.kind, target.name) if target is not None else None


def needs_no_budget(phase: str, terminating: bool) -> bool:
    """Of a pod that has ended, has not begun or goes already: nobody is disturbed by its end."""
    return terminating or phase in ("Succeeded", "Failed", "Pending")


def recounted(budget: Budget, healthy: int) -> Budget:
    """With what so many healthy pods allow, where that is less than its status says: a deletion takes nothing from a status before
    somebody counts anew, as an eviction does."""
    if budget.desired is None or budget.allowed is None or healthy - budget.desired >= budget.allowed:
        return budget
    left = max(0, healthy - budget.desired)
    said = f"The disruption budget {budget.name} needs {budget.desired} healthy pods and has {healthy} currently"
    refusal = budget.refusal or (Refusal("Spent", said, budget.name) if left == 0 else None)
    return msgspec.structs.replace(budget, allowed=left, refusal=refusal)


# --- judging ---------------------------------------------------------------------------------------------------------------------


def judge(budgets: Sequence[Budget], pod: str, *, ready: bool, claimed: Mapping[str, int] = _NOTHING_CLAIMED) -> Refusal | None:
    """Whether this pod may go now; None where nothing speaks against it. `claimed`: by the uid of a budget, how many others are
    to go that it has not counted yet."""
    if are_several(budgets):
        return Refusal("Several", SEVERAL_BUDGETS)
    refusals = (_refusal(budget, pod, ready, claimed.get(budget.uid, 0)) for budget in budgets)
    return next((refusal for refusal in refusals if refusal is not None), None)


def are_several(budgets: Sequence[Budget]) -> bool:
    """Of PodDisruptionBudgets: an eviction asks one of them, and more are an error."""
    return len(budgets) > 1 and sum(budget.kind == DISRUPTION for budget in budgets) > 1


def claims(budgets: Iterable[Budget], pod: str, *, ready: bool) -> list[str]:
    """The uids of the budgets from which the end of this pod will take one away: those that count it as healthy until then."""
    return [budget.uid for budget in budgets if budget.allowed is not None and ready and pod not in budget.going]


def _refusal(budget: Budget, pod: str, ready: bool, claimed: int) -> Refusal | None:
    if not ready and budget.lets_unready_go:
        return None
    if budget.kind == UNAVAILABILITY and pod in budget.going:
        return None
    if budget.refusal is not None:
        return budget.refusal
    if budget.allowed is not None and budget.allowed <= claimed:
        going = f"{claimed} that it has not counted yet {'is' if claimed == 1 else 'are'} to go"
        message = f"{budget.kind} {budget.name} allows {budget.allowed} to go, and {going}"
        return Refusal("Spent", message, budget.name)
    return None


def _lets_unready_go(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _disruption_refusal(budget: PodDisruptionBudget) -> Refusal | None:
    name, status = budget.name, budget.status
    if _is_stale(budget, status.observed_generation):
        return Refusal("Stale", f"The disruption budget {name} is still being processed by the server.", name)
    if status.disruptions_allowed < 0:
        return Refusal("Unclear", "pdb disruptions allowed is negative", name)
    if len(status.disrupted_pods) > MOST_DISRUPTED:
        return Refusal("Unclear", "DisruptedPods map too big - too many evictions not confirmed by PDB controller", name)
    return Refusal("Spent", _why_spent(budget), name) if status.disruptions_allowed == 0 else None


def _why_spent(budget: PodDisruptionBudget) -> str:
    name, status = budget.name, budget.status
    said = next((one for one in status.conditions if one.type == reasons.DISRUPTION_ALLOWED), None)
    told_no = said if said is not None and said.status == "False" and said.message else None
    if told_no is not None and told_no.reason == reasons.SYNC_FAILED:
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {told_no.message}"
    if status.current_healthy <= status.desired_healthy:
        return (
            f"The disruption budget {name} needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
        )
    if told_no is not None:
        return f"The disruption budget {name} does not allow evicting pods currently ({told_no.reason}): {told_no.message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _unavailability_refusal(budget: PodUnavailableBudget) -> Refusal | None:
    name, status = budget.name, budget.status
    if _is_stale(budget, status.observed_generation):
        return Refusal("Stale", f"the status of PodUnavailableBudget {name} is of an older spec", name)
    if len(status.disrupted_pods) + len(status.unavailable_pods) > MOST_DISRUPTED:
        return Refusal(
            "Unclear", f"PodUnavailableBudget {name} has more than {MOST_DISRUPTED} pods that nobody has confirmed", name
        )
    if status.desired_available > 0 and status.unavailable_allowed <= 0:
        needs = f"needs {status.desired_available} available pods and has {status.current_available} currently"
        return Refusal("Spent", f"PodUnavailableBudget {name} {needs}", name)
    return None


def _is_stale(budget: PodDisruptionBudget | PodUnavailableBudget, observed: int | None) -> bool:
    return (observed or 0) < (budget.metadata.generation or 0)

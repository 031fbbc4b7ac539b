"""Where a guest or a reservation may be placed: selectors and affinities, which schemas can only check by shape."""

from __future__ import annotations

from herder.api.builtin.placement import check_affinity, check_spreading, check_tolerations
from herder.api.node_selector import NodeSelectorTerm
from herder.api.problems import Problem, invalid, required
from herder.api.reading import Json, entries, indexed, part
from herder.api.selectors import validate_label_selector, validate_labels

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def placement_problems(spec: Json, path: str) -> list[Problem]:
    """nodeSelector, affinity, tolerations and spreading of a pod's or a guest's spec."""
    return _own_problems(spec, path) or _problems_of_pods(spec, path)


def _problems_of_pods(spec: Json, path: str) -> list[Problem]:
    """They are passed on to a pod as they are written: what no pod may have nobody else may."""
    problems: list[Problem] = []
    check_affinity(part(spec, "affinity"), f"{path}.affinity", problems)
    check_tolerations(entries(spec, "tolerations"), f"{path}.tolerations", problems)
    check_spreading(entries(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints", problems)
    return problems


def _own_problems(spec: Json, path: str) -> list[Problem]:
    problems = validate_labels(part(spec, "nodeSelector"), f"{path}.nodeSelector")
    problems += _node_affinity_problems(part(spec, "affinity", "nodeAffinity"), f"{path}.affinity.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        problems += _pod_affinity_problems(part(spec, "affinity", name), f"{path}.affinity.{name}")
    for place, toleration in indexed(spec, "tolerations"):
        problems += _toleration_problems(toleration, f"{path}.{place}")
    for place, constraint in indexed(spec, "topologySpreadConstraints"):
        problems += validate_label_selector(part(constraint, "labelSelector"), f"{path}.{place}.labelSelector")
    return problems


def _node_affinity_problems(affinity: Json, path: str) -> list[Problem]:
    problems: list[Problem] = []
    if _REQUIRED in affinity and not entries(affinity, _REQUIRED, "nodeSelectorTerms"):
        problems.append(
            required(f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one term: without one no node is allowed")
        )
    for place, term in indexed(affinity, _REQUIRED, "nodeSelectorTerms"):
        problems += NodeSelectorTerm(term, f"{path}.{place}").problems
    for place, wish in indexed(affinity, _PREFERRED):
        problems += NodeSelectorTerm(part(wish, "preference"), f"{path}.{place}.preference").problems
    return problems


def _pod_affinity_problems(affinity: Json, path: str) -> list[Problem]:
    terms = [(place, term) for place, term in indexed(affinity, _REQUIRED)]
    terms += [(f"{place}.podAffinityTerm", part(wish, "podAffinityTerm")) for place, wish in indexed(affinity, _PREFERRED)]
    problems: list[Problem] = []
    for place, term in terms:
        for name in ("labelSelector", "namespaceSelector"):
            problems += validate_label_selector(part(term, name), f"{path}.{place}.{name}")
    return problems


def _toleration_problems(toleration: Json, path: str) -> list[Problem]:
    operator, key, value = toleration.get("operator"), toleration.get("key"), toleration.get("value")
    problems: list[Problem] = []
    if not key and operator != "Exists":
        problems.append(
            invalid(f"{path}.operator", operator or "", 'must be "Exists" where key is empty: it then tolerates every taint')
        )
    if operator == "Exists" and value:
        problems.append(invalid(f"{path}.value", value, 'must be empty where operator is "Exists"'))
    if "tolerationSeconds" in toleration and toleration.get("effect") not in (None, "", "NoExecute"):
        problems.append(invalid(f"{path}.effect", toleration.get("effect"), 'must be "NoExecute" where tolerationSeconds is set'))
    return problems

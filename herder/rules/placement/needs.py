"""What a pod says about where it may and should go, read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api.core import Pod
from herder.api.core.containers import Container
from herder.api.meta import NodeSelector, PodAffinity, PreferredSchedulingTerm, Toleration, TopologySpreadConstraint
from herder.api.selectors import NOTHING
from herder.rules.matching.resources import CPU, pod_requests
from herder.rules.placement.terms import Others, Term, Weighted, narrowed, selector_of, term_of

MEMORY = "memory"
# How much a container counts for when nodes are compared that asks for nothing; kube-scheduler's numbers.
USUAL_CPU = 100
USUAL_MEMORY = 200 * 1024 * 1024
ANY_ADDRESS = "0.0.0.0"


class Port(msgspec.Struct, frozen=True):
    address: str
    protocol: str
    number: int


class Spread(msgspec.Struct, frozen=True):
    """One topology spread constraint."""

    others: Others
    topology_key: str
    max_skew: int
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


class Claim(msgspec.Struct, frozen=True):
    name: str
    # Made for this pod alone, from a template in it.
    ephemeral: bool = False


class Needs(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    deleting: bool
    priority: int
    node_name: str
    requests: Mapping[str, int]
    # What it counts for when nodes are compared: processors and memory, never nothing.
    counted: tuple[int, int]
    node_selector: tuple[tuple[str, str], ...]
    required_nodes: NodeSelector | None
    preferred_nodes: tuple[PreferredSchedulingTerm, ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[Port, ...]
    claims: tuple[Claim, ...]
    near: tuple[Term, ...]
    far: tuple[Term, ...]
    wishes: tuple[Weighted, ...]
    must_spread: tuple[Spread, ...]
    should_spread: tuple[Spread, ...]
    # Pods of one group are alike to every selector.
    group: tuple[str, tuple[tuple[str, str], ...], bool]


def needs_of(pod: Pod) -> Needs:
    spec = pod.spec
    affinity = spec.affinity
    nodes = affinity.node_affinity if affinity is not None else None
    near = affinity.pod_affinity if affinity is not None else None
    far = affinity.pod_anti_affinity if affinity is not None else None
    requests = pod_requests(pod)
    return Needs(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        labels=pod.labels,
        deleting=pod.being_deleted,
        priority=spec.priority or 0,
        node_name=spec.node_name,
        requests=requests,
        counted=_counted(pod, requests),
        node_selector=tuple(sorted(spec.node_selector.items())),
        required_nodes=nodes.required if nodes is not None else None,
        preferred_nodes=(nodes.preferred or ()) if nodes is not None else (),
        tolerations=spec.tolerations,
        ports=tuple(_ports(pod)),
        claims=tuple(_claims(pod)),
        near=_terms(near, pod),
        far=_terms(far, pod),
        wishes=(*_wishes(near, pod, 1), *_wishes(far, pod, -1)),
        must_spread=tuple(_spread(one, pod) for one in spec.topology_spread_constraints if _must(one)),
        should_spread=tuple(_spread(one, pod) for one in spec.topology_spread_constraints if not _must(one)),
        group=(pod.namespace, tuple(sorted(pod.labels.items())), pod.being_deleted),
    )


def _counted(pod: Pod, requests: Mapping[str, int]) -> tuple[int, int]:
    """The usual amount for each container that does not say."""
    containers = pod.spec.containers or ()
    given = pod.spec.resources.requests if pod.spec.resources is not None else {}
    cpu = 0 if CPU in given else USUAL_CPU * sum(CPU not in one.resources.requests for one in containers)
    memory = 0 if MEMORY in given else USUAL_MEMORY * sum(MEMORY not in one.resources.requests for one in containers)
    return requests.get(CPU, 0) + cpu, requests.get(MEMORY, 0) + memory


def _ports(pod: Pod) -> Iterable[Port]:
    """Of the containers that run all the time."""
    beside = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    containers: list[Container] = [*beside, *(pod.spec.containers or ())]
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield Port(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)


def _claims(pod: Pod) -> Iterable[Claim]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield Claim(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield Claim(f"{pod.name}-{volume.name}", ephemeral=True)


def _terms(given: PodAffinity | None, pod: Pod) -> tuple[Term, ...]:
    return tuple(term_of(one, pod.namespace, pod.labels) for one in (given.required or ())) if given is not None else ()


def _wishes(given: PodAffinity | None, pod: Pod, sign: int) -> tuple[Weighted, ...]:
    wished = (given.preferred or ()) if given is not None else ()
    return tuple(Weighted(term_of(one.pod_affinity_term, pod.namespace, pod.labels), sign * one.weight) for one in wished)


def _must(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == "DoNotSchedule"


def _spread(given: TopologySpreadConstraint, pod: Pod) -> Spread:
    selector = narrowed(selector_of(given.label_selector), given.match_label_keys or (), pod.labels)
    return Spread(
        others=Others((pod.namespace,), NOTHING, selector),
        topology_key=given.topology_key,
        max_skew=given.max_skew,
        min_domains=given.min_domains or 1,
        honor_affinity=(given.node_affinity_policy or "Honor") == "Honor",
        honor_taints=(given.node_taints_policy or "Ignore") == "Honor",
    )

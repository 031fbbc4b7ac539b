"""What nodes say themselves: cordons, taints, labels and names."""

from typing import Any

from herder.rules.placement import Event, Offer, What
from herder.rules.placement.cordon import Cordon
from herder.rules.placement.named_nodes import NamedNodes
from herder.rules.placement.node_affinity import NodeAffinity
from herder.rules.placement.node_name import NodeName
from herder.rules.placement.taints import Taints
from tests.unit.rules.placement.cluster import ZONE, Cluster, node, pod, read

VM = {"key": "dedicated", "value": "vm", "effect": "NoSchedule"}


def offer(name: str = "a", *, labels: dict[str, str] | None = None, taints: Any = (), cordoned: bool = False) -> Offer:
    return Offer(name, labels or {}, taints, cordoned, {"cpu": 1})


def needing(*terms: dict[str, Any], preferred: Any = (), **spec: Any) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}} if terms else {}
    return pod(affinity={"nodeAffinity": {**required, "preferredDuringSchedulingIgnoredDuringExecution": list(preferred)}}, **spec)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cluster = Cluster(node("a", unschedulable=True))
    assert cluster.message(pod()) == "0/1 nodes are available: 1 node(s) were unschedulable."
    tolerant = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert cluster.fitting(tolerant) == ["a"]


def test_an_uncordon_wakes() -> None:
    rule, cluster, wants = Cordon(), Cluster(), read(pod())
    uncordoned = Event(What.NODE_CHANGED, "a", before=offer(cordoned=True), after=offer())
    relabelled = Event(What.NODE_CHANGED, "a", before=offer(), after=offer(labels={"x": "y"}))
    assert rule.unblocked_by(wants, uncordoned, cluster.snapshot)
    assert not rule.unblocked_by(wants, relabelled, cluster.snapshot)


def test_a_taint_keeps_away_what_does_not_tolerate_it() -> None:
    cluster = Cluster(node("a", taints=[VM]), node("b", taints=[{**VM, "effect": "NoExecute"}]))
    assert cluster.message(pod()) == "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    assert cluster.fitting(pod(tolerations=[{"key": "dedicated", "value": "vm", "effect": "NoSchedule"}])) == ["a"]
    assert cluster.fitting(pod(tolerations=[{"operator": "Exists"}])) == ["a", "b"]


def test_a_soft_taint_only_makes_a_node_less_liked() -> None:
    cluster = Cluster(node("a", taints=[{"key": "slow", "effect": "PreferNoSchedule"}]), node("b"))
    assert cluster.fitting(pod()) == ["a", "b"]
    assert cluster.decide(pod()).node == "b"
    assert cluster.decide(pod(tolerations=[{"key": "slow", "operator": "Exists"}])).node == "a"


def test_a_taint_that_is_taken_away_wakes_whom_it_kept_away() -> None:
    cluster = Cluster()
    untainted = Event(What.NODE_CHANGED, "a", before=offer(taints=(("dedicated", "vm", "NoSchedule"),)), after=offer())
    assert Taints().unblocked_by(read(pod()), untainted, cluster.snapshot)
    assert not Taints().unblocked_by(read(pod(tolerations=[{"operator": "Exists"}])), untainted, cluster.snapshot)


def test_node_selector_and_required_affinity_must_both_hold() -> None:
    cluster = Cluster(node("a", "z1", labels={"disk": "ssd"}), node("b", "z1"), node("c", "z2", labels={"disk": "ssd"}))
    assert cluster.fitting(needing(expression(ZONE, "In", "z1"), nodeSelector={"disk": "ssd"})) == ["a"]
    said = cluster.message(needing(expression(ZONE, "In", "z9")))
    assert said == "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."


def test_each_operator_picks_as_it_says() -> None:
    cluster = Cluster(node("a", labels={"n": "1"}), node("b", labels={"n": "10"}), node("c", labels={"n": "x"}), node("d"))
    answers = {
        operator: cluster.fitting(needing(expression("n", operator, *values)))
        for operator, values in {"In": "1x", "NotIn": ["1"], "Exists": "", "DoesNotExist": "", "Gt": ["5"], "Lt": ["5"]}.items()
    }
    assert answers == {
        "In": ["a", "c"],
        "NotIn": ["b", "c", "d"],
        "Exists": ["a", "b", "c"],
        "DoesNotExist": ["d"],
        "Gt": ["b"],
        "Lt": ["a"],
    }


def test_one_of_several_terms_is_enough_and_an_empty_one_picks_nothing() -> None:
    cluster = Cluster(node("a", "z1"), node("b", "z2"), node("c", "z3"))
    assert cluster.fitting(needing(expression(ZONE, "In", "z1"), expression(ZONE, "In", "z2"), {})) == ["a", "b"]
    assert cluster.fitting(needing({})) == []


def test_a_changed_label_is_seen_at_once() -> None:
    cluster = Cluster(node("a", "z1"))
    wants = needing(expression(ZONE, "In", "z2"))
    assert cluster.fitting(wants) == []
    cluster.add(node("a", "z2"))
    assert cluster.fitting(wants) == ["a"]
    came = Event(What.NODE_CHANGED, "a", before=offer(labels={ZONE: "z1"}), after=offer(labels={ZONE: "z2"}))
    assert NodeAffinity().unblocked_by(read(wants), came, cluster.snapshot)
    assert not NodeAffinity().unblocked_by(read(needing(expression(ZONE, "In", "z9"))), came, cluster.snapshot)


def test_preferred_terms_add_up() -> None:
    cluster = Cluster(node("a", "z1"), node("b", "z2", labels={"disk": "ssd"}))
    wishes = [
        {"weight": 10, "preference": expression(ZONE, "In", "z1")},
        {"weight": 30, "preference": expression("disk", "Exists")},
    ]
    assert cluster.decide(needing(preferred=wishes)).node == "b"


def test_an_affinity_that_names_its_nodes_looks_at_no_others() -> None:
    cluster = Cluster(node("a"), node("b", cpu="1"), node("c"))
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    assert cluster.fitting(needing(named)) == ["b"]
    assert cluster.message(needing(named, requests={"cpu": "2"})) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    both = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]}
    assert cluster.message(needing(both)) == "0/3 nodes are available: pod affinity terms conflict."
    came = Event(What.NODE_CAME, "b", after=offer("b"))
    assert NamedNodes().unblocked_by(read(needing(named)), came, cluster.snapshot)


def test_a_pod_that_names_its_node_fits_nowhere_else() -> None:
    cluster = Cluster(node("a"), node("b"))
    assert cluster.fitting(pod(on="b")) == ["b"]
    assert cluster.message(pod(on="c")) == "0/2 nodes are available: 2 node(s) didn't match the requested node name."
    assert NodeName().unblocked_by(read(pod(on="c")), Event(What.NODE_CAME, "c", after=offer("c")), cluster.snapshot)


def test_without_any_node_it_says_so() -> None:
    assert Cluster().message(pod()) == "no nodes available to schedule pods"

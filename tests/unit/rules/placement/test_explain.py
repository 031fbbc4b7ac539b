"""What `herder explain placement` shows is what the scheduler decides."""

from typing import Any

import msgspec

from herder.api.core import Pod
from herder.cli.placement import placement_text
from herder.cli.tables import plain
from herder.rules.placement import OF_THE_NODE, RULES, still_fits
from herder.rules.placement.explain import explain
from tests.unit.rules.placement.cluster import Cluster, node, pod, read


def explained(cluster: Cluster, document: dict[str, Any]) -> list[str]:
    view = msgspec.convert(document, Pod)
    return plain(placement_text(explain(view, cluster.snapshot, RULES)))


def test_each_node_has_a_row_with_its_score_or_the_first_rule_that_says_no() -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    cluster = Cluster(node("a", taints=[taint], cpu="1"), node("b"), node("c", cpu="1", memory="1Gi"))
    wants = pod(requests={"cpu": "2", "memory": "2Gi"})
    score = cluster.scores(wants)["b"]
    assert explained(cluster, wants) == [
        "pod default/p would go to b.",
        "NODE   FITS   SCORE   RULE        WHY NOT",
        f"b      yes    {score:.1f}",
        "a      no             taints      node(s) had untolerated taint(s)",
        "c      no             resources   Insufficient cpu, Insufficient memory",
    ]


def test_a_pod_that_is_placed_is_explained_as_if_it_were_not() -> None:
    there = pod(on="a", requests={"cpu": "3"})
    said = explained(Cluster(node("a"), there), there)
    assert said[:2] == ["pod default/p is on a. Were it placed now:", "pod default/p would go to a."]


def test_where_none_fits_the_message_is_that_of_the_condition() -> None:
    cluster = Cluster(node("a", cpu="1"))
    wants = pod(requests={"cpu": "2"})
    assert explained(cluster, wants)[0] == f"pod default/p: {cluster.message(wants)}"


def test_what_the_pod_waits_for_is_said_of_every_node() -> None:
    wants = pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
    said = explained(Cluster(node("a")), wants)
    assert said[2].split(maxsplit=3) == ["a", "no", "volumes", 'persistentvolumeclaim "disk" not found']


def test_a_node_that_changed_after_the_decision_is_not_bound_to() -> None:
    cluster = Cluster(node("a"))
    assert still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)
    cluster.add(node("a", unschedulable=True))
    assert not still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)
    cluster.snapshot.remove_node("a")
    assert not still_fits(read(pod()), "a", cluster.snapshot, OF_THE_NODE)

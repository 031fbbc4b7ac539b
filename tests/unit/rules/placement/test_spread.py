"""Topology spread."""

from typing import Any

from herder.rules.placement import Event, What
from herder.rules.placement.spread import TopologySpread
from tests.unit.rules.placement.cluster import HOST, ZONE, Cluster, node, pod, read

WEB = {"app": "web"}


def spread(key: str = ZONE, skew: int = 1, soft: bool = False, **more: Any) -> dict[str, Any]:
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": WEB}, **more}


def web(*constraints: dict[str, Any], **more: Any) -> dict[str, Any]:
    return pod(labels=more.pop("labels", WEB), topologySpreadConstraints=list(constraints), **more)


def cluster() -> Cluster:
    return Cluster(
        node("a", "z1"), node("b", "z1"), node("c", "z2"), pod("one", on="a", labels=WEB), pod("two", on="b", labels=WEB)
    )


def test_a_place_may_not_have_more_than_the_skew_over_the_least() -> None:
    assert cluster().fitting(web(spread())) == ["c"]
    assert cluster().fitting(web(spread(skew=3))) == ["a", "b", "c"]


def test_the_reason_tells_a_missing_label_from_too_many_pods() -> None:
    full = cluster()
    full.add(node("bare"))
    full.add(node("c", "z2", unschedulable=True))
    assert full.message(web(spread())) == (
        "0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label),"
        " 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints."
    )


def test_with_fewer_places_than_wanted_the_least_is_none() -> None:
    even = Cluster(node("a", "z1"), node("c", "z2"), pod("one", on="a", labels=WEB), pod("two", on="c", labels=WEB))
    assert even.fitting(web(spread())) == ["a", "c"]
    assert even.fitting(web(spread(minDomains=3))) == []


def test_nodes_that_the_pod_may_not_use_count_only_if_asked() -> None:
    lopsided = Cluster(node("a", "z1", labels={"ours": "yes"}), node("c", "z2"), pod("one", on="a", labels=WEB))
    assert lopsided.fitting(web(spread(), nodeSelector={"ours": "yes"})) == ["a"]
    assert lopsided.fitting(web(spread(nodeAffinityPolicy="Ignore"), nodeSelector={"ours": "yes"})) == []


def test_tainted_nodes_count_unless_told_otherwise() -> None:
    tainted = Cluster(
        node("a", "z1"), node("c", "z2", taints=[{"key": "k", "effect": "NoSchedule"}]), pod("one", on="a", labels=WEB)
    )
    assert tainted.fitting(web(spread())) == []
    assert tainted.fitting(web(spread(nodeTaintsPolicy="Honor"))) == ["a"]


def test_pods_that_leave_and_pods_of_other_namespaces_do_not_count() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    some = Cluster(
        node("a", "z1"),
        node("c", "z2"),
        pod("one", on="a", labels=WEB, metadata=leaving),
        pod("two", on="a", labels=WEB, namespace="other"),
    )
    assert some.fitting(web(spread())) == ["a", "c"]


def test_own_labels_narrow_who_counts() -> None:
    some = Cluster(node("a", "z1"), node("c", "z2"), pod("one", on="a", labels={**WEB, "build": "1"}))
    assert some.fitting(web(spread(matchLabelKeys=["build"]), labels={**WEB, "build": "2"})) == ["a", "c"]
    assert some.fitting(web(spread(matchLabelKeys=["build"]), labels={**WEB, "build": "1"})) == ["c"]


def test_a_wish_for_even_places_prefers_the_emptier() -> None:
    assert cluster().fitting(web(spread(soft=True))) == ["a", "b", "c"]
    assert cluster().decide(web(spread(soft=True))).node == "c"
    assert cluster().decide(web(spread(HOST, soft=True))).node == "c"


def test_pods_of_its_kind_wake_it() -> None:
    some, rule, wants = cluster(), TopologySpread(), read(web(spread()))
    assert rule.unblocked_by(wants, Event(What.POD_PLACED, "c", pod=read(pod(labels=WEB))), some.snapshot)
    assert not rule.unblocked_by(wants, Event(What.POD_PLACED, "c", pod=read(pod())), some.snapshot)

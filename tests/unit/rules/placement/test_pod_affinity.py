"""Near to some pods, far from others."""

from typing import Any

from herder.rules.placement import Event, What
from herder.rules.placement.pod_affinity import PodAffinity
from tests.unit.rules.placement.cluster import HOST, ZONE, Cluster, node, pod, read

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"app": "web"}


def term(key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": WEB}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms or (term(),))}}


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms or (term(),))}}


def three() -> Cluster:
    return Cluster(node("a", "z1"), node("b", "z1"), node("c", "z2"), node("bare"))


def test_near_means_the_same_place() -> None:
    cluster = three()
    assert cluster.message(pod(affinity=near())) == "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."
    cluster.add(pod("there", on="a", labels=WEB))
    assert cluster.fitting(pod(affinity=near())) == ["a", "b"]


def test_the_first_of_those_that_want_to_be_together_goes_anywhere_with_the_label() -> None:
    assert three().fitting(pod(labels=WEB, affinity=near())) == ["a", "b", "c"]


def test_all_terms_must_be_about_one_and_the_same_pod() -> None:
    cluster = three()
    cluster.add(pod("one", on="a", labels=WEB))
    cluster.add(pod("two", on="a", labels={"tier": "x"}))
    both = near(term(), term(labelSelector={"matchLabels": {"tier": "x"}}))
    assert cluster.fitting(pod(affinity=both)) == []
    cluster.add(pod("three", on="c", labels={**WEB, "tier": "x"}))
    assert cluster.fitting(pod(affinity=both)) == ["c"]


def test_far_means_another_place_and_a_node_without_the_label_is_nowhere() -> None:
    cluster = three()
    cluster.add(pod("there", on="a", labels=WEB))
    assert cluster.fitting(pod(affinity=far())) == ["bare", "c"]
    assert "2 node(s) didn't match pod anti-affinity rules" in cluster.message(pod(affinity=far(), nodeSelector={ZONE: "z1"}))


def test_those_that_are_there_may_not_want_the_new_one() -> None:
    cluster = three()
    cluster.add(pod("there", on="a", affinity=far(term(HOST))))
    assert cluster.fitting(pod(labels=WEB)) == ["b", "bare", "c"]
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in cluster.message(
        pod(labels=WEB, nodeSelector={HOST: "a"})
    )
    cluster.snapshot.remove_pod(("default", "there"))
    assert cluster.fitting(pod(labels=WEB)) == ["a", "b", "bare", "c"]


def test_only_the_own_namespace_is_meant_unless_others_are_named_or_selected() -> None:
    cluster = three()
    cluster.add({"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "one"}}})
    cluster.add(pod("there", on="a", labels=WEB, namespace="other"))
    assert cluster.fitting(pod(affinity=far(term(HOST)))) == ["a", "b", "bare", "c"]
    assert cluster.fitting(pod(affinity=far(term(HOST, namespaces=["other"])))) == ["b", "bare", "c"]
    by_label = far(term(HOST, namespaceSelector={"matchLabels": {"team": "one"}}))
    assert cluster.fitting(pod(affinity=by_label)) == ["b", "bare", "c"]
    assert cluster.fitting(pod(affinity=far(term(HOST, namespaceSelector={})))) == ["b", "bare", "c"]
    cluster.add({"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "two"}}})
    assert cluster.fitting(pod(affinity=by_label)) == ["a", "b", "bare", "c"]


def test_own_labels_narrow_whom_a_term_is_about() -> None:
    cluster = three()
    cluster.add(pod("old", on="a", labels={**WEB, "build": "1"}))
    new = {**WEB, "build": "2"}
    assert cluster.fitting(pod(labels=new, affinity=far(term(HOST, matchLabelKeys=["build"])))) == ["a", "b", "bare", "c"]
    assert cluster.fitting(pod(labels=new, affinity=far(term(HOST, mismatchLabelKeys=["build"])))) == ["b", "bare", "c"]


def test_wishes_of_both_sides_count() -> None:
    cluster = three()
    cluster.add(pod("there", on="c", labels=WEB))
    wish = {"podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term(HOST)}]}}
    assert cluster.decide(pod(affinity=wish)).node == "c"
    wish = {"podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term(HOST)}]}}
    assert cluster.decide(pod(affinity=wish)).node != "c"
    cluster.add(pod("fan", on="b", affinity={"podAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term(HOST)}]}}))
    assert cluster.decide(pod(labels=WEB)).node == "b"


def test_pods_that_leave_still_count_until_they_are_gone() -> None:
    cluster = three()
    cluster.add(pod("there", on="a", labels=WEB, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert cluster.fitting(pod(affinity=far(term(HOST)))) == ["b", "bare", "c"]


def test_a_pod_is_woken_by_those_that_it_or_they_speak_of() -> None:
    cluster, rule = three(), PodAffinity()
    web, other = read(pod("web", labels=WEB)), read(pod("other"))
    wants_near, wants_far = read(pod(affinity=near())), read(pod(affinity=far()))
    assert rule.unblocked_by(wants_near, Event(What.POD_PLACED, "a", pod=web), cluster.snapshot)
    assert not rule.unblocked_by(wants_near, Event(What.POD_PLACED, "a", pod=other), cluster.snapshot)
    assert rule.unblocked_by(wants_far, Event(What.POD_WENT, "a", pod=web), cluster.snapshot)
    assert not rule.unblocked_by(wants_far, Event(What.POD_WENT, "a", pod=other), cluster.snapshot)
    hostile = read(pod("hostile", affinity=far()))
    assert rule.unblocked_by(web, Event(What.POD_WENT, "a", pod=hostile), cluster.snapshot)

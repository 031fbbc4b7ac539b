"""Room."""

from herder.rules.placement import Event, Offer, What, decide, rules_with
from herder.rules.placement.resources import Resources
from tests.unit.rules.placement.cluster import Cluster, node, pod, read


def test_a_pod_goes_where_there_is_room_for_it() -> None:
    cluster = Cluster(node("small", cpu="1"), node("big", cpu="8"))
    assert cluster.fitting(pod(requests={"cpu": "2"})) == ["big"]


def test_each_thing_there_is_too_little_of_is_named_and_counted() -> None:
    cluster = Cluster(node("a", cpu="1", memory="1Gi"), node("b", cpu="1"), node("c", pods="0"))
    said = cluster.message(pod(requests={"cpu": "2", "memory": "2Gi"}))
    assert said == "0/3 nodes are available: 1 Insufficient memory, 1 Too many pods, 2 Insufficient cpu."


def test_what_placed_pods_take_is_gone_and_comes_back_with_them() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", requests={"cpu": "3"}))
    assert cluster.fitting(pod(requests={"cpu": "2"})) == []
    cluster.snapshot.remove_pod(("default", "there"))
    assert cluster.fitting(pod(requests={"cpu": "2"})) == ["a"]


def test_pods_of_a_node_that_is_not_known_yet_count_once_it_is() -> None:
    cluster = Cluster(pod("there", on="a", requests={"cpu": "3"}), node("a"))
    assert cluster.fitting(pod(requests={"cpu": "2"})) == []
    cluster.snapshot.remove_node("a")
    cluster.add(node("a"))
    assert cluster.fitting(pod(requests={"cpu": "2"})) == []
    assert cluster.fitting(pod(requests={"cpu": "1"})) == ["a"]


def test_an_extended_resource_is_only_where_it_is_offered() -> None:
    cluster = Cluster(node("a"), node("b", example_com__gpu="1"))
    gpu = pod(requests={"example_com/gpu": "1"})
    assert cluster.fitting(gpu) == ["b"]
    cluster.add(pod("there", on="b", requests={"example_com/gpu": "1"}))
    assert cluster.message(gpu) == "0/2 nodes are available: 2 Insufficient example_com/gpu."


def test_the_emptier_node_is_better() -> None:
    cluster = Cluster(node("full"), node("empty"), pod("there", on="full", requests={"cpu": "2", "memory": "4Gi"}))
    scores = cluster.scores(pod(requests={"cpu": "100m", "memory": "200Mi"}))
    assert scores["empty"] > scores["full"]
    assert cluster.decide(pod()).node == "empty"


def test_where_nodes_shall_become_empty_the_fuller_one_is_better_as_long_as_there_is_room() -> None:
    cluster = Cluster(node("full"), node("empty"), pod("there", on="full", requests={"cpu": "2", "memory": "4Gi"}))
    packing = rules_with("MostAllocated")
    assert decide(read(pod(requests={"cpu": "1", "memory": "2Gi"})), cluster.snapshot, packing).node == "full"
    assert decide(read(pod(requests={"cpu": "3", "memory": "6Gi"})), cluster.snapshot, packing).node == "empty"


def test_of_nodes_that_are_alike_the_first_by_name_is_taken() -> None:
    assert Cluster(node("b"), node("a"), node("c")).decide(pod()).node == "a"


def test_a_pod_of_lower_priority_that_is_in_the_way_is_told_of() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", requests={"cpu": "3"}, priority=1), node("b", cpu="1"))
    said = cluster.message(pod(requests={"cpu": "2"}, priority=5))
    assert said == (
        "0/2 nodes are available: 2 Insufficient cpu."
        " 1 node(s) would have room without pods of lower priority; they are not preempted."
    )
    assert "priority" not in cluster.message(pod(requests={"cpu": "2"}, priority=1))


def test_it_is_woken_only_by_what_makes_enough_room() -> None:
    cluster = Cluster(node("a"), node("b", cpu="1"))
    gone = read(pod("gone", on="a"))
    wants = read(pod(requests={"cpu": "2"}))
    assert Resources().unblocked_by(wants, Event(What.POD_WENT, "a", pod=gone), cluster.snapshot)
    assert not Resources().unblocked_by(wants, Event(What.POD_WENT, "b", pod=gone), cluster.snapshot)
    assert not Resources().unblocked_by(wants, Event(What.POD_WENT, "not there", pod=gone), cluster.snapshot)


def test_more_nodes_than_the_first_columns_hold_lose_nothing() -> None:
    cluster = Cluster(*(node(f"n{number:04}", f"z{number % 3}") for number in range(400)))
    cluster.add(pod("there", on="n0007", labels={"app": "x"}, requests={"cpu": "3"}))
    far = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
            ]
        }
    }
    assert "n0007" not in cluster.fitting(pod(affinity=far))
    for number in range(400, 1300):
        cluster.add(node(f"n{number:04}", f"z{number % 3}"))
    fitting = cluster.fitting(pod(affinity=far))
    assert len(fitting) == 1299
    assert "n0007" not in fitting
    assert len(cluster.fitting(pod(requests={"cpu": "2"}))) == 1299


def test_a_node_that_offers_less_than_before_has_less_left() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", requests={"cpu": "1"}))
    cluster.snapshot.put_node(Offer("a", {}, (), False, {"cpu": 2000, "memory": 1 << 33, "pods": 10}))
    assert cluster.fitting(pod(requests={"cpu": "1500m"})) == []
    assert cluster.fitting(pod(requests={"cpu": "1"})) == ["a"]

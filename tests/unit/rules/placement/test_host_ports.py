"""Ports of the node."""

from typing import Any

from herder.rules.placement import Event, What
from herder.rules.placement.host_ports import HostPorts
from tests.unit.rules.placement.cluster import Cluster, node, pod, read


def port(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{"containerPort": 80, "hostPort": number, **more}]


def test_two_pods_of_one_node_cannot_have_the_same_port() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", ports=port(80)))
    assert cluster.message(pod(ports=port(80))) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert cluster.fitting(pod(ports=port(81))) == ["a"]
    assert cluster.fitting(pod(ports=port(80, protocol="UDP"))) == ["a"]


def test_on_different_addresses_they_can_unless_one_takes_all() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", ports=port(80, hostIP="127.0.0.1")))
    assert cluster.fitting(pod(ports=port(80, hostIP="10.0.0.1"))) == ["a"]
    assert cluster.fitting(pod(ports=port(80, hostIP="127.0.0.1"))) == []
    assert cluster.fitting(pod(ports=port(80))) == []


def test_a_port_is_free_again_with_its_pod_and_that_wakes() -> None:
    cluster = Cluster(node("a"), pod("there", on="a", ports=port(80)))
    gone = cluster.snapshot.remove_pod(("default", "there"))
    assert gone is not None
    assert cluster.fitting(pod(ports=port(80))) == ["a"]
    event = Event(What.POD_WENT, "a", pod=gone.needs)
    assert HostPorts().unblocked_by(read(pod(ports=port(80))), event, cluster.snapshot)
    assert not HostPorts().unblocked_by(read(pod(ports=port(81))), event, cluster.snapshot)

"""What a reservation holds, from its template and the pods that took it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from herder.api.core import Pod
from herder.rules.matching.resources import pod_requests
from herder.rules.placement import needs_of
from herder.rules.reservations import Allocation, Ledger
from tests.unit.rules.reservations.objects import OWNER, reservation, web

NOW = 1_800_000_000.0
SEVERAL: dict[str, Any] = {"allocateOnce": False, "requests": {"cpu": "4", "memory": "4Gi"}, "ttl": "0s"}


def put(ledger: Ledger, pod: Pod) -> None:
    ledger.put_pod(pod, needs_of(pod), pod.spec.node_name)


def held(ledger: Ledger, name: str = "r") -> Mapping[str, int] | None:
    found = ledger.held(name)
    return found.needs.requests if found is not None else None


def test_its_whole_room_until_a_pod_takes_it_and_then_none() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a"))
    assert held(ledger) == {"cpu": 1000, "pods": 1}
    put(ledger, web(on="a", took="r", requests={"cpu": "500m"}))
    assert held(ledger) is None
    assert list(ledger.open_for(web("web-2"), NOW)) == []


def test_a_pod_that_it_is_not_for_takes_nothing_of_it_whatever_it_says() -> None:
    stranger = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-other", "controller": True}
    ledger = Ledger()
    ledger.put(reservation(node="a"))
    put(ledger, web(on="a", took="r", owner=stranger))
    assert held(ledger) == {"cpu": 1000, "pods": 1}
    assert list(ledger.pods_of("r")) == []


def test_it_reaches_its_claims_and_uses_none() -> None:
    """Else the pod that comes for the room would find its ReadWriteOncePod claim in use."""
    ledger = Ledger()
    volumes = [
        {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    ledger.put(reservation(node="a", template={"volumes": volumes}))
    needs, found = ledger.needs("r"), ledger.held("r")
    assert needs is not None
    # One that is made for the pod alone is not there yet, and says nothing.
    assert [claim.name for claim in needs.claims] == ["disk"]
    assert found is not None
    assert found.needs.claims == ()


def test_without_allocate_once_it_holds_what_is_left() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a", **SEVERAL))
    put(ledger, web("web-1", on="a", took="r", requests={"cpu": "1", "memory": "1Gi"}))
    put(ledger, web("web-2", on="a", took="r", requests={"cpu": "2"}))
    assert held(ledger) == {"cpu": 1000, "memory": 3 << 30, "pods": 0}
    # More than there was: nothing less than nothing is held.
    put(ledger, web("web-3", on="a", took="r", requests={"cpu": "8"}))
    assert held(ledger) == {"cpu": 0, "memory": 3 << 30, "pods": 0}
    ledger.remove_pod(("default", "web-3"))
    assert held(ledger) == {"cpu": 1000, "memory": 3 << 30, "pods": 0}


def test_a_pod_on_another_node_uses_nothing_of_it() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a", **SEVERAL))
    put(ledger, web(on="b", took="r"))
    assert held(ledger) == {"cpu": 4000, "memory": 4 << 30, "pods": 1}


def test_taken_once_it_is_over_wherever_the_pod_went() -> None:
    """Its node was lost and it was placed anew while a pod took it: the pod has its place."""
    ledger = Ledger()
    ledger.put(reservation(node="b"))
    put(ledger, web(on="a", took="r"))
    assert held(ledger) is None


@pytest.mark.parametrize("first", ["pod", "reservation"])
def test_pod_and_reservation_may_become_known_in_any_order(first: str) -> None:
    ledger = Ledger()
    if first == "reservation":
        ledger.put(reservation(node="a"))
    put(ledger, web(on="a", took="r"))
    if first == "pod":
        ledger.put(reservation(node="a"))
    assert held(ledger) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"status": {"phase": "Pending"}},
        {"status": {"phase": "Failed", "nodeName": "a"}},
        {"status": {"phase": "Succeeded", "nodeName": "a"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_one_that_is_over_or_deleted_or_nowhere_holds_nothing(changed: dict[str, Any]) -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a"))
    ledger.put(reservation(node="a", **changed))
    assert held(ledger) is None
    assert list(ledger.open_for(web(), NOW - 10**9)) == []


def test_what_we_placed_is_held_before_it_is_told_and_nobody_may_take_it_yet() -> None:
    ledger = Ledger()
    ledger.put(reservation())
    ledger.assume("r", "a")
    assert held(ledger) is not None
    assert list(ledger.open_for(web(), 0.0)) == []
    ledger.put(reservation(node="a"))
    assert not ledger.is_assumed("r")
    assert [one.name for one in ledger.open_for(web(), 0.0)] == ["r"]


def test_what_could_not_be_told_is_not_held() -> None:
    ledger = Ledger()
    ledger.put(reservation())
    ledger.assume("r", "a")
    assert ledger.undo("r")
    assert held(ledger) is None


def test_a_closed_one_is_held_and_not_to_be_had() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a", unschedulable=True))
    assert held(ledger) is not None
    assert list(ledger.open_for(web(), 0.0)) == []
    ledger.put(reservation(node="a"))
    assert len(list(ledger.open_for(web(), 0.0))) == 1


def test_the_oldest_comes_first_and_an_expired_one_not_at_all() -> None:
    ledger = Ledger()
    for name, created in (("young", "2026-01-03T00:00:00Z"), ("old", "2026-01-01T00:00:00Z"), ("other", "2026-01-03T00:00:00Z")):
        ledger.put(reservation(name, node="a", ttl="0s", metadata={"creationTimestamp": created}))
    ledger.put(reservation("short", node="a", ttl="1s"))
    assert [one.name for one in ledger.open_for(web(), NOW)] == ["old", "other", "young"]


def test_one_that_was_made_again_under_its_name_is_another_one() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a"))
    put(ledger, web(on="a", took="r"))
    ledger.put(reservation(node="a", metadata={"uid": "another"}, requests={"cpu": "3"}))
    assert held(ledger) == {"cpu": 3000, "pods": 1}


def test_what_has_a_limit_and_no_request_asks_for_as_much() -> None:
    container = {"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    ledger = Ledger()
    ledger.put(reservation(node="a", template={"containers": [container]}))
    assert held(ledger) == {"cpu": 1000, "memory": 1 << 30, "pods": 1}


@pytest.mark.parametrize("seed", range(200))
def test_whatever_happens_in_whatever_order_the_room_is_what_a_recount_finds(seed: int) -> None:
    chance = random.Random(seed)
    ledger = Ledger()
    reservations: dict[str, Any] = {}
    pods: dict[str, Pod] = {}
    for _ in range(60):
        name, pod_name = f"r{chance.randrange(4)}", f"web-{chance.randrange(6)}"
        match chance.randrange(6):
            case 0 | 1:
                once = chance.random() < 0.5
                node = chance.choice(("", "a", "b"))
                uid = chance.choice((f"uid-{name}", "another"))
                more: dict[str, Any] = {"metadata": {"uid": uid}, "allocateOnce": once, "unschedulable": chance.random() < 0.3}
                reservations[name] = reservation(name, node=node, requests={"cpu": "4"}, **more)
                ledger.put(reservations[name])
            case 2:
                reservations.pop(name, None)
                ledger.remove(name)
            case 3 | 4:
                pods[pod_name] = web(pod_name, on=chance.choice(("a", "b")), took=chance.choice(("", name)))
                put(ledger, pods[pod_name])
            case _:
                pods.pop(pod_name, None)
                ledger.remove_pod(("default", pod_name))
        fresh = Ledger()
        for pod in pods.values():
            put(fresh, pod)
        for one in reservations.values():
            fresh.put(one)
        # Template and owners of one uid are immutable: what differs between two of one uid is not looked at again.
        same = {name: ledger.needs(name) for name in reservations} == {name: fresh.needs(name) for name in reservations}
        assert same
        for each in reservations:
            assert held(ledger, each) == held(fresh, each)
        for pod in (web("new"), web("old", on="a")):
            assert [one.name for one in ledger.open_for(pod, 0.0)] == [one.name for one in fresh.open_for(pod, 0.0)]


def test_an_allocation_of_ours_counts_before_the_pod_says_it() -> None:
    ledger = Ledger()
    ledger.put(reservation(node="a", owners=[OWNER]))
    pod = web()
    assert ledger.put_pod(pod, needs_of(pod), "a", Allocation("r", "uid-r")) == {"r"}
    assert held(ledger) is None
    assert ledger.remove_pod(("default", "web-1")) == {"r"}
    assert held(ledger) == {"cpu": 1000, "pods": 1}
    assert pod_requests(pod)["cpu"] == 1000

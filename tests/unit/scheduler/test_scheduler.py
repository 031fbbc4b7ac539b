"""The loop: who is placed, who waits and is woken, and what happens when a bind goes wrong."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from herder.kube.errors import Conflict, Invalid
from herder.kube.resources import CLAIMS, EVENTS, NODES, PODS, PRIORITY_CLASSES, STORAGE_CLASSES, VOLUMES, Key
from herder.scheduler.hands import Hands
from tests.unit.rules.placement.cluster import HOST, ZONE
from tests.unit.scheduler.place import Town, play, rest

WEB = {"app": "web"}


@pytest.mark.slow
def test_a_pod_of_ours_is_bound_and_an_event_says_where() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await town.pod("p")
        await rest()
        assert await town.node_of("p") == "a"
        notes = [event.note for event in (await town.client.list(EVENTS)).items if event.reason == "Scheduled"]
        assert notes == ["Successfully assigned default/p to a"]

    play(scenario)


@pytest.mark.slow
def test_pods_of_other_schedulers_are_left_alone() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await town.pod("p", scheduler="default-scheduler")
        await rest()
        assert await town.node_of("p") == ""

    play(scenario)


@pytest.mark.slow
def test_the_pod_of_an_instance_that_is_gone_is_not_placed() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "gone", "uid": "1", "controller": True}
        await town.pod("p", metadata={"ownerReferences": [owner]})
        await rest()
        assert await town.node_of_any("p") == ""

    play(scenario)


def test_a_pod_that_no_node_will_have_says_why_and_goes_when_there_is_one() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="1")
        await town.pod("p", requests={"cpu": "2"})
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 Insufficient cpu."
        events = [event for event in (await town.client.list(EVENTS)).items if event.reason == "FailedScheduling"]
        assert [event.note for event in events] == ["0/1 nodes are available: 1 Insufficient cpu."]
        await town.nodes("b", cpu="4")
        await rest()
        assert await town.node_of("p") == "b"

    play(scenario)


def test_while_nothing_changes_a_waiting_pod_is_not_looked_at_again() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="1")
        await town.pod("p", requests={"cpu": "2"})
        await rest(900)
        assert town.attempts()["unschedulable"] == 1
        # Of no use to it.
        await town.pod("small", requests={"cpu": "100m"})
        await rest()
        await town.remove("small")
        await rest(900)
        assert town.attempts()["unschedulable"] == 1

    play(scenario)


@pytest.mark.slow
def test_without_any_node_pods_wait_for_the_first() -> None:
    async def scenario(town: Town) -> None:
        await town.pod("p")
        await rest()
        assert await town.condition("p") == "no nodes available to schedule pods"
        await town.nodes("a")
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_room_that_becomes_free_goes_to_the_more_important() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="2")
        await town.pod("first", requests={"cpu": "2"})
        await rest()
        await town.pod("low", requests={"cpu": "2"})
        await town.client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
        await town.pod("high", requests={"cpu": "2"}, priorityClassName="high")
        await rest()
        assert "1 node(s) would have room without pods of lower priority" in await town.condition("high")
        assert "priority" not in await town.condition("low")
        await town.remove("first")
        await rest()
        assert [await town.node_of("low"), await town.node_of("high")] == ["", "a"]

    play(scenario)


@pytest.mark.slow
def test_decisions_stand_on_those_before_although_their_binds_are_still_on_the_way() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b", cpu="2")
        town.line.seconds = 5.0
        for number in range(6):
            await town.pod(f"p{number}", requests={"cpu": "1"})
        await rest(60)
        placed = [await town.node_of(f"p{number}") for number in range(6)]
        assert sorted(placed) == ["", "", "a", "a", "b", "b"]

    play(scenario)


@pytest.mark.slow
def test_gates_hold_a_pod_until_the_last_is_gone() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await town.pod("p", schedulingGates=[{"name": "example.com/wait"}])
        await rest()
        assert await town.node_of("p") == ""
        await town.client.patch(PODS, Key("default", "p"), {"spec": {"schedulingGates": []}})
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_an_answer_that_got_lost_does_not_free_the_room() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="2")
        await rest()
        town.line.deaf = True
        await town.pod("p", requests={"cpu": "2"})
        await rest(1)
        town.line.deaf = False
        await town.pod("q", requests={"cpu": "2"})
        await rest()
        assert [await town.node_of("p"), await town.node_of("q")] == ["a", ""]

    play(scenario)


@pytest.mark.slow
def test_a_bind_that_nobody_hears_is_undone_and_tried_again() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await rest()
        town.line.cut = True
        await town.pod("p")
        await rest()
        assert await town.node_of("p") == ""
        town.line.cut = False
        await rest()
        assert await town.node_of("p") == "a"
        assert town.attempts()["error"] >= 1

    play(scenario)


@pytest.mark.slow
def test_an_uncordon_wakes_those_that_it_kept_waiting() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", unschedulable=True)
        await town.pod("p")
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 node(s) were unschedulable."
        await town.client.patch(NODES, Key("", "a"), {"spec": {"unschedulable": None}})
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_a_pod_that_wants_company_is_woken_when_it_comes() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", zone="z1")
        near = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": WEB}}]
        await town.pod("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}})
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
        await town.pod("web", labels=WEB)
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_a_changed_pod_is_looked_at_anew() -> None:
    async def scenario(town: Town) -> None:
        far = [{"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}]
        await town.nodes("a")
        await town.pod("hostile", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": far}})
        await rest()
        await town.pod("p", labels=WEB)
        await rest()
        assert await town.node_of("p") == ""
        await town.client.patch(PODS, Key("default", "p"), {"metadata": {"labels": {"app": "other"}}})
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


def test_a_pod_waits_for_its_claim_and_goes_where_the_volume_is() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b")
        disks = [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]
        await town.pod("p", volumes=disks)
        await rest()
        assert await town.condition("p") == '0/2 nodes are available: persistentvolumeclaim "disk" not found.'
        await town.client.create(VOLUMES, _volume("b"))
        await town.client.create(CLAIMS, _claim(volumeName="v"), "default")
        await rest()
        bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
        await town.client.patch(CLAIMS, Key("default", "disk"), bound)
        await rest()
        assert await town.node_of("p") == "b"

    play(scenario)


@pytest.mark.slow
def test_a_late_volume_is_asked_for_at_the_chosen_node_whose_room_is_kept() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="2")
        late = {"metadata": {"name": "late"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await town.client.create(STORAGE_CLASSES, late)
        await town.client.create(CLAIMS, _claim(storageClassName="late"), "default")
        disks = [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]
        await town.pod("p", volumes=disks, requests={"cpu": "2"})
        await rest()
        claim = await town.client.get(CLAIMS, Key("default", "disk"))
        assert claim.annotations["volume.kubernetes.io/selected-node"] == "a"
        await town.pod("greedy", requests={"cpu": "2"})
        await rest()
        assert [await town.node_of("p"), await town.node_of("greedy")] == ["", ""]
        await town.client.create(VOLUMES, _volume("a"))
        done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"}}
        await town.client.patch(CLAIMS, Key("default", "disk"), done)
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_an_outage_while_the_node_of_a_late_volume_is_written_is_made_good() -> None:
    """The volume would never be made, and nothing would ever wake the pod."""

    async def scenario(town: Town) -> None:
        await town.nodes("a")
        late = {"metadata": {"name": "late"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await town.client.create(STORAGE_CLASSES, late)
        await town.client.create(CLAIMS, _claim(storageClassName="late"), "default")
        await rest()
        town.line.cut = True
        await town.pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
        await rest()
        town.line.cut = False
        await rest()
        claim = await town.client.get(CLAIMS, Key("default", "disk"))
        assert claim.annotations["volume.kubernetes.io/selected-node"] == "a"

    play(scenario)


@pytest.mark.slow
def test_an_outage_while_it_is_said_why_a_pod_waits_is_made_good() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="1")
        await rest()
        town.line.cut = True
        await town.pod("p", requests={"cpu": "2"})
        await rest()
        town.line.cut = False
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 Insufficient cpu."

    play(scenario)


@pytest.mark.slow
def test_what_was_refused_because_others_wrote_at_the_same_time_is_written_again() -> None:
    """Why a pod waits, and the node of a late volume: nobody else would ever write them."""

    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="1")
        late = {"metadata": {"name": "late"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await town.client.create(STORAGE_CLASSES, late)
        await town.client.create(CLAIMS, _claim(storageClassName="late"), "default")
        await rest()
        busy = Conflict(409, "Conflict", "the object has been modified")
        town.line.refusals = {"/p/status": busy, "/disk": busy}
        await town.pod("p", requests={"cpu": "2"})
        await town.pod("q", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
        await rest()
        town.line.refusals.clear()
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 Insufficient cpu."
        claim = await town.client.get(CLAIMS, Key("default", "disk"))
        assert claim.annotations["volume.kubernetes.io/selected-node"] == "a"

    play(scenario)


@pytest.mark.slow
def test_a_pod_whose_late_volume_was_asked_for_at_a_node_that_is_gone_says_so() -> None:
    """As with kube-scheduler, whoever makes the volumes lets go of the choice; then it goes elsewhere."""

    async def scenario(town: Town) -> None:
        await town.nodes("a", "b")
        late = {"metadata": {"name": "late"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await town.client.create(STORAGE_CLASSES, late)
        await town.client.create(CLAIMS, _claim(storageClassName="late"), "default")
        await town.pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}])
        await rest()
        chosen = "volume.kubernetes.io/selected-node"
        assert (await town.client.get(CLAIMS, Key("default", "disk"))).annotations[chosen] == "a"
        await town.delete(NODES, "a")
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
        await town.client.patch(CLAIMS, Key("default", "disk"), {"metadata": {"annotations": {chosen: None}}})
        await rest()
        assert (await town.client.get(CLAIMS, Key("default", "disk"))).annotations[chosen] == "b"

    play(scenario)


@pytest.mark.slow
def test_a_mistake_while_a_pod_is_bound_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes = iter([ValueError("a mistake of ours")])
    bind = Hands.bind

    async def sometimes(hands: Hands, *words: Any) -> bool:
        for mistake in mistakes:
            raise mistake
        return await bind(hands, *words)

    monkeypatch.setattr(Hands, "bind", sometimes)

    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await town.pod("p")
        await rest()
        assert await town.node_of("p") == "a"

    play(scenario)


@pytest.mark.slow
def test_nothing_is_placed_on_a_node_that_is_being_deleted_whatever_it_tolerates() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await town.client.patch(NODES, Key("", "a"), {"metadata": {"finalizers": ["herder.dev/guests"]}})
        await town.delete(NODES, "a")
        await town.pod("p", tolerations=[{"operator": "Exists"}])
        await rest()
        assert await town.condition("p") == "0/1 nodes are available: 1 node(s) were being deleted."

    play(scenario)


def _volume(host: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return {"metadata": {"name": "v"}, "spec": {**spec, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


def _claim(**spec: Any) -> dict[str, Any]:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "", **spec}
    return {"metadata": {"name": "disk"}, "spec": whole}


@pytest.mark.slow
def test_a_pod_that_cannot_be_placed_by_a_mistake_of_ours_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    async def scenario(town: Town) -> None:
        await town.nodes("a")
        monkeypatch.setattr(sys.modules["herder.scheduler.scheduler"], "decide", mistaken)
        await town.pod("p")
        await rest()
        assert await town.condition("p") == "an error in herder itself: ZeroDivisionError: division by zero"
        monkeypatch.undo()
        await rest(400)
        assert await town.node_of("p") == "a"

    play(scenario)


def test_a_pod_whose_binding_is_refused_says_why() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        town.line.refusals["/binding"] = Invalid(422, "Invalid", "the binding is refused by a webhook")
        await town.pod("p")
        await rest()
        assert await town.condition("p") == "binding to node a: the binding is refused by a webhook"
        town.line.refusals.clear()
        await rest(400)
        assert await town.node_of("p") == "a"

    play(scenario)

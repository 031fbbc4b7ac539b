"""Room that is held: for whom, where, for how long, and what becomes of it when things go wrong (seed 004)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from herder.kube.errors import Unreachable
from herder.kube.resources import EVENTS, NODES, PODS, PRIORITY_CLASSES, RESERVATIONS, Key
from tests.unit.kube.virtual import samples
from tests.unit.scheduler.place import rest
from tests.unit.scheduler.reserving import (
    ALLOCATED,
    Town,
    close,
    free,
    job,
    play_with_reservations,
    recounted,
    reserve,
    reserved,
    web,
)

LARGE: dict[str, Any] = {"requests": {"cpu": "3"}}
SPREAD = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "topology.kubernetes.io/zone"}
]}}  # fmt: skip


def test_room_is_held_from_others_and_given_to_whom_it_is_for() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b")
        await reserve(town, **LARGE, template={"nodeSelector": {"kubernetes.io/hostname": "a"}})
        await rest()
        held = await reserved(town)
        assert (held.status.phase, held.status.node_name, held.status.allocatable) == ("Available", "a", {"cpu": "3"})
        assert samples(town.registry, "herder_reservations")["Available",] == 1
        assert samples(town.registry, "herder_reserved_resources") == {("cpu",): 3.0, ("memory",): 0.0}
        # A stranger would fit there, were it not held.
        await town.pod("stranger", requests={"cpu": "3"})
        await rest()
        assert await town.node_of("stranger") == "b"
        # Node a is the fuller one: for any other pod it would be the worse.
        await web(town, "mine", requests={"cpu": "3"})
        await rest()
        found = await town.get("mine")
        assert (found.spec.node_name, found.annotations[ALLOCATED]) == ("a", f'{{"name":"r","uid":"{held.uid}"}}')
        taken = await reserved(town)
        assert (taken.status.phase, [one.name for one in taken.status.current_owners or ()]) == ("Succeeded", ["mine"])
        notes = {event.note for event in (await town.client.list(EVENTS)).items}
        assert {"holds room on node a", "pod default/mine took the room on node a"} <= notes
        assert samples(town.registry, "herder_reserved_resources")["cpu",] == 0
        assert free(town) == await recounted(town) == {"a": 1000, "b": 1000}

    play_with_reservations(scenario)


def test_a_pod_takes_the_oldest_that_fits_and_a_closed_one_not_at_all() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b", "c", "d")
        for name in ("a", "b", "c"):
            await reserve(town, f"on-{name}", template={"nodeSelector": {"kubernetes.io/hostname": name}})
            await rest(2)
        await close(town, "on-a", True)
        await rest()
        await web(town, "first", nodeSelector={"kubernetes.io/hostname": "c"})
        await web(town, "second")
        await web(town, "third")
        await rest()
        assert [await town.node_of(one) for one in ("first", "second")] == ["c", "b"]
        assert ALLOCATED not in (await town.get("third")).annotations
        assert (await reserved(town, "on-a")).status.phase == "Available"

    play_with_reservations(scenario)


def test_a_pod_that_waits_goes_as_soon_as_a_reservation_for_it_is_opened() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="2")
        await reserve(town, requests={"cpu": "2"}, unschedulable=True)
        await rest()
        await web(town, "mine", requests={"cpu": "2"})
        await rest(0.3)
        assert await town.condition("mine") == "0/1 nodes are available: 1 Insufficient cpu."
        await close(town, "r", False)
        await rest(0.3)
        # It was tried in vain a moment ago, and does not sit that out.
        assert await town.node_of("mine") == "a"

    play_with_reservations(scenario)


def test_that_it_was_opened_is_told_with_who_took_it_or_a_moment_later() -> None:
    async def scenario(town: Town) -> None:
        def patches() -> int:
            return sum(call.method == "PATCH" and call.path.endswith("/reservations/r/status") for call in town.line.calls)

        await town.nodes("a")
        await reserve(town, unschedulable=True)
        await rest()
        placed = patches()
        await close(town, "r", False)
        await web(town, "mine")
        await rest()
        held = await reserved(town)
        assert (held.status.phase, held.status.observed_generation, patches() - placed) == ("Succeeded", 2, 1)
        await reserve(town, "s", unschedulable=True)
        await rest()
        await close(town, "s", False)
        await rest(5)
        assert (await reserved(town, "s")).status.observed_generation == 2

    play_with_reservations(scenario)


def test_several_pods_share_one_that_is_not_allocated_once() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b")
        await reserve(town, requests={"cpu": "3"}, allocateOnce=False, template={"nodeSelector": {"kubernetes.io/hostname": "a"}})
        await rest()
        for name in ("one", "two"):
            await web(town, name, requests={"cpu": "1"})
            await rest()
        held = await reserved(town)
        assert (held.status.phase, held.status.allocated) == ("Available", {"cpu": "2"})
        assert [one.name for one in held.status.current_owners or ()] == ["one", "two"]
        assert free(town) == await recounted(town) == {"a": 1000, "b": 4000}
        await town.remove("one")
        await rest()
        assert (await reserved(town)).status.allocated == {"cpu": "1"}
        assert free(town) == await recounted(town) == {"a": 1000, "b": 4000}

    play_with_reservations(scenario)


def test_one_that_finds_no_room_says_why_and_is_placed_when_there_is_some() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="1")
        await reserve(town, **LARGE)
        await rest(600)
        held = await reserved(town)
        assert (held.status.phase, held.status.message) == ("Pending", "0/1 nodes are available: 1 Insufficient cpu.")
        writes = len(town.line.writes())
        await rest(600)
        assert len(town.line.writes()) == writes, "a waiting one costs nothing while nothing changes"
        await town.nodes("b")
        await rest()
        assert (await reserved(town)).status.node_name == "b"

    play_with_reservations(scenario)


def test_the_more_important_one_gets_the_room_by_the_class_that_its_template_names() -> None:
    async def scenario(town: Town) -> None:
        await town.client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
        await reserve(town, "old", **LARGE)
        await rest(5)
        await reserve(town, "important", **LARGE, template={"priorityClassName": "high"})
        await rest()
        await town.nodes("a")
        await rest()
        assert [(await reserved(town, name)).status.phase for name in ("old", "important")] == ["Pending", "Available"]

    play_with_reservations(scenario)


def test_expired_or_deleted_the_room_is_free_at_once() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", cpu="3")
        await reserve(town, "short", **LARGE, ttl="100s")
        await rest()
        await town.pod("p", requests={"cpu": "3"})
        await rest()
        assert await town.node_of("p") == ""
        await rest(60)
        assert (await reserved(town, "short")).status.reason == "Expired"
        assert await town.node_of("p") == "a"
        await town.remove("p")
        await reserve(town, "long", **LARGE)
        await rest()
        await town.pod("q", requests={"cpu": "3"})
        await rest()
        await town.delete(RESERVATIONS, "long")
        await rest()
        assert await town.node_of("q") == "a"
        # Nobody keeps what is over for ever.
        await rest(25 * 3600)
        assert await town.client.find(RESERVATIONS, Key("", "short")) is None

    play_with_reservations(scenario)


@pytest.mark.parametrize("what", ["gone", "cordoned", "tainted"])
def test_unconsumed_room_moves_when_its_node_goes_is_cordoned_or_tainted(what: str) -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a", "b")
        await reserve(town, **LARGE)
        await rest()
        where = (await reserved(town)).status.node_name or ""
        if what == "gone":
            await town.delete(NODES, where)
        else:
            taints = [{"key": "broken", "effect": "NoSchedule"}]
            spec = {"unschedulable": True} if what == "cordoned" else {"taints": taints}
            await town.client.patch(NODES, Key("", where), {"spec": spec})
        await rest()
        held = await reserved(town)
        assert (held.status.phase, held.status.node_name) == ("Available", "b" if where == "a" else "a")
        assert free(town) == await recounted(town)

    play_with_reservations(scenario)


def test_a_job_s_reservation_is_judged_as_if_its_pod_were_gone() -> None:
    """One pod in each zone, and two zones: the replacement of one fits only where it has left."""

    async def scenario(town: Town) -> None:
        await town.nodes("a1", "a2", zone="a")
        await town.nodes("b1", zone="b")
        for name, node in (("web-1", "a1"), ("web-2", "b1")):
            await web(town, name, labels={"app": "web"}, affinity=SPREAD, nodeSelector={"kubernetes.io/hostname": node})
        await rest()
        elsewhere = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a1"]}]}
        affinity = {
            **SPREAD,
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [elsewhere]}},
        }
        about: dict[str, Any] = {"labels": {"app": "web"}, "template": {"affinity": affinity}}
        await reserve(town, "anyone", **about)
        await rest()
        assert (await reserved(town, "anyone")).status.phase == "Pending"
        await reserve(town, "job", metadata={"ownerReferences": [await job(town, "move", "web-1")]}, **about)
        await rest()
        assert (await reserved(town, "job")).status.node_name == "a2"
        await town.remove("web-1")
        await web(town, "web-3", labels={"app": "web"}, affinity=SPREAD)
        await rest()
        assert await town.node_of("web-3") == "a2"

    play_with_reservations(scenario)


def test_a_pod_waits_for_its_room_while_the_one_before_it_is_ending() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a1", "a2", zone="a")
        await town.nodes("c1", zone="c")
        held = {"labels": {"app": "web"}, "affinity": SPREAD, "nodeSelector": {"kubernetes.io/hostname": "a1"}}
        await web(town, "old", finalizers=["example.com/held"], **held)
        await rest()
        about: dict[str, Any] = {
            "labels": {"app": "web"},
            "template": {"affinity": SPREAD, "nodeSelector": {"kubernetes.io/hostname": "a2"}},
        }
        await reserve(town, "job", metadata={"ownerReferences": [await job(town, "move", "old")]}, **about)
        await rest()
        assert (await reserved(town, "job")).status.node_name == "a2"
        await town.remove("old")
        await web(town, "new", labels={"app": "web"}, affinity=SPREAD)
        await rest()
        assert await town.node_of("new") == "", "zone c would have it, but its room is elsewhere"
        assert "fits once pod default/old has ended" in await town.condition("new")
        await town.client.patch(PODS, Key("default", "old"), {"metadata": {"finalizers": None}})
        await rest()
        assert await town.node_of("new") == "a2"

    play_with_reservations(scenario)


def test_bind_answered_with_an_error_but_done_then_another_leads() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await reserve(town, **LARGE)
        await rest()
        town.line.deaf = True
        await web(town, "mine", requests={"cpu": "3"})
        await rest(5)
        await town.end()
        town.line.deaf = False
        assert await town.node_of("mine") == "a"
        town.begin()
        await rest()
        assert (await reserved(town)).status.phase == "Succeeded"
        assert free(town) == await recounted(town) == {"a": 1000}

    play_with_reservations(scenario)


def test_reservation_deleted_while_a_bind_is_under_way() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await reserve(town, **LARGE)
        await rest()
        town.line.seconds = 5.0
        await web(town, "mine", requests={"cpu": "3"})
        await rest(1)
        await town.delete(RESERVATIONS, "r")
        await rest()
        assert await town.node_of("mine") == "a"
        assert free(town) == await recounted(town) == {"a": 1000}

    play_with_reservations(scenario)


def test_what_is_written_into_a_pod_later_counts_for_the_scheduler_as_for_everybody() -> None:
    async def scenario(town: Town) -> None:
        await town.nodes("a")
        await web(town, "mine", requests={"cpu": "1"})
        await rest()
        await reserve(town, requests={"cpu": "2"}, allocateOnce=False)
        await rest()
        said = f'{{"name":"r","uid":"{(await reserved(town)).uid}"}}'
        await town.client.patch(PODS, Key("default", "mine"), {"metadata": {"annotations": {ALLOCATED: said}}})
        await rest()
        assert free(town) == await recounted(town) == {"a": 2000}

    play_with_reservations(scenario)


@pytest.mark.parametrize("seed", range(6))
def test_after_any_sequence_the_free_room_is_what_a_recount_finds(seed: int) -> None:
    """Reserve, bind, lost answers, release, expire, node loss, restart."""

    async def scenario(town: Town) -> None:
        chance = random.Random(seed)
        await town.nodes("a", "b", "c")
        for number in range(30):
            await _something(town, chance, number)
            await rest(chance.choice((0.01, 0.5, 40)))
        town.line.deaf = town.line.cut = False
        town.line.refusals.clear()
        await rest(120)
        assert free(town) == await recounted(town)
        await town.end()
        town.begin()
        await rest(60)
        assert free(town) == await recounted(town)
        assert all(amount >= 0 for amount in free(town).values()), "nobody was promised what another one had"

    play_with_reservations(scenario)


async def _something(town: Town, chance: random.Random, number: int) -> None:
    match chance.randrange(9):
        case 0 | 1:
            once, ttl = chance.random() < 0.6, chance.choice(("30s", "10m", "0s"))
            amount = {"cpu": chance.choice(("1", "2"))}
            await reserve(town, f"r{number}", requests=amount, allocateOnce=once, ttl=ttl, unschedulable=chance.random() < 0.2)
        case 2 | 3:
            await web(town, f"web-{number}", requests={"cpu": chance.choice(("500m", "1", "2"))})
        case 4:
            pods = [one.name for one in (await town.client.list(PODS)).items]
            if pods:
                await town.remove(chance.choice(pods))
        case 5:
            listed = [one.name for one in (await town.client.list(RESERVATIONS)).items]
            if listed:
                await town.delete(RESERVATIONS, chance.choice(listed))
        case 6:
            town.line.deaf = not town.line.deaf
        case 7:
            name = chance.choice(("a", "b", "c"))
            await town.client.patch(NODES, Key("", name), {"spec": {"unschedulable": chance.random() < 0.5}})
        case _:
            town.line.refusals = {} if town.line.refusals else {"/binding": Unreachable("cut"), "/status": Unreachable("cut")}
            if chance.random() < 0.4:
                await town.end()
                town.begin()

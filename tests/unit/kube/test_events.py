"""The recorder of events, against the embedded engine in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from herder.api import core
from herder.api.core import EventsEvent
from herder.kube import events
from herder.kube.client import Client, Selection
from herder.kube.events import AT_ONCE, Recorder
from herder.kube.metrics import EVENT_RESULTS
from herder.kube.resources import CONFIG_MAPS, EVENTS, NODES, Key
from herder.kube.transport import Call
from tests.unit.kube.engine import Line, Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples


def thing(name: str = "thing", uid: str = "u-1") -> core.ConfigMap:
    # As the items of a list: without a kind.
    return msgspec.json.decode(f'{{"metadata":{{"name":"{name}","namespace":"default","uid":"{uid}"}}}}', type=core.ConfigMap)


class Desk:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.client = place.client()
        self.line: Line = place.line()
        self.registry = CollectorRegistry()
        self.recorder = Recorder(
            Client(self.line, "herder"), world, "herder.dev/controllers", instance="here-1", registry=self.registry
        )
        self.task = asyncio.create_task(self.recorder.run())

    async def events(self) -> list[EventsEvent]:
        await self.recorder.wait_written()
        return (await self.client.list(EVENTS, Selection("default"))).items

    def counted(self) -> dict[str, float]:
        return {result: value for (_, result), value in samples(self.registry, "herder_events_total").items() if value}


def at_a_desk(scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world) as place:
            desk = Desk(place, world)
            try:
                await scenario(desk)
            finally:
                desk.task.cancel()
                await asyncio.wait([desk.task])

    in_virtual_time(run())


@pytest.mark.slow
def test_what_is_told_is_an_event_that_says_everything() -> None:
    async def scenario(desk: Desk) -> None:
        assert samples(desk.registry, "herder_events_total") == {("herder.dev/controllers", result): 0 for result in EVENT_RESULTS}
        desk.recorder.warning(thing(), "Broken", "It is broken.", action="Mending")
        (event,) = await desk.events()
        assert event.name.startswith("thing.80000000000000")
        assert (event.type, event.reason, event.action, event.note) == ("Warning", "Broken", "Mending", "It is broken.")
        about = event.regarding
        assert (about.api_version, about.kind, about.namespace, about.name, about.uid) == (
            "v1",
            "ConfigMap",
            "default",
            "thing",
            "u-1",
        )
        assert (event.reporting_controller, event.reporting_instance) == ("herder.dev/controllers", "here-1")
        assert event.series is None and event.event_time is not None
        assert desk.counted() == {"created": 1}

    at_a_desk(scenario)


def test_the_same_told_again_is_a_series_of_one_event() -> None:
    async def scenario(desk: Desk) -> None:
        for _ in range(5):
            desk.recorder.normal(thing(), "Waits", "For room.")
            await desk.events()
            await asyncio.sleep(60)
        desk.recorder.normal(thing(), "Waits", "For something else.")
        desk.recorder.normal(thing(uid="u-2"), "Waits", "For room.")
        events = sorted(await desk.events(), key=lambda event: event.name)
        assert [event.note for event in events] == ["For room.", "For something else.", "For room."]
        series = events[0].series
        assert series is not None and series.count == 5
        assert series.last_observed_time is not None and events[0].event_time is not None
        assert (series.last_observed_time - events[0].event_time).total_seconds() == 240
        assert desk.counted() == {"created": 3, "patched": 4}

    at_a_desk(scenario)


def test_what_is_told_often_before_it_is_written_is_one_write() -> None:
    async def scenario(desk: Desk) -> None:
        for _ in range(10):
            desk.recorder.normal(thing(), "Waits", "For room.")
        (event,) = await desk.events()
        assert event.series is not None and event.series.count == 10
        assert len(desk.line.writes()) == 1

    at_a_desk(scenario)


@pytest.mark.slow
def test_after_some_minutes_of_silence_it_is_a_new_event() -> None:
    async def scenario(desk: Desk) -> None:
        desk.recorder.normal(thing(), "Waits", "For room.")
        await desk.events()
        await asyncio.sleep(400)
        desk.recorder.normal(thing(), "Waits", "For room.")
        assert [event.series for event in await desk.events()] == [None, None]

    at_a_desk(scenario)


@pytest.mark.slow
def test_an_object_may_have_25_writes_at_once_and_then_one_in_five_minutes() -> None:
    async def scenario(desk: Desk) -> None:
        for number in range(40):
            desk.recorder.normal(thing(), "Counts", f"Number {number}.")
        desk.recorder.normal(thing("other"), "Counts", "Somebody else's.")
        assert len(await desk.events()) == 26
        assert desk.counted() == {"created": 26, "limited": 15}
        await asyncio.sleep(301)
        desk.recorder.normal(thing(), "Counts", "Number 40.")
        desk.recorder.normal(thing(), "Counts", "Number 41.")
        assert len(await desk.events()) == 27

    at_a_desk(scenario)


@pytest.mark.slow
def test_repetitions_above_the_limit_are_counted_and_go_with_the_next_write() -> None:
    async def scenario(desk: Desk) -> None:
        for _ in range(330):
            desk.recorder.normal(thing(), "Waits", "For room.")
            await desk.events()
            await asyncio.sleep(1)
        (event,) = await desk.events()
        assert event.series is not None and event.series.count > 290
        assert len(desk.line.writes()) == 26

    at_a_desk(scenario)


@pytest.mark.slow
def test_telling_never_waits_and_what_is_too_much_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_WAITING", 500)

    async def scenario(desk: Desk) -> None:
        desk.line.cut = True
        for number in range(600):
            desk.recorder.normal(thing(f"thing-{number}"), "Told", "While nobody listens.")
        assert desk.counted() == {"overflowed": 100}
        desk.line.cut = False
        assert len(await desk.events()) == 500

    at_a_desk(scenario)


def tell_of_many(desk: Desk, count: int) -> None:
    for number in range(count):
        desk.recorder.normal(thing(f"thing-{number}"), "Told", "One of many.")


@pytest.mark.slow
@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.0), (0.02, 0.08), (5.0, 1.0)])
def test_where_writes_take_long_there_is_time_for_others_between_them(took: float, rest: float) -> None:
    async def scenario(desk: Desk) -> None:
        clock = asyncio.get_running_loop().time
        desk.line.seconds, began = took, clock()
        tell_of_many(desk, 3 * AT_ONCE)
        assert len(await desk.events()) == 3 * AT_ONCE
        assert clock() - began == pytest.approx(3 * took + 2 * rest)
        tell_of_many(desk, 1)
        await desk.recorder.wait_written()
        assert clock() - began == pytest.approx(4 * took + 3 * rest), "who tells slowly is not quicker than who tells all at once"

    at_a_desk(scenario)


@pytest.mark.slow
def test_at_the_end_there_is_nothing_to_rest_for() -> None:
    async def scenario(desk: Desk) -> None:
        clock = asyncio.get_running_loop().time
        desk.line.seconds, began = 5.0, clock()
        tell_of_many(desk, 3 * AT_ONCE)
        await asyncio.sleep(6)
        await desk.recorder.wait_written(hurry=True)
        assert clock() - began == pytest.approx(16)

    at_a_desk(scenario)


def test_objects_of_two_kinds_are_two_whatever_they_are_called() -> None:
    async def scenario(desk: Desk) -> None:
        clock = asyncio.get_running_loop().time
        desk.line.seconds, began = 1.0, clock()
        secret = msgspec.json.decode(b'{"metadata":{"name":"thing","namespace":"default","uid":"u-2"}}', type=core.Secret)
        for one in (thing(), secret):
            desk.recorder.normal(one, "Told", "At once.")
        assert len(await desk.events()) == 2
        assert clock() - began == pytest.approx(1.0)

    at_a_desk(scenario)


@pytest.mark.slow
def test_what_is_told_about_one_object_keeps_its_order() -> None:
    async def scenario(desk: Desk) -> None:
        for note in ("First.", "Second.", "Third."):
            desk.recorder.normal(thing(), "Told", note)
            desk.recorder.normal(thing("other", "u-2"), "Told", note)
        found = sorted(await desk.events(), key=lambda event: int(event.metadata.resource_version or ""))
        for name in ("thing", "other"):
            assert [event.note for event in found if event.regarding.name == name] == ["First.", "Second.", "Third."]

    at_a_desk(scenario)


def test_a_server_that_is_away_for_a_minute_misses_nothing() -> None:
    async def scenario(desk: Desk) -> None:
        desk.line.cut = True
        desk.recorder.normal(thing(), "Told", "First.")
        desk.recorder.normal(thing(), "Told", "Second.")
        await asyncio.sleep(60)
        desk.line.cut = False
        assert [event.note for event in await desk.events()] == ["First.", "Second."]

    at_a_desk(scenario)


@pytest.mark.slow
def test_a_write_whose_answer_was_lost_is_one_event() -> None:
    async def scenario(desk: Desk) -> None:
        desk.line.deaf = True
        desk.recorder.normal(thing(), "Told", "Once.")
        await asyncio.sleep(1)
        desk.recorder.normal(thing(), "Told", "Once.")
        desk.line.deaf = False
        (event,) = await desk.events()
        assert event.series is not None and event.series.count == 2

    at_a_desk(scenario)


@pytest.mark.slow
def test_an_event_that_has_gone_is_made_anew_with_its_count() -> None:
    async def scenario(desk: Desk) -> None:
        desk.recorder.normal(thing(), "Waits", "For room.")
        (event,) = await desk.events()
        await desk.client.delete(EVENTS, Key("default", event.name))
        desk.recorder.normal(thing(), "Waits", "For room.")
        (again,) = await desk.events()
        assert again.series is not None and again.series.count == 2

    at_a_desk(scenario)


@pytest.mark.slow
def test_what_the_server_refuses_is_dropped_and_the_next_is_written() -> None:
    async def scenario(desk: Desk) -> None:
        lost: Any = msgspec.json.decode(b'{"metadata":{"name":"x","namespace":"no-such-namespace","uid":"u"}}', type=core.ConfigMap)
        desk.recorder.normal(lost, "Told", "Nowhere.")
        desk.recorder.normal(thing(), "Told", "Here.")
        assert [event.note for event in await desk.events()] == ["Here."]
        assert desk.counted() == {"created": 1, "refused": 1}

    at_a_desk(scenario)


@pytest.mark.slow
def test_whatever_is_told_it_fits_and_never_fails_the_caller() -> None:
    async def scenario(desk: Desk) -> None:
        node = msgspec.json.decode(b'{"metadata":{"name":"node-1","uid":"n"}}', type=core.Node)
        long: Any = thing("a" * 235 + ".b" * 9)
        desk.recorder.normal(node, "R" * 200, "ä" * 2000)
        desk.recorder.normal(long, "Told", "")
        desk.recorder.normal(None, "Told", "About nothing.")  # pyright: ignore[reportArgumentType]
        events = await desk.events()
        assert [(event.regarding.kind, len(event.reason)) for event in events] == [("ConfigMap", 4), ("Node", 128)]
        assert events[1].note.startswith("ää") and len(events[1].note.encode()) <= 1024
        assert len(events[0].name) <= 253
        assert desk.counted() == {"created": 2, "lost": 1}

    at_a_desk(scenario)


@pytest.mark.slow
def test_both_groups_show_the_series() -> None:
    async def scenario(desk: Desk) -> None:
        for _ in range(3):
            desk.recorder.normal(thing(), "Waits", "For room.")
        (event,) = await desk.events()
        reply = await desk.client.transport.send(Call("GET", f"/api/v1/namespaces/default/events/{event.name}"))
        old = msgspec.json.decode(reply.body, type=core.Event)
        assert old.series is not None and old.series.count == 3
        assert (old.message, old.reporting_component, old.involved_object.name) == ("For room.", "herder.dev/controllers", "thing")
        assert {CONFIG_MAPS.kind, NODES.kind} > {old.involved_object.kind}

    at_a_desk(scenario)

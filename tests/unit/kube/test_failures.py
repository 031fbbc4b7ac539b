"""What is shown of a reconcile that fails again and again, against the embedded engine in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from herder.api import registry
from herder.controllers.hands import Hands
from herder.kube.cache import Caches
from herder.kube.client import Client, Selection
from herder.kube.controller import AGAIN, DONE, Result
from herder.kube.enqueue import enqueue
from herder.kube.errors import (
    ApiStatusError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    Misconfigured,
    NotLeading,
    ServerFailed,
    TooManyRequests,
    Unreachable,
    error_from,
)
from herder.kube.events import Recorder
from herder.kube.failures import LONGEST_MESSAGE, is_ordinary, said
from herder.kube.kit import Kit, Runs, run_controllers
from herder.kube.resources import CONFIG_MAPS, EVENTS, MACHINES, Anything, Key
from tests.unit.kube.engine import Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

VM = Key("default", "vm")
SPEC = {"running": False, "template": {"spec": {"domain": {}}}}
REFUSED = 'Pod "virt-launcher-vm" is invalid: spec.nodeSelector: Invalid value: "a,b"'


def refused() -> Exception:
    return Invalid(422, "Invalid", REFUSED)


class Stubborn:
    """Fails with what it is told to fail with, else shows a status of its own."""

    name = "stubborn"

    def __init__(self, resource: Anything) -> None:
        self.resource = resource
        self.error: Callable[[], Exception] | None = None
        self.result: Result = DONE
        self.looks = 0
        self.status: dict[str, Any] | None = None

    def start(self, kit: Kit) -> Runs:
        self.objects = kit.caches.of(self.resource)
        self.hands = Hands(kit.client, kit.recorder)
        queue = kit.queue(self.name)
        enqueue(self.objects, queue)
        return kit.work(self, queue, of=self.objects)

    async def reconcile(self, key: Key) -> Result:
        self.looks += 1
        if self.error is not None:
            raise self.error()
        stored = self.objects.stored(key)
        if stored is not None and self.status is not None:
            await self.hands.show(self.objects, stored, self.status)
        return self.result


class Stage:
    """A controller at work on one object; `line` is the controller's own way to the API."""

    def __init__(self, place: Place, world: VirtualWorld, controller: Stubborn) -> None:
        self.client, self.line = place.client(), place.line()
        self._world = world
        self.controller = controller
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        ours = Client(self.line, "herder")
        recorder = Recorder(ours, self._world, "herder.dev/controllers")
        counted = CollectorRegistry()
        kit = Kit(ours, Caches(ours, self._world, counted), recorder, self._world, counted)
        self._tasks = [
            asyncio.create_task(recorder.run()),
            asyncio.create_task(run_controllers(kit, (self.controller.start,))),
        ]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def make(self, **metadata: Any) -> None:
        await self.client.create(MACHINES, {"metadata": {"namespace": "default", "name": "vm", **metadata}, "spec": SPEC})

    async def touch(self, value: str) -> None:
        await self.client.patch(self.controller.resource, VM, {"metadata": {"labels": {"touched": value}}})
        await asyncio.sleep(30)

    async def show(self, status: dict[str, Any]) -> None:
        """As a step of a reconcile that fails later on."""
        stored = self.controller.objects.stored(VM)
        assert stored is not None
        await self.controller.hands.show(self.controller.objects, stored, status)

    async def whole(self) -> dict[str, Any]:
        return msgspec.json.decode(await self.client.get_raw(self.controller.resource, VM))

    async def condition(self) -> dict[str, Any]:
        listed = (await self.whole()).get("status", {}).get("conditions", ())
        return next((one for one in listed if one["type"] == "Synchronized"), {})

    async def events(self) -> list[tuple[str, str, str]]:
        return [(one.type, one.reason, one.note) for one in (await self.client.list(EVENTS, Selection("default"))).items]

    def writes(self) -> int:
        """Of statuses, by the controllers' process."""
        return sum(1 for call in self.line.writes() if call.path.endswith("/status"))


def on_stage(scenario: Callable[[Stage], Awaitable[None]], resource: Anything = MACHINES) -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (registry.MACHINE,)) as place:
            stage = Stage(place, world, Stubborn(resource))
            stage.begin()
            try:
                await scenario(stage)
            finally:
                await stage.end()

    in_virtual_time(run())


def test_what_fails_again_and_again_is_a_condition_and_one_event() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(600)
        shown = await stage.condition()
        assert (shown["status"], shown["reason"], shown["message"]) == ("False", "Invalid", REFUSED)
        assert shown["lastTransitionTime"]
        assert stage.controller.looks > 15
        assert await stage.events() == [("Warning", "ReconcileFailed", f"Invalid: {REFUSED}")]
        assert stage.writes() == 1

    on_stage(scenario)


@pytest.mark.slow
def test_it_goes_when_a_reconcile_succeeds() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(30)
        assert await stage.condition()
        stage.controller.error = None
        await stage.touch("once")
        assert not await stage.condition()
        written = stage.writes()
        await stage.touch("twice")
        assert stage.writes() == written

    on_stage(scenario)


def test_it_goes_also_when_another_process_succeeds() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(30)
        await stage.end()
        stage.controller.error = None
        stage.begin()
        await asyncio.sleep(30)
        assert not await stage.condition()

    on_stage(scenario)


@pytest.mark.slow
def test_a_new_process_says_nothing_twice() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(30)
        await stage.end()
        stage.begin()
        await asyncio.sleep(30)
        assert len(await stage.events()) == 1
        assert stage.writes() == 1

    on_stage(scenario)


@pytest.mark.slow
def test_a_controllers_own_status_and_the_condition_leave_each_other_alone() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "GuestStarting", "message": ""}

    async def scenario(stage: Stage) -> None:
        stage.controller.status = {"printableStatus": "Starting", "conditions": [ready]}
        await stage.make()
        await asyncio.sleep(30)
        stage.controller.error = refused
        await stage.touch("fails")
        now = {"printableStatus": "Stopped", "conditions": [ready]}
        await stage.show(now)
        whole = await stage.whole()
        assert whole["status"]["printableStatus"] == "Stopped"
        assert {one["type"] for one in whole["status"]["conditions"]} == {"Ready", "Synchronized"}
        written = stage.writes()
        await stage.show(now)
        assert stage.writes() == written, "what is shown already is not written again"

    on_stage(scenario)


def test_what_passes_within_a_second_is_not_shown() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(0.5)
        assert stage.controller.looks > 3
        stage.controller.error = None
        await asyncio.sleep(30)
        assert (await stage.events(), stage.writes()) == ([], 0)

    on_stage(scenario)


@pytest.mark.slow
def test_what_is_ordinary_is_not_shown_however_often_it_happens() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = lambda: Conflict(409, "Conflict", "somebody was faster")
        await stage.make()
        await asyncio.sleep(600)
        assert (await stage.condition(), await stage.events()) == ({}, [])

    on_stage(scenario)


def test_what_asks_to_be_looked_at_again_has_neither_failed_nor_succeeded() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(30)
        stage.controller.error, stage.controller.result = None, AGAIN
        await stage.touch("again")
        assert await stage.condition()

    on_stage(scenario)


@pytest.mark.slow
def test_a_sentence_that_is_another_one_each_time_is_rewritten_ever_more_rarely() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = lambda: Invalid(422, "Invalid", f"the pod is invalid, number {stage.controller.looks}")
        await stage.make()
        await asyncio.sleep(3600)
        assert 1 < stage.writes() < 8
        assert stage.controller.looks < 60

    on_stage(scenario)


def test_an_object_whose_kind_has_no_conditions_gets_one_event() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = lambda: Forbidden(403, "Forbidden", "exceeded quota")
        await stage.client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "vm"}})
        await asyncio.sleep(600)
        told = await stage.events()
        assert told.count(("Warning", "ReconcileFailed", "Forbidden: exceeded quota")) == 1
        assert stage.writes() == 0

    on_stage(scenario, CONFIG_MAPS)


def test_an_object_that_cannot_be_read_says_so_itself() -> None:
    """As one that was stored before a schema knew better."""

    async def scenario(stage: Stage) -> None:
        def unreadable() -> Exception:
            return KubeError("VirtualMachine default/vm is not what it should be")

        stage.controller.error = unreadable
        await stage.make()
        await asyncio.sleep(30)
        assert (await stage.condition())["reason"] == "ReconcileFailed"

    on_stage(scenario)


def test_while_nobody_answers_it_is_shown_later() -> None:
    async def scenario(stage: Stage) -> None:
        stage.controller.error = refused
        await stage.make()
        await asyncio.sleep(0.5)
        stage.line.cut = True
        await asyncio.sleep(60)
        assert not await stage.condition()
        stage.line.cut = False
        await asyncio.sleep(300)
        assert await stage.condition()

    on_stage(scenario)


@pytest.mark.parametrize(
    ("error", "ordinary"),
    [
        (Conflict(409, "Conflict", ""), True),
        (Unreachable(""), True),
        (NotLeading(""), True),
        (Misconfigured(""), True),
        (TooManyRequests(429, "TooManyRequests", ""), True),
        (ServerFailed(503, "ServiceUnavailable", ""), True),
        (ServerFailed(500, "InternalError", "failed calling webhook"), False),
        (Forbidden(403, "Forbidden", "quota", {"causes": [{"reason": "NamespaceTerminating"}]}), True),
        (Forbidden(403, "Forbidden", "quota"), False),
        (Invalid(422, "Invalid", REFUSED), False),
        (ValueError("embedded null byte"), False),
    ],
)
def test_what_is_ordinary_is_decided_by_type(error: Exception, ordinary: bool) -> None:
    assert is_ordinary(error) is ordinary


def test_reason_and_message_are_bounded_and_can_be_printed() -> None:
    reason, message = said(ApiStatusError(400, "not a word", "x" * 5000))
    assert (reason, len(message)) == ("ReconcileFailed", LONGEST_MESSAGE)
    assert said(error_from(422, b'{"reason":"Invalid","message":"a\\u0000\\u001b[31mb","code":422}')) == ("Invalid", "a��[31mb")
    assert said(ValueError("embedded null byte")) == (
        "InternalError",
        "an error in herder itself: ValueError: embedded null byte",
    )

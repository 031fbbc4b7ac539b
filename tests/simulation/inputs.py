"""Each field of a kind is changed in turn, on an object that is there: refused in words, or taken; and there is a way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from herder.kube.resources import Anything, Key
from herder.kube.transport import Call, Reply
from tests.simulation.comparing import places_that_differ
from tests.simulation.mutations import Json, Mutation, mutations
from tests.simulation.simulation import Simulation, Wedged

# How our rules say that a field stays as it is.
ONE_WAY = (b"can be set once and then stays", b"is immutable")
Settle = Callable[[Simulation], Awaitable[Any]]


async def nothing_to_settle(_: Simulation) -> None:
    """For kinds that no controller looks at yet."""


class Inputs:
    """An object under test: what people may do to it, and what came of it."""

    def __init__(self, simulation: Simulation, resource: Anything, original: Json, settle: Settle = nothing_to_settle) -> None:
        self._simulation = simulation
        self._resource = resource
        self._original = original
        self._key = Key(original["metadata"].get("namespace", ""), original["metadata"]["name"])
        self._settle = settle
        self._transport = simulation.client().transport
        self.accepted = 0
        self.refused = 0
        self.wrong: list[str] = []

    async def go_through(self, schema: Json, most: int = 0, seed: int = 0, but: str = "") -> None:
        """All mutations of the spec, or about so many of them, others for each seed; but for those of one field."""
        await self._create()
        before = await self._state()
        found = list(mutations(schema["properties"]["spec"], self._original["spec"]))
        stride = max(1, round(len(found) / most)) if most else 1
        for mutation in found[seed % stride :: stride]:
            if not but or not str(mutation).startswith(f"{but}:"):
                await self._try(mutation, before)

    async def _create(self) -> None:
        path = self._resource.path(self._key.namespace)
        reply = await self._transport.send(Call("POST", path, body=msgspec.json.encode(self._original)))
        assert reply.status == 201, reply.body.decode()

    async def _try(self, mutation: Mutation, before: bytes) -> None:
        reply = await self._put(mutation.applied(self._original))
        if reply.status >= 400:
            self.refused += 1
            self._note(mutation, _refusal_problem(mutation, reply))
            return
        self.accepted += 1
        if not mutation.valid:
            self._note(mutation, "was taken although its schema says no")
        try:
            await self._settle(self._simulation)
            await self._go_back(mutation, before)
        except Wedged as error:
            self._note(mutation, str(error))

    async def _go_back(self, mutation: Mutation, before: bytes) -> None:
        back = await self._put(self._original)
        if back.status >= 400:
            self._note(mutation, "" if self._is_meant(back) else f"there is no way back: {back.body.decode()}")
            await self._begin_anew()
        elif (after := await self._state()) != before:
            unlike = places_that_differ(msgspec.json.decode(before), msgspec.json.decode(after))
            self._note(mutation, f"going back leads elsewhere: {'; '.join(unlike)}")

    def _is_meant(self, reply: Reply) -> bool:
        """A field that can be set once says so, and says what to do instead."""
        return reply.status == 422 and any(words in reply.body for words in ONE_WAY)

    async def _begin_anew(self) -> None:
        await self._transport.send(Call("DELETE", self._resource.path(*self._key)))
        await self._settle(self._simulation)
        await self._create()

    def _note(self, mutation: Mutation, problem: str) -> None:
        if problem:
            self.wrong.append(f"{mutation}: {problem}")

    async def _put(self, document: Json) -> Reply:
        """As `kubectl replace` does it."""
        path = self._resource.path(*self._key)
        current = msgspec.json.decode((await self._transport.send(Call("GET", path))).body)
        metadata = {**document["metadata"], "resourceVersion": current["metadata"]["resourceVersion"]}
        return await self._transport.send(Call("PUT", path, body=msgspec.json.encode({**document, "metadata": metadata})))

    async def _state(self) -> bytes:
        """What it comes to: of a controller's world all of it, otherwise the spec as it is stored."""
        settled = await self._settle(self._simulation)
        if settled is None:
            reply = await self._transport.send(Call("GET", self._resource.path(*self._key)))
            settled = msgspec.json.decode(reply.body)["spec"]
        # As bytes: Python would take true and 1 for the same.
        return msgspec.json.encode(settled, order="deterministic")


def _refusal_problem(mutation: Mutation, reply: Reply) -> str:
    """A refusal names the field at fault, and is never a crash."""
    if reply.status >= 500:
        return f"the server failed: {reply.body.decode()}"
    status = msgspec.json.decode(reply.body)
    causes: Iterable[Json] = (status.get("details") or {}).get("causes") or ()
    named = any(str(cause.get("field", "")).startswith("spec") for cause in causes)
    # As on a real API server, a number out of its format is named in the sentence only.
    if reply.status == 422 and not named and str(mutation.path[-1]) not in status["message"]:
        return f"refused without the name of a field: {reply.body.decode()}"
    if reply.status not in (400, 422):
        return f"refused in a strange way: {reply.status} {reply.body.decode()}"
    if reply.status == 400 and str(mutation.path[-1]) not in status["message"]:
        return f"refused without the name of a field: {reply.body.decode()}"
    return ""

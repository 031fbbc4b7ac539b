"""MigrationReviews in virtual time: nobody who asks without end keeps others from an answer, and none is left in the end."""

from __future__ import annotations

import asyncio
import json

from herder.api import reasons
from herder.api.kinds import MigrationReview
from herder.api.registry import INSTANCE, POLICY, RESERVATION, REVIEW, SETTINGS
from herder.controllers.reviews import MigrationReviews, ReviewExpiry
from herder.kube.client import Client, Selection
from herder.kube.resources import INSTANCES, NAMESPACES, NODES, REVIEWS, Key
from herder.rules.plans import find
from herder.rules.reviews import LIFETIME, is_answered
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.matrix import Scenario, Step, matrix_for
from tests.simulation.simulation import Simulation, simulate

KINDS = (INSTANCE, POLICY, SETTINGS, REVIEW, RESERVATION)
STARTS = (MigrationReviews.start, ReviewExpiry.start)
NOISE = 100
MOST_A_SECOND = 6
# Of virtual time, which knows no load.
SOON = 0.5
NOISY, QUIET = "noisy", "quiet"
PATIENCE = 120.0


async def prepared(person: Client, *namespaces: str) -> None:
    await person.create(NODES, {"metadata": {"name": "node-1"}})
    for namespace in namespaces:
        await person.create(NAMESPACES, {"metadata": {"name": namespace}})
        await person.create(INSTANCES, {"metadata": {"name": "web", "namespace": namespace}, "spec": {"domain": {}}})
        await person.patch(INSTANCES, Key(namespace, "web"), {"status": {"observedGeneration": 1}}, subresource="status")


async def ask(person: Client, namespace: str, name: str, instance: str = "web") -> None:
    await person.create(REVIEWS, {"metadata": {"name": name, "namespace": namespace}, "spec": {"vmiName": instance}})


async def answer(person: Client, namespace: str, name: str) -> MigrationReview:
    async def look() -> MigrationReview:
        found = await person.get(REVIEWS, Key(namespace, name))
        assert is_answered(found)
        return found

    return await eventually(look, patience=PATIENCE)


async def answered(person: Client, namespace: str) -> int:
    return sum(is_answered(one) for one in (await person.list(REVIEWS, Selection(namespace))).items)


def test_one_namespace_that_asks_without_end_does_not_keep_another_from_its_answer(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        await simulation.started(controllers(simulation, CONTROLLERS, STARTS))
        person = simulation.client()
        others = [f"{QUIET}-{number}" for number in range(6)]
        await prepared(person, NOISY, *others)
        began = simulation.loop.time()
        for number in range(NOISE):
            await ask(person, NOISY, f"r{number}")
        for namespace in others:
            asked_at = simulation.loop.time()
            await ask(person, namespace, "r")
            found = await answer(person, namespace, "r")
            assert found.status is not None and found.status.outcome == "Unschedulable"
            assert simulation.loop.time() - asked_at < SOON, "it waits for a few answers of the other namespace, not for all"
            await asyncio.sleep(0.3)
        assert await answered(person, NOISY) < NOISE

        async def all_are() -> bool:
            return await answered(person, NOISY) == NOISE

        await eventually(all_are, patience=PATIENCE)
        assert simulation.loop.time() - began >= NOISE / MOST_A_SECOND, "and they got no more than their share"
        await asyncio.sleep(LIFETIME + 1)
        assert (await person.list(REVIEWS)).items == [], "a question is cleared away after a while"
        assert not simulation.trace.errors()

    simulate(seed, main, KINDS)


def test_a_review_that_cannot_be_answered_says_why_and_is_not_asked_again(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        await simulation.started(controllers(simulation, CONTROLLERS, STARTS))
        person = simulation.client()
        await prepared(person, QUIET)
        await ask(person, QUIET, "nobody", "ghost")
        status = (await answer(person, QUIET, "nobody")).status
        condition = find(status.conditions if status else None, reasons.ANSWERED)
        assert condition is not None and (condition.status, condition.reason) == ("False", reasons.VMI_NOT_FOUND)

    simulate(seed, main, KINDS)


def step(name: str) -> Step:
    async def asked(client: Client) -> None:
        if name == "a":
            await prepared(client, QUIET)
        await ask(client, QUIET, name)

    return asked


def all_answered(left: dict[str, bytes]) -> str:
    reviews = {key: json.loads(raw) for key, raw in left.items() if key.startswith(REVIEW.plural)}
    missing = [key for key, one in reviews.items() if one.get("status", {}).get("outcome") != "Unschedulable"]
    return "" if len(reviews) == 2 and not missing else f"of {list(reviews)} are not answered: {missing}"


ASKED = Scenario(
    "two reviews are asked", kinds=KINDS, controllers=STARTS, steps=(step("a"), step("b")), expect=all_answered, quiet=20.0
)
test_reviews_are_answered_whatever_fails_at_every_write = matrix_for(ASKED)

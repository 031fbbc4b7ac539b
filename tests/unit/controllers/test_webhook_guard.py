"""Where jobs are begun: only where each of them was judged when it was created."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from herder.api import registry
from herder.api.kinds import PodMigrationJob
from herder.controllers.job.webhook_guard import WebhookGuard, judged_by
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.discovery import AGAIN, Discovery
from herder.kube.errors import Unreachable
from herder.kube.events import Recorder
from herder.kube.kit import Kit
from herder.kube.webhook.registered import WebhookConfiguration
from herder.kube.webhook.registration import validating
from herder.kube.webhook.settings import Settings
from herder.rules.jobs.arbitration import Refused, Wait
from herder.rules.jobs.judged import ALWAYS, Judged, why_unjudged
from tests.unit.kube.engine import engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

REGISTERED = "2026-01-01T00:00:10Z"
Json = dict[str, Any]


def job(created: str) -> PodMigrationJob:
    metadata = {"name": "j", "creationTimestamp": f"2026-01-01T00:00:{created}Z"}
    return msgspec.convert({"metadata": metadata, "spec": {"podRef": {"namespace": "shop", "name": "web-0"}}}, PodMigrationJob)


def configuration(**changed: Any) -> WebhookConfiguration:
    """As we register it, but for this."""
    document = validating(Settings(url="https://127.0.0.1:1"), b"")
    judge, *others = document["webhooks"]
    return msgspec.convert(
        {**document, "metadata": {"name": "herder", "creationTimestamp": REGISTERED}, "webhooks": [{**judge, **changed}, *others]},
        WebhookConfiguration,
        strict=False,
    )


def test_jobs_that_were_created_since_the_webhook_is_registered_may_begin() -> None:
    judged = judged_by(configuration())
    assert why_unjudged(job("15"), judged) is None
    assert why_unjudged(job("59"), judged) is None


@pytest.mark.parametrize("created", ["09", "10", "14"])
def test_a_job_from_before_the_webhook_is_to_be_created_again(created: str) -> None:
    """Also one from the moment after it: API servers hear of a registration a little later."""
    assert why_unjudged(job(created), judged_by(configuration())) == Refused(
        "ForbiddenMigratePod",
        "the job was created before jobs were judged, so nobody knows whether its creator may evict: create it again once jobs are"
        " judged (docs/webhook.md)",
    )


def other_rule(**changed: Any) -> Json:
    rules = [{**one, **changed} for one in validating(Settings(url="https://127.0.0.1:1"), b"")["webhooks"][0]["rules"]]
    return {"rules": rules}


@pytest.mark.parametrize(
    "changed",
    [
        {"failurePolicy": "Ignore"},
        {"name": "other.example.com"},
        {"rules": []},
        {"objectSelector": {"matchLabels": {"judge": "me"}}},
        {"objectSelector": {"matchExpressions": [{"key": "spare", "operator": "DoesNotExist"}]}},
        other_rule(operations=["CREATE"]),
        other_rule(resources=["reservations"]),
        other_rule(apiVersions=["v1"]),
    ],
)
def test_without_a_webhook_that_judges_every_job_all_of_them_wait(changed: Json) -> None:
    for judged in (judged_by(None), judged_by(configuration(**changed))):
        held = why_unjudged(job("59"), judged)
        assert isinstance(held, Wait)
        assert held.reason == "WaitingForAdmission"
    assert judged_by(configuration(objectSelector={})) == judged_by(configuration(**other_rule(resources=["*"])))


def test_the_embedded_engine_judges_by_itself_once_it_is_known_to_be_it() -> None:
    async def scenario() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (registry.JOB,)) as place:
            line = place.line()
            client = Client(line, "herder")
            told: list[int] = []
            kit = Kit(client, Caches(client, world), Recorder(client, world, "test"), world, CollectorRegistry())
            guard = WebhookGuard(kit, Discovery(client))
            guard.subscribe(lambda: told.append(1))
            line.refusals["/apis"] = Unreachable("away")
            running = asyncio.create_task(guard.run())
            await asyncio.sleep(1)
            assert guard.judged() == Judged(None, "whether this API server calls webhooks cannot be found out: away")
            line.refusals.clear()
            await asyncio.sleep(2 * AGAIN)
            assert running.done()
            assert guard.judged() == ALWAYS
            assert told == [1]
            assert guard.why_not(job("00")) is None

    in_virtual_time(scenario())

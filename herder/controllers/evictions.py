"""Evictions of pods that guests run in, for the webhook. The embedded engine gives the same answer by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import structlog

from herder.api import labels, registry
from herder.api.core import Pod
from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import INSTANCES, PODS, SETTINGS, Key
from herder.kube.webhook.reviews import Answer, Question
from herder.rules.configuration import NAME, NAMESPACE, cluster_migration_settings
from herder.rules.evictions import Eviction, judge_eviction

log = structlog.get_logger()
ALLOWED = Answer()


class EvictionOfGuests:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, question: Question) -> Answer:
        """Where the API server does not answer us, it is let go: the guest's own budget has the last word."""
        try:
            return await self._answer(question)
        except KubeError as error:
            log.warning("an eviction was not judged", pod=question.name, namespace=question.namespace, why=str(error))
            return ALLOWED

    async def _answer(self, question: Question) -> Answer:
        pod = await self._client.find(PODS, Key(question.namespace, question.name))
        if pod is None or pod.labels.get(labels.APP) != labels.LAUNCHER:
            return ALLOWED
        owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
        if owner is None or owner.kind != registry.INSTANCE.kind:
            return ALLOWED
        verdict = await self._judge(pod, owner.name)
        if not verdict.refused:
            return ALLOWED
        if verdict.evacuate and not _is_dry_run(question):
            wish = {"metadata": {"uid": owner.uid, "annotations": {labels.EVACUATE: verdict.evacuate}}}
            await self._client.patch(INSTANCES, Key(question.namespace, owner.name), wish)
        return Answer(refusal=_refusal(verdict.refused))

    async def _judge(self, pod: Pod, instance: str) -> Eviction:
        found = await self._client.find(INSTANCES, Key(pod.namespace, instance))
        cluster = cluster_migration_settings(await self._client.find(SETTINGS, Key(NAMESPACE, NAME)))
        return judge_eviction(pod, found, cluster.eviction_strategy)


def _is_dry_run(question: Question) -> bool:
    """An eviction may say so in its own options, too."""
    given: Any = (question.object or {}).get("deleteOptions") or {}
    try:
        return bool(question.dry_run) or bool(msgspec.convert(given.get("dryRun") or [], list[str]))
    except (msgspec.ValidationError, AttributeError):
        return True


def _refusal(sentence: str) -> dict[str, Any]:
    """As a budget refuses: who drains a node tries again later."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": sentence,
        "reason": "TooManyRequests",
        "details": {"causes": [{"reason": "EvictionStrategy", "message": sentence}]},
        "code": 429,
    }

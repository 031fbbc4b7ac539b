"""Whether jobs may be carried out at all: only where each was judged when it was created.

The embedded engine judges by itself. A real API server asks our webhook where it is registered; the configuration says since when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from herder.api.kinds import PodMigrationJob
from herder.kube.cache import Cache
from herder.kube.client import Selection
from herder.kube.discovery import AGAIN, Discovery
from herder.kube.errors import KubeError
from herder.kube.kit import Kit
from herder.kube.resources import JOBS
from herder.kube.webhook.registered import NAME, VALIDATING, RegisteredWebhook, WebhookConfiguration
from herder.rules.jobs.arbitration import Refused, Wait
from herder.rules.jobs.judged import ALWAYS, Judged, why_unjudged

NOT_REGISTERED: Final = "register the webhook with --webhook-listen of herder controllers, then create the job again"
# As the account may read it: by its name.
ONE: Final = Selection(fields=f"metadata.name={NAME.name}")
CHANGED: Final = f"webhook validate.herder.dev of ValidatingWebhookConfiguration {NAME.name} must be asked about every one"


class WebhookGuard:
    """Made for a term."""

    def __init__(self, kit: Kit, discovery: Discovery) -> None:
        self._caches = kit.caches
        self._discovery = discovery
        self._handlers: list[Callable[[], None]] = []
        # Once it has been found out, or could not be, for the first time.
        self.looked = asyncio.Event()
        self._configurations: Cache[WebhookConfiguration] | None = None
        self._judges_itself = False
        self._problem = "which engine this is is not known yet"

    def subscribe(self, handler: Callable[[], None]) -> None:
        """Called whenever another answer may be given."""
        self._handlers.append(handler)

    async def run(self) -> None:
        """Ends when it is known which engine this is: that stays so."""
        while True:
            known = await self.find_out()
            self.looked.set()
            if known:
                return
            await asyncio.sleep(AGAIN)

    async def find_out(self) -> bool:
        try:
            served = await self._discovery.find(VALIDATING.group, VALIDATING.version, VALIDATING.kind)
        except KubeError as error:
            self._problem = f"whether this API server calls webhooks cannot be found out: {error}"
            return False
        self._judges_itself = served is None
        self._problem = "whether the webhook is registered has not been read yet"
        if served is not None:
            self._configurations = self._caches.of(VALIDATING, ONE)
            self._configurations.subscribe(lambda _: self._changed())
            await self._configurations.wait_synced()
        self._changed()
        return True

    def _changed(self) -> None:
        for handler in self._handlers:
            handler()

    def why_not(self, job: PodMigrationJob) -> Wait | Refused | None:
        """Asked of a job that is about to begin; never of one that runs, which has passed."""
        return why_unjudged(job, self.judged())

    def judged(self) -> Judged:
        if self._judges_itself:
            return ALWAYS
        if self._configurations is None or not self._configurations.has_synced:
            return Judged(None, self._problem)
        return judged_by(self._configurations.get(NAME))


def judged_by(configuration: WebhookConfiguration | None) -> Judged:
    """What is registered again after it was gone has a new time: what was created meanwhile was not judged."""
    created = configuration.metadata.creation_timestamp if configuration is not None else None
    if configuration is None or created is None:
        return Judged(None, NOT_REGISTERED)
    if not any(_judges_all_jobs(one) for one in configuration.webhooks):
        return Judged(None, CHANGED)
    return Judged(created.timestamp())


def _judges_all_jobs(webhook: RegisteredWebhook) -> bool:
    """One that is not asked about labelled ones, or passed over where nobody answers, judges whom it likes."""
    selector = webhook.object_selector
    everything = selector is None or not (selector.match_labels or selector.match_expressions)
    asked = any(rule.covers(JOBS, "CREATE", "UPDATE") for rule in webhook.rules)
    return webhook.name == "validate.herder.dev" and webhook.failure_policy == "Fail" and everything and asked

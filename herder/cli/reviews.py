"""A MigrationReview, for those who may not read what decides about a migration: made, waited for, and deleted again."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from herder.api import reasons
from herder.api.kinds import MigrationReview
from herder.api.kinds.migration_review import MigrationReviewStatus
from herder.cli.asking import Refusal
from herder.cli.following import until
from herder.kube.client import Client
from herder.kube.errors import Forbidden, KubeError, NotFound
from herder.kube.resources import REVIEWS, Key
from herder.rules.plans import find
from herder.rules.reviews import is_answered

# An answer takes less than a second, unless many ask at once.
PATIENCE = 30.0
Document = dict[str, Any]


async def reviewed(
    client: Client, key: Key, term: Document, because: Forbidden, patience: float = PATIENCE
) -> MigrationReviewStatus:
    """The answer about the instance `key`. `because`: what could not be read, and why."""
    review = await _create(client, key, term, because)
    try:
        async with asyncio.timeout(patience):
            return await _answer(client, Key(key.namespace, review.name))
    except TimeoutError:
        said = f"nobody answered MigrationReview {review.name} within {patience:g} s"
        raise Refusal(f"{said}: do the controllers run? (`herder up`, or `herder controllers` beside a cluster)") from None
    finally:
        # Whatever remains is cleared away by the controllers.
        with contextlib.suppress(KubeError):
            await client.delete(REVIEWS, Key(key.namespace, review.name), uid=review.uid)


async def _create(client: Client, key: Key, term: Document, because: Forbidden) -> MigrationReview:
    spec: Document = {"vmiName": key.name, **({"addedNodeSelectorTerm": term} if term else {})}
    try:
        return await client.create(REVIEWS, {"metadata": {"generateName": "explain-"}, "spec": spec}, key.namespace)
    except Forbidden as error:
        advice = f"the role vm-migrator, bound in namespace {key.namespace!r}, is enough"
        raise Refusal(f"{because}. Nor may you ask by a MigrationReview: {error}: {advice}") from None
    except NotFound:
        advice = "who runs the cluster makes it known with `herder install`"
        raise Refusal(f"{because}. This cluster does not know MigrationReview, by which you could ask: {advice}") from None


async def _answer(client: Client, key: Key) -> MigrationReviewStatus:
    found: MigrationReviewStatus | None = None

    def is_there(review: MigrationReview | None) -> bool:
        nonlocal found
        if review is None:
            raise Refusal(f"MigrationReview {key.name} was deleted before it was answered; ask again")
        found = review.status
        return is_answered(review)

    await until(client, REVIEWS, key, is_there)
    answered = find(found.conditions if found is not None else None, reasons.ANSWERED)
    if found is None or answered is None or answered.status != "True":
        raise Refusal((answered.message if answered is not None else "") or f"MigrationReview {key.name} has no answer")
    return found

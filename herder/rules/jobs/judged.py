"""Whether a PodMigrationJob was judged when it was created: by rules that know who created it (`rights.py`).

Nobody can find that out later. Where jobs are not judged, whoever may create them would evict everywhere: none is begun there.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from herder.api import reasons
from herder.api.kinds import PodMigrationJob
from herder.rules.jobs.arbitration.arbitrate import Refused
from herder.rules.jobs.arbitration.limits import Wait

# API servers notice a registration a moment after it was written, and times of creation are whole seconds.
SETTLING: Final = 5.0
AGAIN: Final = "create it again once jobs are judged (docs/webhook.md)"


class Judged(msgspec.Struct, frozen=True):
    """Since when each new job is judged; None where that is not so now, and `problem` says why."""

    since: float | None
    problem: str = ""


ALWAYS: Final = Judged(-math.inf)


def why_unjudged(job: PodMigrationJob, judged: Judged) -> Wait | Refused | None:
    """Of a job that is about to begin. One that runs was found to be judged when it began, and goes on."""
    if judged.since is None:
        why = f"jobs are not judged when they are created, so nobody knows whether their creator may evict: {judged.problem}"
        return Wait(reasons.WAITING_FOR_ADMISSION, why)
    created = job.metadata.creation_timestamp.timestamp() if job.metadata.creation_timestamp is not None else -math.inf
    if created >= judged.since + SETTLING:
        return None
    why = f"the job was created before jobs were judged, so nobody knows whether its creator may evict: {AGAIN}"
    return Refused(reasons.FORBIDDEN_MIGRATE_POD, why)

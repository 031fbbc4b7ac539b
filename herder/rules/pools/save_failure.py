"""How often the memory of a machine could not be saved: it goes on, and its turn comes again ever later. It stands on the machine
itself, so that whoever leads next knows it."""

from __future__ import annotations

import datetime

import msgspec

from herder.api.backoff import doubled
from herder.api.views import View
from herder.rules.plans import moment, text_of

FIRST_WAIT = 10.0
LONGEST_WAIT = 300.0
# A failure that is so long ago says nothing any more: the next one is a first one.
FORGOTTEN_AFTER = 1800.0
MOST_WORDS = 500


class SaveFailure(View, frozen=True, kw_only=True):
    attempts: int = 0
    retry_after: datetime.datetime | None = None
    message: str = ""

    def until(self, now: float) -> float:
        """When it is tried again. A clock that jumped back, or whoever wrote it, makes that no later than the longest wait."""
        retry = self.retry_after.timestamp() if self.retry_after is not None else 0.0
        return retry if retry <= now + LONGEST_WAIT else now


def save_failure_of(text: str) -> SaveFailure | None:
    """None where it says nothing that can be read: then it never failed."""
    try:
        return msgspec.json.decode(text, type=SaveFailure) if text else None
    except (msgspec.MsgspecError, ValueError):
        return None


def written(failure: SaveFailure) -> str:
    """Once more as it was read: whoever applies a whole document says it again, or it is gone."""
    retry = {"retryAfter": text_of(failure.retry_after)} if failure.retry_after is not None else {}
    return msgspec.json.encode({"attempts": failure.attempts, **retry, "message": failure.message[:MOST_WORDS]}).decode()


def one_more(before: SaveFailure | None, message: str, now: float) -> str:
    """As it is written."""
    recent = before is not None and before.until(now) + FORGOTTEN_AFTER > now
    attempts = min(max(0, before.attempts), 1000) + 1 if before is not None and recent else 1
    retry = moment(now + doubled(FIRST_WAIT, LONGEST_WAIT, attempts - 1))
    return written(SaveFailure(attempts=attempts, retry_after=retry, message=message))

"""An error that comes again and again: tried less and less often, told in the same words, and logged whole only once."""

from __future__ import annotations

import msgspec
import structlog

from herder.api.backoff import doubled

log = structlog.get_logger()
# After so many seconds it is tried again, then twice as long each time.
FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0
LONGEST_TEXT = 1000


class Failures(msgspec.Struct, frozen=True):
    """How often in a row it went wrong, and how it did the last time."""

    text: str
    times: int = 1

    @property
    def wait(self) -> float:
        return doubled(FIRST_WAIT, LONGEST_WAIT, self.times - 1)


def failed_again(known: Failures | None, error: Exception, event: str) -> Failures:
    """The whole story is logged where it is a new one, and a line where it is not."""
    text = said(error)
    failures = Failures(text, known.times + 1 if known is not None else 1)
    same = known is not None and known.text == text
    log.warning(event, error=text, failures=failures.times, exc_info=None if same else error)
    return failures


def said(error: Exception) -> str:
    """For people who do not know the node: no paths of its machine, and no novel."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {text}"[:LONGEST_TEXT]

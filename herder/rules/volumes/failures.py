"""Whether trying again may help, and when."""

from __future__ import annotations

from herder.api import reasons
from herder.api.backoff import doubled

# The answer will be the same tomorrow.
FINAL_AT_ONCE = frozenset(
    {reasons.SOURCE_FORBIDDEN, reasons.VOLUME_TOO_SMALL, reasons.CLASS_NOT_SUPPORTED, reasons.CLONE_FAILED, reasons.UNSUPPORTED}
)
# Most likely a mistake of the one who asked; but servers have bad moments, too.
FINAL_AFTER_SOME = frozenset(
    {reasons.SOURCE_NOT_FOUND, reasons.SOURCE_REFUSED, reasons.NOT_A_DISK_IMAGE, reasons.CHECKSUM_MISMATCH}
)
ATTEMPTS = 3
FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0


def is_final(reason: str, attempts: int) -> bool:
    return reason in FINAL_AT_ONCE or (reason in FINAL_AFTER_SOME and attempts >= ATTEMPTS)


def wait_after(attempts: int) -> float:
    """Seconds before the next try, after so many."""
    return doubled(FIRST_WAIT, LONGEST_WAIT, attempts - 1) if attempts else 0.0

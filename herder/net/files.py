"""Open files: every connection is one, and a process that has used them all up can neither let anybody in nor store anything."""

from __future__ import annotations

import resource

# More than that nobody needs, and some systems have no limit at all.
MOST = 1 << 20


def raise_file_limit() -> int:
    """As many as this process may have, not as many as shells give by default. Returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def file_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft

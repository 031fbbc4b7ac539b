"""In which order the modules of tests run, so that workers have something to do until the end.

Tests with a cluster mostly wait, and others mostly compute: the two are mixed, so that a worker that waits leaves its processor to
one that computes. Of each kind those that take long come first: what comes last decides how long one worker is idle at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Seconds that one test takes, roughly, by the beginning of its path; the longest that fits counts.
WAITS: Mapping[str, float] = {
    "tests/agreement/": 1.0,
    "tests/attacks/": 1.0,
    "tests/behaviour/": 0.7,
    "tests/behaviour/test_explaining": 5.0,
    "tests/clients/": 5.0,
    "tests/crash/": 8.0,
    "tests/e2e/": 3.0,
    "tests/e2e/qemu/": 10.0,
    "tests/jobs/": 3.0,
    "tests/levels/": 4.0,
    "tests/machines/": 2.0,
    "tests/pools/": 3.0,
    "tests/reservations/": 3.0,
    "tests/webhook/": 1.0,
    "tests/workloads/": 2.0,
}
COMPUTES: Mapping[str, float] = {
    "tests/": 0.05,
    "tests/fuzz/": 2.0,
    "tests/simulation/": 3.0,
    "tests/simulation/test_job_": 1.0,
    "tests/simulation/test_jobs": 1.5,
    "tests/simulation/test_lost_guests": 4.0,
    "tests/simulation/test_migrations": 12.0,
    "tests/unit/rules/pools/test_invariants": 2.0,
    "tests/unit/scheduler/": 0.5,
    "tests/unit/nodes/test_failing_work": 1.0,
}


def in_order(sizes: Mapping[str, int]) -> list[str]:
    """Paths of modules; `sizes` is how many tests each has."""
    waiting = [path for path in sizes if _seconds(WAITS, path)]
    computing = [path for path in sizes if not _seconds(WAITS, path)]
    spread = (*_spread(waiting, WAITS, sizes), *_spread(computing, COMPUTES, sizes))
    return [path for _, path in sorted(spread)]


def _seconds(known: Mapping[str, float], path: str) -> float:
    """0 for what is not known."""
    fitting = [start for start in known if path.startswith(start)]
    return known[max(fitting, key=len)] if fitting else 0.0


def _spread(paths: Iterable[str], known: Mapping[str, float], sizes: Mapping[str, int]) -> list[tuple[float, str]]:
    """Each with how much of the time of all of them has passed when it begins."""
    lasting = sorted((-_seconds(known, path) * sizes[path], path) for path in paths)
    whole = sum(seconds for seconds, _ in lasting) or 1.0
    begins, placed = 0.0, list[tuple[float, str]]()
    for seconds, path in lasting:
        placed.append((begins / whole, path))
        begins += seconds
    return placed

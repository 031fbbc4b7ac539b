"""How long to wait after failures: twice as long after each, up to a limit."""

from __future__ import annotations

# Far beyond any limit, and well below what a float can hold: 2.0 ** 1024 is an OverflowError, which would end whoever waits.
_MOST_DOUBLINGS = 64


def doubled(first: float, longest: float, doublings: int) -> float:
    """`first`, doubled so many times, and never more than `longest`, however often something failed."""
    return min(longest, first * 2.0 ** min(max(doublings, 0), _MOST_DOUBLINGS))

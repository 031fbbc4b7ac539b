"""How many examples a property is tried with: all of them in `make test`, a share of them in `make test-quick`."""

from __future__ import annotations

from hypothesis import settings

# In percent; before any test is read.
_share = 100


def try_only(percent: int) -> None:
    """Of tests that do not say how many, too."""
    global _share
    _share = percent
    settings.register_profile("share", max_examples=examples(100))
    settings.load_profile("share")


def examples(count: int) -> int:
    return max(1, count * _share // 100)

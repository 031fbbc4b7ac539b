"""Python's cyclic garbage collector costs more than the decoding itself while very many objects are made: off for so long."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_depth = 0
_was_on = False


@contextmanager
def collector_off() -> Generator[None]:
    """May be nested. Only around code that does not wait: nothing is collected meanwhile, for the whole process."""
    global _depth, _was_on
    if _depth == 0:
        _was_on = gc.isenabled()
        gc.disable()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and _was_on:
            gc.enable()

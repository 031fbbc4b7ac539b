"""How much of a file system guests may take, and what it means when little is left.

Volumes share it with the store. A reserve is the store's: nothing is filled or started that would reach into it, and once it
is reached the node says so (DiskPressure). Volumes are thin: one may promise all that is beyond the reserve, and all together may
promise more than there is. Whoever takes room when half of the reserve is gone stands still until there is room again.
"""

from __future__ import annotations

import msgspec

from herder.api.quantity import canonical, parse_quantity

MOST_BY_DEFAULT = 2 * 1024**3
PERCENT_BY_DEFAULT = 5


class Reserve(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the file system, and no more than so many bytes."""

    percent: float = PERCENT_BY_DEFAULT
    most: int = MOST_BY_DEFAULT

    def of(self, total: int) -> int:
        return min(self.most, int(total * self.percent / 100))


class Space(msgspec.Struct, frozen=True):
    """Bytes of a file system: all, and those that can still be had."""

    total: int
    free: int


def parse_reserve(text: str) -> Reserve:
    """`5%`, or an amount such as `2Gi`. Raises ValueError with the sentence to show."""
    wanted = "a share of the file system such as 5% (at most 90%) or an amount such as 2Gi"
    try:
        if text.endswith("%"):
            percent = float(text[:-1])
            if not 0 <= percent <= 90:
                raise ValueError
            return Reserve(percent=percent, most=1 << 62)
        return Reserve(percent=100, most=_amount(text))
    except ValueError:
        raise ValueError(f"{text!r} is no reserve of storage; it is {wanted}") from None


def _amount(text: str) -> int:
    amount = parse_quantity(text).value()
    if not 0 <= amount < 1 << 60:
        raise ValueError
    return amount


def under_pressure(space: Space, reserve: Reserve, before: bool) -> bool:
    """Once it is so, it stays so until a quarter of the reserve is free beyond it: else nodes would open and close all the time."""
    kept = reserve.of(space.total)
    return space.free < kept or (before and space.free < kept + kept // 4)


def is_short(space: Space, reserve: Reserve) -> bool:
    """So little is left that whoever takes more has to wait."""
    return space.free < reserve.of(space.total) // 2


def lacking(space: Space, reserve: Reserve, more: int, promised: int = 0) -> str:
    """Why so many bytes more cannot be written now; empty where they can. `promised`: what others are about to write."""
    left = space.free - reserve.of(space.total) - promised
    if left >= more:
        return ""
    kept = f"{shown(reserve.of(space.total))} of its {shown(space.total)} are kept for the store"
    taken = f", {shown(promised)} are taken by what is written now" if promised else ""
    need = f"{shown(more)} are needed" if more else "none can be taken"
    return f"the node's storage has {shown(space.free)} left, {kept}{taken}; {need}"


def never_fits(space: Space, reserve: Reserve, size: int) -> str:
    """Why a disk of this size could not even be filled where nothing else is; empty where it could."""
    most = space.total - reserve.of(space.total)
    if size <= most:
        return ""
    return f"a disk of {shown(size)} can never be filled: the node's storage has {shown(most)} for all guests together"


def shown(size: int) -> str:
    """Whole mebibytes where it is more than one."""
    rounded = size if abs(size) < 1 << 20 else size >> 20 << 20
    return canonical(rounded * 10**9, "BinarySI")

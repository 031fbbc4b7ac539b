"""Names of a pool's machines: `<pool>-<n>`, n from 1 (seed 003, "VM Naming")."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import count

# More digits than any pool has machines; a longer name is somebody else's.
MOST_DIGITS = 9


def machine_name(pool: str, number: int) -> str:
    return f"{pool}-{number}"


def with_postfix(name: str, number: int) -> str:
    """A name in the template that each machine has for itself."""
    return f"{name}-{number}"


def number_of(pool: str, name: str) -> int | None:
    """None for a name that this pool would never give."""
    prefix, _, digits = name.rpartition("-")
    if prefix != pool or not digits.isascii() or not digits.isdigit() or len(digits) > MOST_DIGITS or digits.startswith("0"):
        return None
    return int(digits)


def free_numbers(pool: str, taken: Container[str]) -> Iterator[int]:
    """The lowest first, so that gaps are filled before numbers are appended. `taken`: all machines of the namespace, whoever owns
    them."""
    return (number for number in count(1) if machine_name(pool, number) not in taken)

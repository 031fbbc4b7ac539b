"""Names of a StatefulSet's pods and claims: they follow from its own name and from an ordinal, and are used again and again."""

from __future__ import annotations

from collections.abc import Iterator

from herder.api.core import StatefulSet

# Start and number are both of 32 bits.
_MOST_DIGITS = 10


def pod_name(stateful_set: str, ordinal: int) -> str:
    return f"{stateful_set}-{ordinal}"


def claim_name(template: str, stateful_set: str, ordinal: int) -> str:
    return f"{template}-{stateful_set}-{ordinal}"


def split(name: str) -> tuple[str, int] | None:
    """What comes before the ordinal, and the ordinal. Only as it is written by `pod_name`: `web-01` is nobody's, else it would be a
    second pod of the ordinal 1."""
    before, _, digits = name.rpartition("-")
    if not before or not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        return None
    return None if digits != "0" and digits.startswith("0") else (before, int(digits))


def ordinal_of(stateful_set: str, pod: str) -> int | None:
    found = split(pod)
    return found[1] if found is not None and found[0] == stateful_set else None


def claimants(claim: str) -> Iterator[tuple[str, str]]:
    """Each name of a template, with that of a StatefulSet, of which a claim may have its name: both may have dashes."""
    found = split(claim)
    words = found[0].split("-") if found is not None else []
    for place in range(1, len(words)):
        yield "-".join(words[:place]), "-".join(words[place:])


def size_of(stateful_set: StatefulSet) -> int:
    """The API server fills in 1 where nothing is said."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def ordinals(stateful_set: StatefulSet) -> range:
    """Those that it is to have."""
    spec = stateful_set.spec
    start = spec.ordinals.start if spec.ordinals is not None else 0
    return range(start, start + size_of(stateful_set))


def partition(stateful_set: StatefulSet) -> int:
    """The first ordinal that an update reaches."""
    rolling = stateful_set.spec.update_strategy.rolling_update
    return ordinals(stateful_set).start + ((rolling.partition or 0) if rolling is not None else 0)

"""How a simulated guest behaves: annotations `simulated.herder.dev/…` of its instance. docs/simulated.md has them as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from herder.api import reasons
from herder.api.duration import parse_seconds
from herder.api.quantity import parse_quantity
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.simulated.load import CPU_EXAMPLE, IDLE_CPU, IDLE_MEMORY, MEMORY_EXAMPLE, Curve, read_cpu, read_memory

STEPS = ("start", "boot", "incoming", "migration", "save")


class Settings(msgspec.Struct, frozen=True):
    boot: float = 0.2  # seconds from start to running
    shutdown: float = 0.2  # seconds from the power button to the end
    ignores_power_button: bool = False
    exits_after: float | None = None  # seconds after which the guest shuts itself down
    crashes_after: float | None = None
    ready_after: float = 0.0  # seconds from running until the readiness probe passes
    dies_after: float | None = None  # seconds from running until the liveness probe fails
    dirty_rate: int = 0  # bytes that the guest changes in a second
    working_set: int | None = None  # bytes that it changes over and over; all its memory when absent
    save_bandwidth: int = 1 << 30  # bytes of memory that are saved in a second
    cpu: Curve = IDLE_CPU  # processors that it uses, by how long it has run
    memory: Curve = IDLE_MEMORY  # bytes that it uses, likewise
    fails_at: str = ""  # one of STEPS
    fails_at_percent: int = 50  # of the copy, for `migration` and `save`


def settings_of(written: Mapping[str, str]) -> Settings:
    """Raises `Refused` with the annotation at fault."""
    values: dict[str, Any] = {}
    for name, text in written.items():
        if name not in KNOWN:
            known = ", ".join(sorted(KNOWN))
            raise Refused(reasons.UNSUPPORTED, f"annotation simulated.herder.dev/{name} is not known; known are: {known}")
        field, read, example = KNOWN[name]
        try:
            values[field] = read(text)
        except (ValueError, TypeError):
            raise Refused(
                reasons.UNSUPPORTED, f"annotation simulated.herder.dev/{name}: {text!r} cannot be read; write for example {example}"
            ) from None
    return Settings(**values)


def _seconds(text: str) -> float:
    """A Go duration, as elsewhere; plain numbers are seconds."""
    value = float(text) if text.replace(".", "", 1).isdigit() else parse_seconds(text)
    if value < 0:
        raise ValueError(text)
    return value


def _bytes(text: str) -> int:
    value = parse_quantity(text).value()
    if value < 0:
        raise ValueError(text)
    return value


def _yes(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _step(text: str) -> str:
    if text not in STEPS:
        raise ValueError(text)
    return text


def _percent(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 100:
        raise ValueError(text)
    return value


# By the names of the annotations, in the order of docs/simulated.md.
KNOWN: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "boot": ("boot", _seconds, "2s"),
    "shutdown": ("shutdown", _seconds, "2s"),
    "ignores-power-button": ("ignores_power_button", _yes, '"true"'),
    "exits-after": ("exits_after", _seconds, "30s"),
    "crashes-after": ("crashes_after", _seconds, "30s"),
    "ready-after": ("ready_after", _seconds, "5s"),
    "dies-after": ("dies_after", _seconds, "60s"),
    "dirty-rate": ("dirty_rate", _bytes, "100Mi"),
    "working-set": ("working_set", _bytes, "256Mi"),
    "save-bandwidth": ("save_bandwidth", _bytes, "100Mi"),
    "cpu": ("cpu", read_cpu, CPU_EXAMPLE),
    "memory": ("memory", read_memory, MEMORY_EXAMPLE),
    "fails-at": ("fails_at", _step, " or ".join(STEPS)),
    "fails-at-percent": ("fails_at_percent", _percent, '"50"'),
}

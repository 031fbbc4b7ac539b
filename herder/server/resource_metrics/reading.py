"""What a node says of what it uses: its `/metrics/resource`, read line by line as it comes.

A node is less trusted than we are. Only what concerns it is kept, numbers have bounds, and so has every line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection

import msgspec

# The containers of a pod that is bound to the node; None for any other pod.
ContainersOf = Callable[[str, str], Collection[str] | None]

LONGEST_LINE = 4096
MOST_CPU_SECONDS = 1e12
MOST_BYTES = float(1 << 60)
_SAMPLE = re.compile(rb"([a-z_]+)(?:\{([^}]*)\})? ([0-9.eE+-]+)(?: ([0-9]{1,15}))?")
_LABEL = re.compile(rb'([a-z]+)="([^"\\]*)"')
_PART = re.compile(rb"^# node (\S+)\n", re.MULTILINE)
_END = b"resource_scrape_error"


class Unreadable(Exception):
    """It cannot be used, and the sentence says why."""


class Reading(msgspec.Struct):
    """Of a node or a container; what was not told is missing."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    started_at: float = 0.0
    at: float = 0.0  # when it was so, by the node's own clock; 0 where it does not say


class ContainerName(msgspec.Struct, frozen=True):
    namespace: str
    pod: str
    container: str


class NodeReading(msgspec.Struct):
    node: Reading
    containers: dict[ContainerName, Reading]


class ResourceMetricsReader:
    def __init__(self, containers_of: ContainersOf) -> None:
        self._containers_of = containers_of
        self._bound: dict[tuple[str, str], Collection[str]] = {}
        self._rest = b""
        self._read = NodeReading(Reading(), {})
        self._ended = False

    def feed(self, piece: bytes) -> None:
        """Raises `Unreadable`."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST_LINE or any(len(line) > LONGEST_LINE for line in lines):
            raise Unreadable(f"a line is longer than {LONGEST_LINE} bytes")
        for line in lines:
            if line and not line.startswith(b"#"):
                self._line(line)

    def end(self) -> NodeReading:
        """Raises `Unreadable` where not all of it has come: what is missing would look as if it used nothing."""
        if not self._ended:
            raise Unreadable("the answer has no end, or says that something could not be measured")
        return self._read

    def _line(self, line: bytes) -> None:
        found = _SAMPLE.fullmatch(line)
        if found is None:
            return
        name, labels, text, at = found.groups()
        if name == _END:
            self._ended = text == b"0"
        elif name.startswith(b"node_"):
            _note(self._read.node, name.removeprefix(b"node_"), text, at)
        elif name.startswith(b"container_") and (reading := self._container(labels or b"")) is not None:
            _note(reading, name.removeprefix(b"container_"), text, at)

    def _container(self, labels: bytes) -> Reading | None:
        said = {name: value.decode(errors="replace") for name, value in _LABEL.findall(labels)}
        container = ContainerName(said.get(b"namespace", ""), said.get(b"pod", ""), said.get(b"container", ""))
        pod = (container.namespace, container.pod)
        if pod not in self._bound:
            containers = self._containers_of(*pod)
            if containers is None:
                return None  # and not noted: a node may make up as many names as it likes
            self._bound[pod] = containers
        if container.container not in self._bound[pod]:
            return None
        return self._read.containers.setdefault(container, Reading())


def parts_of(text: bytes, nodes: Collection[str]) -> dict[str, bytes]:
    """What an answer for several nodes says of each of them; nothing of those that it leaves out."""
    _, *rest = _PART.split(text)
    told = dict(zip(rest[::2], rest[1::2], strict=True))
    return {node: told.get(node.encode(), b"") for node in nodes}


def _note(reading: Reading, what: bytes, text: bytes, at: bytes | None) -> None:
    value = _number(text)
    if value is None:
        return
    if what == b"cpu_usage_seconds_total" and value <= MOST_CPU_SECONDS:
        reading.cpu_seconds = value
        reading.at = int(at) / 1000 if at else 0.0
    elif what == b"memory_working_set_bytes" and value <= MOST_BYTES:
        reading.memory_bytes = int(value)
    elif what == b"start_time_seconds":
        reading.started_at = value


def _number(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

"""The last samples of all nodes, and what they say: how much is used now, averaged from one sample to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from herder.server.resource_metrics.reading import NodeReading, Reading

# From node to node clocks differ; by more than this a node's own word of when it was is not taken.
CLOCKS_DIFFER = 30.0
# What was used in less time than this says nothing.
SHORTEST_WINDOW = 1.0
# A container that was sampled once is judged by its whole life, once that is so long, as a metrics-server does it.
YOUNGEST = 10.0
OLDEST_OF_ONE_SAMPLE = 40.0
# An answer that is missing now and then is no reason to know nothing.
SHOWN_FOR = 40.0


class Measured(msgspec.Struct, frozen=True):
    at: float
    window: float
    cpu: float  # processors
    memory_bytes: int


class _Track(msgspec.Struct, frozen=True):
    """One counter: where it stood last, and what follows from that and from before."""

    at: float
    cpu_seconds: float
    measured: Measured | None


class _Node(msgspec.Struct):
    track: _Track | None
    # By the pod's uid, then by the container: a pod that comes again under its name begins anew.
    pods: dict[str, dict[str, _Track]]


class Samples:
    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        # Nobody has been asked twice yet: to say that nothing is used would be wrong.
        self.ready = False

    def store(self, node: str, reading: NodeReading, uids: Mapping[tuple[str, str], str], now: float) -> None:
        """`uids` are those of the node's pods, by namespace and name."""
        before = self._nodes.get(node, _Node(None, {}))
        pods: dict[str, dict[str, _Track]] = {}
        for name, one in reading.containers.items():
            uid = uids.get((name.namespace, name.pod), "")
            known = before.pods.get(uid, {}).get(name.container)
            if uid and (track := _next(known, one, now)) is not None:
                pods.setdefault(uid, {})[name.container] = track
        self._nodes[node] = _Node(_next(before.track, reading.node, now), pods)

    def keep(self, nodes: Collection[str]) -> None:
        """Of others nothing is known any more."""
        if len(self._nodes) > len(nodes) or any(name not in nodes for name in self._nodes):
            self._nodes = {name: node for name, node in self._nodes.items() if name in nodes}

    def node(self, name: str, now: float) -> Measured | None:
        known = self._nodes.get(name)
        return _fresh(known.track, now) if known is not None else None

    def pod(self, node: str, uid: str, now: float) -> dict[str, Measured] | None:
        """All containers that are known of it; None where one of them is not measured yet: half of a pod would look like all."""
        known = self._nodes.get(node)
        tracks = known.pods.get(uid, {}) if known is not None else {}
        found = {name: measured for name, track in tracks.items() if (measured := _fresh(track, now)) is not None}
        return found if found and len(found) == len(tracks) else None


def _fresh(track: _Track | None, now: float) -> Measured | None:
    measured = track.measured if track is not None else None
    return measured if measured is not None and now - measured.at <= SHOWN_FOR else None


def _next(before: _Track | None, reading: Reading, now: float) -> _Track | None:
    """None where the node did not tell both."""
    if reading.cpu_seconds is None or reading.memory_bytes is None:
        return None
    at = reading.at if abs(reading.at - now) <= CLOCKS_DIFFER else now
    since = _since(before, reading, at)
    if since is None:
        kept = before.measured if before is not None and reading.cpu_seconds >= before.cpu_seconds else None
        return _Track(at, reading.cpu_seconds, kept)
    began, cpu_seconds = since
    window = at - began
    measured = Measured(at, window, (reading.cpu_seconds - cpu_seconds) / window, reading.memory_bytes)
    return _Track(at, reading.cpu_seconds, measured)


def _since(before: _Track | None, reading: Reading, at: float) -> tuple[float, float] | None:
    """From when on, and where the counter stood then. One that fell was begun anew."""
    assert reading.cpu_seconds is not None
    if before is not None and reading.cpu_seconds >= before.cpu_seconds:
        return (before.at, before.cpu_seconds) if at - before.at >= SHORTEST_WINDOW else None
    lived = at - reading.started_at
    return (reading.started_at, 0.0) if YOUNGEST <= lived <= OLDEST_OF_ONE_SAMPLE else None

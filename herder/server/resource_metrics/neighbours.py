"""Which nodes are in one place, and can be asked together: those of our own agents, who are many nodes in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from herder.server.kubelets import Place, place_of
from herder.server.status import ApiError
from herder.server.store import Record

Address = tuple[str, int]
# In one question: so many nodes, and so many letters of their names, which all stand in its first line.
MOST = 50
LONGEST = 4000


class Neighbours:
    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, Address | None]] = {}
        self._nodes: Counter[Address] = Counter()
        # Where somebody else answered than our own agents.
        self._parted: set[Address] = set()

    def see(self, record: Record) -> bool:
        """The node as it is now; whether it had to be read, which costs something. Nodes seldom change."""
        revision, before = self._seen.get(record.name, (0, None))
        if revision == record.revision:
            return False
        now = _address_in(record)
        self._seen[record.name] = (record.revision, now)
        self._move(before, now)
        return True

    def keep(self, nodes: Collection[str]) -> None:
        """Of others nothing is known any more."""
        for node in [one for one in self._seen if one not in nodes]:
            self._move(self._seen.pop(node)[1], None)
        self._parted &= self._nodes.keys()

    def are_at(self, place: Place) -> bool:
        """Whether several nodes are there: who else than our own agents could be several nodes?"""
        address = (place.host, place.port)
        return self._nodes[address] > 1 and address not in self._parted

    def part(self, place: Place) -> None:
        """It is somebody else who answers there. One of them lies: from now on each is asked by itself."""
        self._parted.add((place.host, place.port))

    def groups(self, nodes: Iterable[str], alone: Collection[str]) -> list[tuple[str, ...]]:
        """Of all these; those that are to be asked alone are."""
        found: list[tuple[str, ...]] = []
        together: dict[Address, list[str]] = {}
        for node in nodes:
            address = self._seen.get(node, (0, None))[1]
            if address is None or node in alone or not self.are_at(Place(node, *address)):
                found.append((node,))
            else:
                together.setdefault(address, []).append(node)
        return [*(group for names in together.values() for group in _pieces(names)), *found]

    def _move(self, before: Address | None, now: Address | None) -> None:
        if now is not None:
            self._nodes[now] += 1
        if before is not None:
            self._nodes[before] -= 1
            if not self._nodes[before]:
                del self._nodes[before]


def _address_in(record: Record) -> Address | None:
    try:
        place = place_of(record.document())
    except ApiError:
        return None
    return place.host, place.port


def _pieces(names: list[str]) -> Iterator[tuple[str, ...]]:
    piece: list[str] = []
    for name in names:
        if len(piece) == MOST or sum(map(len, piece)) + len(name) > LONGEST:
            yield tuple(piece)
            piece = []
        piece.append(name)
    yield tuple(piece)

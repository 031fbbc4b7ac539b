"""Arrays with one place for each node, and labels as numbers in them: a question to 5,000 nodes is one operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from herder.api.integers import parse_int64

Mask = NDArray[np.bool_]
Codes = NDArray[np.int32]
Counts = NDArray[np.int32]
Whole = NDArray[np.int64]
Scores = NDArray[np.float64]
ABSENT = 0
D = TypeVar("D", bound=np.generic)


def longer(old: NDArray[D], length: int) -> NDArray[D]:
    """The same with more room at its end, which is zero."""
    new = np.zeros(length, dtype=old.dtype)
    new[: len(old)] = old
    return new


# Keys of labels that are kept as columns; values that are kept though no node has them any more.
MOST_COLUMNS = 512
MOST_UNUSED = 64


class LabelColumn:
    """One label key of all nodes. Values are numbered as they are met; a node without the label has number 0."""

    __slots__ = ("codes", "numbers")

    def __init__(self, capacity: int) -> None:
        self.codes: Codes = np.zeros(capacity, dtype=np.int32)
        self.numbers: dict[str, int] = {}

    @property
    def places(self) -> int:
        """How many numbers there are, with that of "absent"."""
        return len(self.numbers) + 1

    def put(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.numbers.setdefault(value, len(self.numbers) + 1)

    def grow(self, capacity: int) -> None:
        self.codes = longer(self.codes, capacity)

    def clear(self) -> None:
        self.codes[:] = ABSENT
        self.numbers.clear()

    def present(self) -> Mask:
        return self.codes != ABSENT

    def one_of(self, values: Iterable[str]) -> Mask:
        known = [number for number in map(self.numbers.get, values) if number is not None]
        if len(known) == 1:
            return self.codes == known[0]
        return self._looked_up(known)

    def above(self, bound: int) -> Mask:
        return self._by_number(lambda number: number > bound)

    def below(self, bound: int) -> Mask:
        return self._by_number(lambda number: number < bound)

    def sums(self, per_node: NDArray[np.generic]) -> Scores:
        """What the nodes of each place have together, shown at each of these nodes; 0 where the label is missing."""
        totals = self.totals(per_node)
        totals[ABSENT] = 0
        return totals[self.codes]

    def totals(self, per_node: NDArray[np.generic]) -> Scores:
        """The same by number of the place."""
        return np.bincount(self.codes, weights=per_node, minlength=self.places).astype(np.float64, copy=False)

    def _by_number(self, wanted: Callable[[int], bool]) -> Mask:
        parsed = ((number, parse_int64(value)) for value, number in self.numbers.items())
        return self._looked_up([number for number, value in parsed if value is not None and wanted(value)])

    def _looked_up(self, numbers: list[int]) -> Mask:
        table = np.zeros(self.places, dtype=np.bool_)
        table[numbers] = True
        return table[self.codes]


class Labels:
    """The labels of all nodes. A column is made when a rule first asks for its key: nodes have many labels nobody asks for."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}
        self._of_nodes: dict[int, Mapping[str, str]] = {}

    def put(self, row: int, labels: Mapping[str, str] | None) -> None:
        """None for a node that is gone."""
        if labels is None:
            self._of_nodes.pop(row, None)
        else:
            self._of_nodes[row] = labels
        for key, column in self._columns.items():
            column.put(row, None if labels is None else labels.get(key))
            if column.places > 2 * len(self._of_nodes) + MOST_UNUSED:
                # Most are values of nodes that are gone.
                self._fill(key, column)

    def _fill(self, key: str, column: LabelColumn) -> None:
        column.clear()
        for row, labels in self._of_nodes.items():
            column.put(row, labels.get(key))

    def of(self, row: int) -> Mapping[str, str]:
        return self._of_nodes[row]

    def column(self, key: str) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= MOST_COLUMNS:
                # Whoever makes pods may ask for any key. The one that was made first is made again when it is asked for.
                del self._columns[next(iter(self._columns))]
            column = self._columns[key] = LabelColumn(self._capacity)
            self._fill(key, column)
        return column

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)

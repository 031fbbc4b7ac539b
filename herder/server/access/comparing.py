"""Does one set of rules hold everything of another? Pure, and without multiplying the lists of a rule out.

What somebody holds divides each list of a wanted rule into classes: two verbs that are in the very same of the held rules are
held, or lack, together. There are few classes, however long the lists; only these are multiplied. Whoever holds so much in so many
pieces that even these are too many is told to ask for less at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, product
from math import prod
from typing import Any, NamedTuple, TypeVar

import msgspec

from herder.server.access.rules import ALL, Rule

# Of classes of one comparison; each costs a fraction of a microsecond.
MOST_COMPARED = 200_000
# A refusal names so many pieces, and counts the others.
MOST_TOLD = 500


class TooManyPieces(Exception):
    """What is wanted cannot be compared with what is held within reason."""


class Lacking(NamedTuple):
    """What is wanted and not held: some of its smallest pieces, and how many there are in all."""

    pieces: list[Rule]
    amount: int

    def told(self) -> str:
        """Pieces that differ only in their verb are told as one, a line each."""
        verbs: dict[Rule, list[str]] = {}
        for piece in self.pieces:
            rest = msgspec.structs.replace(piece, verbs=())
            verbs.setdefault(rest if piece.resources else piece, []).extend(piece.verbs)
        lines = sorted(str(msgspec.structs.replace(rest, verbs=tuple(found))) for rest, found in verbs.items())
        more = self.amount - len(self.pieces)
        return "\n".join([*lines, f"and {more} more"] if more else lines)


def missing(held: Iterable[Rule], wanted: Iterable[Rule], told: int = MOST_TOLD) -> Lacking:
    """What of `wanted` is not in `held`, in the smallest pieces: the first of them, and how many there are."""
    owners, pieces, count = _Owners(_merged(held)), list[Rule](), 0
    budget = MOST_COMPARED
    for rule in _merged(wanted):
        for lacking in (owners.lacking_resources(rule, budget), owners.lacking_paths(rule, budget)):
            budget -= lacking.compared
            count += sum(box.size for box in lacking.boxes)
            first = islice(chain.from_iterable(box.pieces() for box in lacking.boxes), told - len(pieces))
            pieces += sorted(first, key=lambda piece: rule.verbs.index(piece.verbs[0]))
    return Lacking(pieces, count)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """Rules that differ in their names alone as one: there may be thousands, each for one name."""
    names: dict[Rule, dict[str, None]] = {}
    for rule in rules:
        same = names.setdefault(msgspec.structs.replace(_unique(rule), names=("*",) if rule.names else ()), {})
        same.update(dict.fromkeys(rule.names))
    return [msgspec.structs.replace(rule, names=tuple(found)) for rule, found in names.items()]


def _unique(rule: Rule) -> Rule:
    lists = (rule.verbs, rule.api_groups, rule.resources, rule.names, rule.paths)
    return Rule(*(tuple(dict.fromkeys(values)) for values in lists))


class _Box(NamedTuple):
    """Every combination of these lists is wanted and not held."""

    lists: tuple[Sequence[Any], ...]
    of_paths: bool

    @property
    def size(self) -> int:
        return prod(len(values) for values in self.lists)

    def pieces(self) -> Iterator[Rule]:
        if self.of_paths:
            return (Rule((verb,), paths=(path,)) for path, verb in product(*self.lists))
        return (Rule((verb,), (group,), (resource,), names) for group, resource, names, verb in product(*self.lists))


class _Boxes(NamedTuple):
    boxes: list[_Box]
    compared: int


# The numbers of the held rules that an element is in, as the bits of a number.
Mask = int
E = TypeVar("E")
Classes = dict[Mask, list[E]]


class _Owners:
    """What is held, by element: in which rules a verb, a group, a resource or a name is."""

    def __init__(self, rules: list[Rule]) -> None:
        self._verbs = _Index(rule.verbs for rule in rules)
        self._groups = _Index(rule.api_groups for rule in rules)
        self._resources = _Index(rule.resources for rule in rules)
        self._names = _Index(rule.names for rule in rules)
        # Those that are for every name. (A name may be "*", and is then the name of one thing.)
        self._unnamed = _mask(number for number, rule in enumerate(rules) if not rule.names)
        self._paths = _Index(rule.paths for rule in rules)
        self._prefixes = _Index((path.rstrip(ALL) for path in rule.paths if path.endswith(ALL)) for rule in rules)

    def lacking_resources(self, rule: Rule, budget: int) -> _Boxes:
        names = _classes([(name,) for name in rule.names] or [()], self._name)
        lists = (
            _classes(rule.api_groups, self._groups.mask),
            _classes(rule.resources, self._resource),
            names,
            _classes(rule.verbs, self._verbs.mask),
        )
        return _lacking(lists, budget, of_paths=False)

    def lacking_paths(self, rule: Rule, budget: int) -> _Boxes:
        if len(rule.paths) * len(self._prefixes.masks) > budget:
            raise TooManyPieces
        return _lacking((_classes(rule.paths, self._path), _classes(rule.verbs, self._verbs.mask)), budget, of_paths=True)

    def _resource(self, resource: str) -> Mask:
        _, slash, subresource = resource.partition("/")
        return self._resources.mask(resource) | (self._resources.exact(f"*/{subresource}") if slash else 0)

    def _name(self, names: tuple[str, ...]) -> Mask:
        return self._unnamed | (self._names.exact(names[0]) if names else 0)

    def _path(self, path: str) -> Mask:
        found = self._paths.exact(path)
        for prefix, mask in self._prefixes.masks.items():
            if path.startswith(prefix):
                found |= mask
        return found


class _Index:
    def __init__(self, lists: Iterable[Iterable[str]]) -> None:
        numbers: dict[str, list[int]] = {}
        for number, elements in enumerate(lists):
            for element in elements:
                numbers.setdefault(element, []).append(number)
        self.masks = {element: _mask(found) for element, found in numbers.items()}

    def exact(self, element: str) -> Mask:
        return self.masks.get(element, 0)

    def mask(self, element: str) -> Mask:
        return self.exact(element) | self.exact(ALL)


def _mask(numbers: Iterable[int]) -> Mask:
    return sum(1 << number for number in set(numbers))


def _classes(elements: Sequence[E], mask_of: Callable[[E], Mask]) -> Classes[E]:
    found: Classes[E] = {}
    for element in elements:
        found.setdefault(mask_of(element), []).append(element)
    return found


def _lacking(lists: tuple[Classes[Any], ...], budget: int, *, of_paths: bool) -> _Boxes:
    compared = prod(len(classes) for classes in lists)
    if compared > budget:
        raise TooManyPieces
    boxes: list[_Box] = []
    for combination in product(*(classes.items() for classes in lists)):
        common = combination[0][0]
        for mask, _ in combination[1:]:
            common &= mask
        if not common:
            boxes.append(_Box(tuple(elements for _, elements in combination), of_paths))
    return _Boxes(boxes, compared)

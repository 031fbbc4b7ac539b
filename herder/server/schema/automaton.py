"""Regular expressions in time that grows with the text alone, as RE2 promises it: all ways to match are followed at once.

Python's own engine tries one way after the other, and for patterns such as `(a+)+$` there are more ways than anybody can wait for.
Its parser is used, though: a pattern becomes a small program, and the program an automaton whose states are made when first met.
"""

from __future__ import annotations

import re
import re._constants as sre  # pyright: ignore[reportMissingImports]
from collections.abc import Callable
from typing import Any, NamedTuple

Test = Callable[[str], bool]
# Kinds of characters that assertions look at.
OUTSIDE, WORD, LINE_END, OTHER = range(4)
MOST_STEPS = 20_000
MOST_STATES = 2_000
MOST_CACHED = 20_000
# For finding where a match is, which is slower than finding out whether there is one.
MOST_WORK = 1_000_000

_DIGITS = frozenset("0123456789")
_SPACES = frozenset(" \t\n\r\f\v")
_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class TooCostly(Exception):
    """The pattern, or what it is asked to find, is larger than can be followed."""


class Step(NamedTuple):
    """`take`: a character of this sort; `split`: go on at each of these, best first; `check`: an assertion; else: matched."""

    take: Test | None = None
    split: tuple[int, ...] | None = None
    check: Any = None


def kind_of(character: str) -> int:
    if not character:
        return OUTSIDE
    if character in _WORDS:
        return WORD
    return LINE_END if character == "\n" else OTHER


class Automaton:
    def __init__(self, tree: Any, flags: int) -> None:
        self._steps: list[Step] = []
        _Building(self._steps).sequence(tree, flags)
        self._steps.append(Step())
        self._states: dict[tuple[tuple[int, ...], int], int] = {}
        self._known: list[tuple[tuple[int, ...], int]] = []
        self._moves: dict[tuple[int, str], int] = {}

    def search(self, text: str) -> bool:
        """Whether there is a match anywhere."""
        state = self._state((), OUTSIDE)
        moves = self._moves
        for character in text:
            following = moves.get((state, character))
            if following is None:
                following = self._move(state, character)
            if following < 0:
                return True
            state = following
        return self._move(state, "") < 0

    def _state(self, places: tuple[int, ...], before: int) -> int:
        key = (places, before)
        number = self._states.get(key)
        if number is None:
            number = self._states[key] = len(self._known)
            self._known.append(key)
        return number

    def _move(self, state: int, character: str) -> int:
        """-1: matched."""
        places, before = self._known[state]
        here = self._closure((*places, 0), before, kind_of(character))
        if any(self._is_end(place) for place in here):
            result = -1
        else:
            taken = sorted({place + 1 for place in here if (take := self._steps[place].take) and character and take(character)})
            if len(self._known) > MOST_STATES or len(self._moves) > MOST_CACHED:
                self._forget()
                return self._state(tuple(taken), kind_of(character))
            result = self._state(tuple(taken), kind_of(character))
        self._moves[state, character] = result
        return result

    def _forget(self) -> None:
        self._states.clear()
        self._known.clear()
        self._moves.clear()

    def _is_end(self, place: int) -> bool:
        return place == len(self._steps) - 1

    def _closure(self, places: tuple[int, ...], before: int, after: int) -> list[int]:
        """Everywhere that can be reached without a character, best first."""
        found: dict[int, None] = {}
        waiting = list(reversed(places))
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            step = self._steps[place]
            if step.split is not None:
                waiting.extend(reversed(step.split))
            elif step.check is not None:
                if _holds(step.check, before, after):
                    waiting.append(place + 1)
            else:
                found[place] = None
        return list(found)

    # --- where it is -------------------------------------------------------------------------------------------------------------

    def find(self, text: str, start: int = 0, work: list[int] | None = None) -> tuple[int, int] | None:
        """The first match, and of those that start there the one that comes first by preference. TooCostly for very much text.

        `work`: what is left of it for all the matches of one text. Each of them may have to look at the whole rest.
        """
        work = work if work is not None else [MOST_WORK]
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            if best is None:
                threads.append((0, at))
            elif not threads:
                break
            work[0] -= len(self._steps)
            if work[0] < 0:
                raise TooCostly("the text is too long for this pattern")
            threads, ended = self._advance(threads, text, at)
            best = ended or best
        return best

    def _advance(self, threads: list[tuple[int, int]], text: str, at: int) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
        character = text[at] if at < len(text) else ""
        before, after = kind_of(text[at - 1]) if at else OUTSIDE, kind_of(character)
        following: dict[int, int] = {}
        seen: set[int] = set()
        for place, begun in threads:
            for here in self._closure((place,), before, after):
                if here in seen:
                    continue
                seen.add(here)
                if self._is_end(here):
                    return list(following.items()), (begun, at)
                take = self._steps[here].take
                if take is not None and character and take(character):
                    following.setdefault(here + 1, begun)
        return list(following.items()), None


def _holds(check: Any, before: int, after: int) -> bool:
    if check in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
        return ((before == WORD) != (after == WORD)) == (check == sre.AT_BOUNDARY)
    if check in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return before == OUTSIDE
    if check == sre.AT_BEGINNING_LINE:
        return before in (OUTSIDE, LINE_END)
    if check == sre.AT_END_LINE:
        return after in (OUTSIDE, LINE_END)
    return after == OUTSIDE


class _Building:
    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    def _add(self, step: Step) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise TooCostly("expression too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def sequence(self, tree: Any, flags: int) -> None:
        for op, argument in tree:
            self._one(op, argument, flags)

    def _one(self, op: Any, argument: Any, flags: int) -> None:
        if op is sre.BRANCH:
            self._branch(argument[1], flags)
        elif op is sre.SUBPATTERN:
            _, more, less, inside = argument
            self.sequence(inside, (flags | more) & ~less)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inside = argument
            self._repeat(least, most, inside, op is sre.MAX_REPEAT, flags)
        elif op is sre.AT:
            multiline = flags & re.MULTILINE and argument in (sre.AT_BEGINNING, sre.AT_END)
            lines = {sre.AT_BEGINNING: sre.AT_BEGINNING_LINE, sre.AT_END: sre.AT_END_LINE}
            self._add(Step(check=lines[argument] if multiline else argument))
        else:
            self._add(Step(take=_test(op, argument, flags)))

    def _branch(self, branches: Any, flags: int) -> None:
        jumps: list[int] = []
        for index, branch in enumerate(branches):
            split = self._add(Step(split=())) if index < len(branches) - 1 else None
            begin = len(self._steps)
            self.sequence(branch, flags)
            jumps.append(self._add(Step(split=())))
            if split is not None:
                self._steps[split] = Step(split=(begin, len(self._steps)))
        for jump in jumps:
            self._steps[jump] = Step(split=(len(self._steps),))

    def _repeat(self, least: int, most: int, inside: Any, greedy: bool, flags: int) -> None:
        for _ in range(least):
            self.sequence(inside, flags)
        if most == sre.MAXREPEAT:
            split = self._add(Step(split=()))
            self.sequence(inside, flags)
            self._add(Step(split=(split,)))
            self._choose([split], greedy)
            return
        splits: list[int] = []
        for _ in range(most - least):
            splits.append(self._add(Step(split=())))
            self.sequence(inside, flags)
        self._choose(splits, greedy)

    def _choose(self, splits: list[int], greedy: bool) -> None:
        end = len(self._steps)
        for split in splits:
            self._steps[split] = Step(split=(split + 1, end) if greedy else (end, split + 1))


def _test(op: Any, argument: Any, flags: int) -> Test:
    if op is sre.ANY:
        return (lambda _: True) if flags & re.DOTALL else (lambda one: one != "\n")
    if op is sre.LITERAL:
        return _folded(lambda one: ord(one) == argument, flags)
    if op is sre.NOT_LITERAL:
        inside = _folded(lambda one: ord(one) == argument, flags)
        return lambda one: not inside(one)
    if op is sre.IN:
        return _any_of(argument, flags)
    raise TooCostly(f"{op} cannot be followed")


def _folded(test: Test, flags: int) -> Test:
    if not flags & re.IGNORECASE:
        return test
    return lambda one: test(one) or any(len(other) == 1 and test(other) for other in (one.lower(), one.upper()))


def _any_of(items: Any, flags: int) -> Test:
    negated = any(op is sre.NEGATE for op, _ in items)
    tests = [_item(op, argument) for op, argument in items if op is not sre.NEGATE]
    inside = _folded(lambda one: any(test(one) for test in tests), flags)
    return (lambda one: not inside(one)) if negated else inside


_CATEGORIES: dict[Any, tuple[frozenset[str], bool]] = {
    sre.CATEGORY_DIGIT: (_DIGITS, True),
    sre.CATEGORY_NOT_DIGIT: (_DIGITS, False),
    sre.CATEGORY_SPACE: (_SPACES, True),
    sre.CATEGORY_NOT_SPACE: (_SPACES, False),
    sre.CATEGORY_WORD: (_WORDS, True),
    sre.CATEGORY_NOT_WORD: (_WORDS, False),
}


def _item(op: Any, argument: Any) -> Test:
    if op is sre.LITERAL:
        return lambda one: ord(one) == argument
    if op is sre.RANGE:
        low, high = argument
        return lambda one: low <= ord(one) <= high
    if op is sre.CATEGORY:
        characters, wanted = _CATEGORIES[argument]
        return lambda one: (one in characters) == wanted
    raise TooCostly(f"{op} cannot be followed")

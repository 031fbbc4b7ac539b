"""Label selectors as text, the way `kubectl -l` and `labelSelector=` write them: `a=b,c!=d,e in (x,y),f notin (z),g,!h,n>1`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, NoReturn

from herder.api import names
from herder.api.problems import invalid
from herder.api.selectors import (
    BINARY_OPERATORS,
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_EQUALS,
    NOT_IN,
    Requirement,
    Selector,
    requirement,
)

_SPECIAL: Final = frozenset("=!(),><")
_BLANK: Final = frozenset(" \t\r\n")
_OPERATORS: Final = {
    "=": EQUALS,
    "==": DOUBLE_EQUALS,
    "!=": NOT_EQUALS,
    ">": GREATER,
    "<": LESS,
    "in": IN,
    "notin": NOT_IN,
}
_END: Final = "end"
_WORD: Final = "word"


class _Token(NamedTuple):
    """`kind` is the symbol itself, or one of word, end."""

    kind: str
    text: str


@lru_cache(maxsize=512)
def _cached(text: str) -> Selector:
    return Selector(_Parser(text).parse())


def parse_selector(text: str) -> Selector:
    """ValueError in Kubernetes' words when the text is no selector. The empty text selects everything."""
    return _cached(text) if len(text) < 1000 else Selector(_Parser(text).parse())


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        if at >= len(text) or text[at] == "\0":  # a NUL ends the text for Kubernetes' scanner
            found.append(_Token(_END, ""))
            return found
        token, at = _symbol(text, at) if text[at] in _SPECIAL else _word(text, at)
        found.append(token)


def _word(text: str, start: int) -> tuple[_Token, int]:
    at = start
    while at < len(text) and text[at] not in _SPECIAL and text[at] not in _BLANK and text[at] != "\0":
        at += 1
    return _Token(_WORD, text[start:at]), _after(text, at)


def _symbol(text: str, start: int) -> tuple[_Token, int]:
    """The longest symbol that begins here: `==` before `=`. Every special character is a symbol by itself."""
    symbol = text[start : start + 2]
    if symbol not in ("==", "!="):
        symbol = text[start]
    return _Token(symbol, symbol), _after(text, start + len(symbol))


def _after(text: str, at: int) -> int:
    """Kubernetes' scanner swallows a NUL that ends a token."""
    return at + 1 if text[at : at + 1] == "\0" else at


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self._peek()
            if token.kind == _END:
                return found
            if token.kind not in (_WORD, "!"):
                _fail(token, "!, identifier, or 'end of string'")
            found.append(self._requirement_in_context())
            token = self._next()
            if token.kind == _END:
                return found
            if token.kind != ",":
                _fail(token, "',' or 'end of string'")
            if self._peek().kind not in (_WORD, "!"):
                _fail(self._peek(), "identifier after ','")

    def _peek(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _requirement_in_context(self) -> Requirement:
        try:
            return self._requirement()
        except ValueError as problem:
            raise ValueError(f"unable to parse requirement: {problem}") from None

    def _requirement(self) -> Requirement:
        key, operator = self._key_and_operator()
        if operator:
            return requirement(key, operator, ())
        token = self._next()
        operator = _OPERATORS.get(token.text, "")
        if not operator:
            _fail(token, ", ".join(BINARY_OPERATORS))
        values = self._values() if operator in (IN, NOT_IN) else self._exact_value()
        return requirement(key, operator, sorted(values))

    def _key_and_operator(self) -> tuple[str, str]:
        """The key, and the operator where none is written: it exists, or with `!` it does not."""
        token = self._next()
        negated = token.kind == "!"
        if negated:
            token = self._next()
        if token.kind != _WORD:
            _fail(token, "identifier")
        complaints = names.label_key(token.text)
        if complaints:
            raise ValueError(str(invalid("<nil>", token.text, "; ".join(complaints))))
        if negated:
            return token.text, DOES_NOT_EXIST
        return token.text, EXISTS if self._peek().kind in (_END, ",") else ""

    def _exact_value(self) -> set[str]:
        if self._peek().kind in (_END, ","):
            return {""}
        token = self._next()
        if token.kind != _WORD:
            _fail(token, "identifier")
        return {token.text}

    def _values(self) -> set[str]:
        token = self._next()
        if token.kind != "(":
            raise ValueError(f"found '{token.text}' expected: '('")
        first = self._peek()
        if first.kind == ")":
            self._next()
            return {""}
        if first.kind not in (_WORD, ","):
            _fail(first, "',', ')' or identifier")
        values = self._value_list()
        if self._next().kind != ")":
            _fail(first, "')'")
        return values

    def _value_list(self) -> set[str]:
        """Up to the closing bracket; between two commas there is the empty value."""
        values: set[str] = set()
        while True:
            token = self._next()
            following = self._peek() if token.kind in (_WORD, ",") else token
            if token.kind == _WORD:
                values.add(token.text)
                if following.kind == ")":
                    return values
                if following.kind != ",":
                    _fail(following, "',' or ')'")
            elif token.kind == ",":
                if not values or following.kind in (")", ","):
                    values.add("")
                if following.kind == ")":
                    return values
            else:
                _fail(token, "',', or identifier")


def _fail(token: _Token, expected: str) -> NoReturn:
    raise ValueError(f"found '{token.text}', expected: {expected}")

"""Tokens to a tree. Macros are still calls here; the compiler knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from herder.server.schema.cel.errors import CompileError
from herder.server.schema.cel.lexer import Token, string_value, tokens

_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_RESERVED = ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
             "namespace", "return", "var", "void", "while")  # fmt: skip
_MOST_NESTED = 250


@dataclass(slots=True)
class Expr:
    at: int


@dataclass(slots=True)
class Literal(Expr):
    value: Any
    unsigned: bool = False


@dataclass(slots=True)
class Name(Expr):
    name: str


@dataclass(slots=True)
class Select(Expr):
    operand: Expr
    field: str
    optional: bool = False


@dataclass(slots=True)
class Index(Expr):
    operand: Expr
    key: Expr
    optional: bool = False


@dataclass(slots=True)
class Call(Expr):
    function: str
    target: Expr | None
    args: list[Expr]


@dataclass(slots=True)
class ListOf(Expr):
    items: list[Expr]
    optional: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class MapOf(Expr):
    entries: list[tuple[Expr, Expr]]
    optional: set[int] = field(default_factory=set[int])


# As in Kubernetes.
LONGEST = 100_000


def parse(source: str) -> Expr:
    if len(source) > LONGEST:
        raise CompileError(source[:100], 0, f"expression code point size exceeds limit: size: {len(source)}, limit {LONGEST}")
    parser = _Parser(source)
    tree = parser.expression()
    parser.expect("<EOF>")
    return tree


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        token = self.token
        return token.text in texts and token.kind in ("operator", "name", "end")

    def expect(self, text: str) -> Token:
        if not self.at(text):
            self.fail(self.token, f"Syntax error: mismatched input '{self.token.text}' expecting '{text}'")
        return self.take()

    def fail(self, token: Token, detail: str) -> None:
        raise CompileError(self.source, token.at, detail)

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            self.fail(self.token, "expression recursion limit exceeded")
        condition = self.disjunction()
        if self.at("?"):
            at = self.take().at
            chosen = self.disjunction()
            self.expect(":")
            condition = Call(at, "_?_:_", None, [condition, chosen, self.expression()])
        self.depth -= 1
        return condition

    def disjunction(self) -> Expr:
        return self.chain(("||",), lambda: self.chain(("&&",), self.relation))

    def relation(self) -> Expr:
        return self.chain(_RELATIONS, lambda: self.chain(("+", "-"), lambda: self.chain(("*", "/", "%"), self.unary)))

    def chain(self, operators: tuple[str, ...], operand: Any) -> Expr:
        left: Expr = operand()
        while self.at(*operators):
            token = self.take()
            left = Call(token.at, f"_{token.text}_" if token.text != "in" else "@in", None, [left, operand()])
        return left

    def unary(self) -> Expr:
        if self.at("!", "-"):
            token = self.take()
            self.depth += 1
            if self.depth > _MOST_NESTED:
                self.fail(token, "expression recursion limit exceeded")
            inner = self.unary()
            self.depth -= 1
            if token.text == "-" and isinstance(inner, Literal) and type(inner.value) in (int, float) and not inner.unsigned:
                return Literal(token.at, -inner.value)
            return Call(token.at, "!_" if token.text == "!" else "-_", None, [inner])
        return self.member()

    def member(self) -> Expr:
        expr = self.primary()
        while self.at(".", ".?", "[", "[?"):
            token = self.take()
            if token.text.startswith("."):
                expr = self.selection(expr, token)
            else:
                expr = Index(token.at, expr, self.expression(), optional=token.text == "[?")
                self.expect("]")
        return expr

    def selection(self, operand: Expr, token: Token) -> Expr:
        name = self.take()
        if name.kind != "name" or name.text in ("true", "false", "null", "in"):
            self.fail(name, f"Syntax error: no viable alternative at input '.{name.text}'")
        if self.at("(") and token.text == ".":
            at = self.take().at
            return Call(at, name.text, operand, self.arguments(")"))
        return Select(token.at, operand, name.text, optional=token.text == ".?")

    def arguments(self, end: str) -> list[Expr]:
        found: list[Expr] = []
        while not self.at(end):
            found.append(self.expression())
            if not self.at(end):
                self.expect(",")
        self.take()
        return found

    def primary(self) -> Expr:
        token = self.take()
        if token.kind == "name":
            return self.named(token)
        if token.text == "(" and token.kind == "operator":
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text in ("[", "[?") and token.kind == "operator":
            return self.list_literal(token)
        if token.text == "{":
            return self.map_literal(token)
        if token.text == "." and self.token.kind == "name":
            return self.named(self.take())
        return self.literal(token)

    def named(self, token: Token) -> Expr:
        if token.text in ("true", "false"):
            return Literal(token.at, token.text == "true")
        if token.text == "null":
            return Literal(token.at, None)
        if token.text in _RESERVED or token.text == "in":
            self.fail(token, f"reserved identifier: {token.text}")
        if self.at("("):
            at = self.take().at
            return Call(at, token.text, None, self.arguments(")"))
        return Name(token.at, token.text)

    def literal(self, token: Token) -> Expr:
        if token.kind == "string":
            return Literal(token.at, string_value(self.source, token))
        if token.kind == "double":
            return Literal(token.at, float(token.text))
        if token.kind in ("int", "uint"):
            value = int(token.text.rstrip("uU"), 0) if token.text.startswith("0x") else int(token.text.rstrip("uU"))
            if value > (2**64 - 1 if token.kind == "uint" else 2**63):
                self.fail(token, f"invalid {token.kind} literal")
            return Literal(token.at, value, unsigned=token.kind == "uint")
        self.fail(token, f"Syntax error: unexpected token '{token.text}'")
        raise AssertionError

    def list_literal(self, token: Token) -> Expr:
        items: list[Expr] = []
        optional: set[int] = set()
        first_optional = token.text == "[?"
        while not self.at("]"):
            if first_optional or self.at("?"):
                optional.add(len(items))
                if not first_optional:
                    self.take()
                first_optional = False
            items.append(self.expression())
            if not self.at("]"):
                self.expect(",")
        self.take()
        return ListOf(token.at, items, optional)

    def map_literal(self, token: Token) -> Expr:
        entries: list[tuple[Expr, Expr]] = []
        optional: set[int] = set()
        while not self.at("}"):
            if self.at("?"):
                self.take()
                optional.add(len(entries))
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
            if not self.at("}"):
                self.expect(",")
        self.take()
        return MapOf(token.at, entries, optional)

"""What can go wrong with an expression: before it runs, and while it runs."""

from __future__ import annotations


class CompileError(ValueError):
    """The expression is not one: bad syntax, an unknown name, types that do not fit."""

    def __init__(self, source: str, at: int, detail: str) -> None:
        line_number = source.count("\n", 0, at) + 1
        start = source.rfind("\n", 0, at) + 1
        line = source[start:].split("\n", 1)[0]
        column = at - start
        pointer = f" | {line}\n | {'.' * column}^"
        super().__init__(f"ERROR: <input>:{line_number}:{column + 1}: {detail}\n{pointer}")
        self.detail = detail


class ResultError(CompileError):
    """The expression is sound, and gives something else than what is wanted here."""


class CelError(Exception):
    """Evaluation failed: no such key, division by zero, a call that does not fit the values."""


class BudgetError(CelError):
    """The expression does more work than one object may cause."""


NO_OVERLOAD = "no such overload"
